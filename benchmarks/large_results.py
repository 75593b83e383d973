"""Large results through egress and queries: their time, the first byte of a query, and the memory of the host's Python process."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import log10
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from airflow_pipelines.client import PipelineClient
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.database import open_database
from airflow_pipelines.pipeline import Pipeline
from airflow_pipelines.pipeline_builder import PipelineBuilder
from airflow_pipelines.settings import Settings
from benchmarks.measure import Measurement, timed
from benchmarks.options import Options
from tools.process_figures import resident
from tools.served import served, stop_hosts

SIZES = (1_000_000, 10_000_000)
SEEDS = 100
LOOK_S = 0.02
PATIENCE_S = 600.0
TARGET = 1.3
"""The most by which the larger result may raise the peak of the host's memory."""
FIRST_BYTE_TARGET_S = 1.0
FIRST_BYTES = 5
"""So many times the first byte is waited for; the slowest counts."""
CHANGED = 1000
"""So many rows are taken away before the first bytes are waited for again."""
FORMATS = ("text", "json", "parquet", "arrow_ipc")
PROGRAM = """
create table seeds (id bigint not null primary key, n int not null) with ('materialized' = 'true');
create materialized view results as
  select id * 1000000 + x as id, x % 1000 as place, concat('the name of row ', x) as name
  from seeds lateral view explode(sequence(1, n)) e as x where n > 0;
"""


@dataclass(frozen=True, slots=True)
class Passed:
    """One result that went through: by which way, how many rows, in how many seconds, and the host's peak in MiB."""

    way: str
    rows: int
    seconds: float
    peak: float

    def measurements(self) -> list[Measurement]:
        """The figures by name."""
        name = f"large_results.{self.way}.1e{round(log10(self.rows))}"
        return [
            Measurement(f"{name}.s", self.seconds, "s"),
            Measurement(f"{name}.rows_per_s", self.rows / self.seconds, "rows/s"),
            Measurement(f"{name}.host_peak_rss", self.peak, "MiB"),
        ]


def measure(_options: Options) -> list[Measurement]:
    """Let results of two sizes through, each in every way, and compare the peaks of the host's memory."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        try:
            with served(home, home / "serve.log") as service:
                client = PipelineClient(service.url, timeout_s=PATIENCE_S)
                pipeline = PipelineBuilder(client, "large", sql=PROGRAM).create_or_replace()
                pipeline.start(timeout_s=PATIENCE_S)
                host = _host(home)
                _seed(pipeline, SEEDS, 0)
                sizes = zip((0, *SIZES), SIZES, strict=False)
                passed = [one for before, rows in sizes for one in _passed(pipeline, service.url, before, rows, host, home)]
                first_bytes = [_first_byte(service.url, form, "") for form in FORMATS]
                _seed(pipeline, 1, SIZES[-1] // SEEDS - CHANGED)
                first_bytes += [_first_byte(service.url, form, "_after_changes") for form in FORMATS]
        finally:
            stop_hosts(home)
    small, large = ([one for one in passed if one.rows == rows] for rows in SIZES)
    ratios = [
        Measurement(f"large_results_{one.way}_peak_rss_1e7_to_1e6", other.peak / one.peak, "x", TARGET)
        for one, other in zip(small, large, strict=True)
    ]
    return [*ratios, *first_bytes, *(item for one in passed for item in one.measurements())]


def _seed(pipeline: Pipeline, seeds: int, rows: int) -> None:
    """Let each of the first seeds stand for so many rows."""
    pipeline.input_json("seeds", [{"id": seed, "n": rows} for seed in range(seeds)], timeout_s=PATIENCE_S)


def _passed(pipeline: Pipeline, url: str, before: int, rows: int, host: int, folder: Path) -> Iterator[Passed]:
    """Let the result grow to so many rows, and through: as one step's changes, as a snapshot, as a Parquet file, as JSON."""
    changes = _Listener(url, rows - before, send_snapshot=False)
    yield _measured("egress", rows - before, host, lambda: (_seed(pipeline, SEEDS, rows // SEEDS), changes.wait()))
    target = folder / "results.parquet"
    yield _measured("query_parquet", rows, host, lambda: pipeline.query_parquet("select * from results", str(target)))
    _require(pq.read_metadata(target).num_rows, rows)
    yield _measured("snapshot", rows, host, lambda: _Listener(url, rows, send_snapshot=True).wait())
    yield _measured("query_json", rows, host, lambda: _lines(url, rows))


def _measured(way: str, rows: int, host: int, work: Callable[[], object]) -> Passed:
    with _peak(host) as peaks, timed() as watch:
        work()
    passed = Passed(way, rows, watch.seconds, max(peaks))
    print(f"{way}: {rows} rows in {passed.seconds:.1f} s, peak of the host {passed.peak:.0f} MiB", flush=True)
    return passed


@contextmanager
def _peak(process: int) -> Iterator[list[float]]:
    """The memory of a process while the block runs, looked at all the time."""
    seen, ended = [resident(process)], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            seen.append(resident(process))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


class _Listener:
    """Follows the view until all inserts of a result have come."""

    def __init__(self, url: str, rows: int, *, send_snapshot: bool) -> None:
        self._url = f"{url}/v0/pipelines/large/egress/results"
        self._params = {"format": "json", "backpressure": "true", "send_snapshot": str(send_snapshot).lower()}
        self._rows = rows
        self._attached = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._found = 0
        self._thread.start()
        if not self._attached.wait(PATIENCE_S):
            raise TimeoutError("the egress stream has not begun")

    def wait(self) -> None:
        """Wait until all rows have come."""
        self._thread.join(PATIENCE_S)
        _require(self._found, self._rows)

    def _follow(self) -> None:
        timeout = httpx.Timeout(PATIENCE_S)
        with httpx.stream("POST", self._url, params=self._params, timeout=timeout, trust_env=False) as answer:
            answer.raise_for_status()
            rest = b""
            for chunk in answer.iter_bytes():
                self._attached.set()
                # A mark may lie across two chunks.
                text = rest + chunk
                self._found += text.count(b'{"insert"')
                rest = text[-8:]
                if self._found >= self._rows:
                    return


def _lines(url: str, rows: int) -> None:
    params = {"sql": "select * from results", "format": "json"}
    timeout = httpx.Timeout(PATIENCE_S)
    with httpx.stream("GET", f"{url}/v0/pipelines/large/query", params=params, timeout=timeout, trust_env=False) as answer:
        answer.raise_for_status()
        _require(sum(chunk.count(b"\n") for chunk in answer.iter_bytes()), rows)


def _first_byte(url: str, form: str, state: str) -> Measurement:
    """How long a query over the largest result takes to its first byte; then its client goes."""
    params = {"sql": "select * from results", "format": form}
    seen = []
    for _ in range(FIRST_BYTES):
        with (
            timed() as watch,
            httpx.stream("GET", f"{url}/v0/pipelines/large/query", params=params, timeout=PATIENCE_S, trust_env=False) as answer,
        ):
            answer.raise_for_status()
            next(answer.iter_bytes())
        seen.append(watch.seconds)
    print(f"first byte of {form}{state}: {', '.join(f'{seconds:.2f}' for seconds in seen)} s", flush=True)
    return Measurement(f"large_results_first_byte_{form}{state}_s", max(seen), "s", FIRST_BYTE_TARGET_S)


def _require(found: int, rows: int) -> None:
    if found != rows:
        raise ValueError(f"{found} rows came of {rows}")


def _host(home: Path) -> int:
    """The Python process of the one host."""
    [host] = [host for host in Registry(open_database(Settings.load(home).database_url)).live_hosts() if host.pid is not None]
    assert host.pid is not None
    return host.pid
