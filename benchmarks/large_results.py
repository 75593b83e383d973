"""Large results through egress and queries: their time, the first byte of a query, and the memory of the host's Python process.

Three views have as many rows each: one with columns of single values, one with ARRAY, MAP and ROW, and one with VARIANT. The first
byte of a query is waited for after a load, after few rows have gone, and after many have.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import log10
from pathlib import Path
from statistics import median

import httpx
import pyarrow.parquet as pq
from websockets.sync.client import connect

from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
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
FIRST_BYTES = 3
"""So many times the first byte is waited for in each format."""
FEW, MANY = 1000, 100_000
"""So many rows are taken away before the first bytes are waited for again."""
FORMATS = ("text", "json", "parquet", "arrow_ipc")
COLUMNS = {
    "plain": "concat('the name of row ', x) as name",
    "nested": "array(x, x + 1) as pair, map('x', x) as entries, row(x, concat('row ', x)) as fields",
    "variant": "cast(map('x', cast(x as varchar)) as variant) as v",
}
"""Of each view, what it has besides a number and a place."""
PROGRAM = "".join(
    f"""
create table seeds_{view} (id bigint not null primary key, n int not null) with ('materialized' = 'true');
create materialized view {view} as
  select id * 1000000 + x as id, x % 1000 as place, {columns}
  from seeds_{view} lateral view explode(sequence(1, n)) e as x where n > 0;
"""
    for view, columns in COLUMNS.items()
)


@dataclass(frozen=True, slots=True)
class Passed:
    """One result that went through: by which way, how many rows, in how many seconds, and the host's peak in MiB."""

    way: str
    rows: int
    seconds: float
    peak: float

    def measurements(self) -> list[Measurement]:
        """Return the figures by name."""
        name = f"large_results.{self.way}.1e{round(log10(self.rows))}"
        return [
            Measurement(f"{name}.s", self.seconds, "s"),
            Measurement(f"{name}.rows_per_s", self.rows / self.seconds, "rows/s"),
            Measurement(f"{name}.host_peak_rss", self.peak, "MiB"),
        ]


def measure(_options: Options) -> list[Measurement]:
    """Let results of two sizes through, each in every way, compare the peaks of the host's memory, and wait for first bytes."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
        home = Path(folder)
        try:
            with served(home, home / "serve.log") as service:
                client = PipelineClient(service.url, timeout_s=PATIENCE_S)
                pipeline = PipelineBuilder(client, "large", sql=PROGRAM).create_or_replace()
                pipeline.start(timeout_s=PATIENCE_S)
                host = _host(home)
                return [item for view in COLUMNS for item in _of_view(view, pipeline, service.url, host, home)]
        finally:
            stop_hosts(home)


def _of_view(view: str, pipeline: Pipeline, url: str, host: int, home: Path) -> list[Measurement]:
    """Measure one view."""
    passed, firsts = [], []
    for before, rows in zip((0, *SIZES), SIZES, strict=False):
        if view == "plain":
            grow = partial(_grow, pipeline, view, rows, _Listener(view, url, rows - before, send_snapshot=False))
            passed.append(_measured(f"{view}_egress", rows - before, host, grow))
        else:
            _seed(pipeline, view, SEEDS, rows // SEEDS)
        firsts.append(_first_byte(view, url, "json"))
        passed += _passed(view, pipeline, url, rows, host, home)
    print(f"first byte of the first queries over {view}: {', '.join(f'{one:.2f}' for one in firsts)} s", flush=True)
    found = [Measurement(f"large_results_first_query_{view}_s", max(firsts), "s", FIRST_BYTE_TARGET_S)]
    found += _first_bytes(view, url, host, "")
    for state, gone in (("_few_changes", FEW), ("_many_changes", MANY)):
        _seed(pipeline, view, 1, SIZES[-1] // SEEDS - gone)
        found += _first_bytes(view, url, host, state)
    small, large = passed[: len(passed) // 2], passed[len(passed) // 2 :]
    ratios = [
        Measurement(f"large_results_{one.way}_peak_rss_1e7_to_1e6", other.peak / one.peak, "x", TARGET)
        for one, other in zip(small, large, strict=True)
    ]
    return [*ratios, *found, *(item for one in passed for item in one.measurements())]


def _seed(pipeline: Pipeline, view: str, seeds: int, rows: int) -> None:
    """Let each of the first seeds of a view stand for so many rows."""
    pipeline.input_json(f"seeds_{view}", [{"id": seed, "n": rows} for seed in range(seeds)], timeout_s=PATIENCE_S)


def _grow(pipeline: Pipeline, view: str, rows: int, changes: _Listener) -> None:
    """Let a view have so many rows, and wait until all changes have come."""
    _seed(pipeline, view, SEEDS, rows // SEEDS)
    changes.wait()


def _passed(view: str, pipeline: Pipeline, url: str, rows: int, host: int, folder: Path) -> Iterator[Passed]:
    """Let the rows of a view through: as a Parquet file, and those of the plain one as JSON and as a snapshot too."""
    target = folder / "results.parquet"
    yield _measured(f"{view}_parquet", rows, host, lambda: pipeline.query_parquet(f"select * from {view}", str(target)))
    _require(pq.read_metadata(target).num_rows, rows)
    if view == "plain":
        yield _measured(f"{view}_json", rows, host, lambda: _lines(view, url, rows))
        yield _measured(f"{view}_snapshot", rows, host, lambda: _Listener(view, url, rows, send_snapshot=True).wait())


def _measured(way: str, rows: int, host: int, work: Callable[[], object]) -> Passed:
    with _peak(host) as peaks, timed() as watch:
        work()
    passed = Passed(way, rows, watch.seconds, max(peaks))
    print(f"{way}: {rows} rows in {passed.seconds:.1f} s, peak of the host {passed.peak:.0f} MiB", flush=True)
    return passed


@contextmanager
def _peak(process: int) -> Iterator[list[float]]:
    """Sample the memory of a process while the block runs, and yield the list of samples."""
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

    def __init__(self, view: str, url: str, rows: int, *, send_snapshot: bool) -> None:
        self._url = f"{url}/v0/pipelines/large/egress/{view}"
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


def _lines(view: str, url: str, rows: int) -> None:
    params = {"sql": f"select * from {view}", "format": "json"}
    timeout = httpx.Timeout(PATIENCE_S)
    with httpx.stream("GET", f"{url}/v0/pipelines/large/query", params=params, timeout=timeout, trust_env=False) as answer:
        answer.raise_for_status()
        _require(sum(chunk.count(b"\n") for chunk in answer.iter_bytes()), rows)


def _first_bytes(view: str, url: str, host: int, state: str) -> list[Measurement]:
    """How long a query over a view takes to its first byte in each format, and the host's peak meanwhile."""
    found, waited = [], []
    with _peak(host) as peaks:
        for form in (*FORMATS, "websocket"):
            wait = _first_message if form == "websocket" else partial(_first_byte, form=form)
            seen = [wait(view, url) for _ in range(FIRST_BYTES)]
            print(f"first byte of {view}{state} as {form}: {', '.join(f'{one:.2f}' for one in seen)} s", flush=True)
            found.append(Measurement(f"large_results.first_byte.{view}{state}.{form}.s_median", median(seen), "s"))
            found.append(Measurement(f"large_results.first_byte.{view}{state}.{form}.s_slowest", max(seen), "s"))
            waited += seen
    return [
        Measurement(f"large_results_first_byte_{view}{state}_s_median", median(waited), "s", FIRST_BYTE_TARGET_S),
        Measurement(f"large_results_first_byte_{view}{state}_s_slowest", max(waited), "s"),
        *found,
        Measurement(f"large_results.first_byte.{view}{state}.host_peak_rss", max(peaks), "MiB"),
    ]


def _first_byte(view: str, url: str, form: str) -> float:
    """Seconds to the first byte of an answer; then its client goes."""
    address, params = f"{url}/v0/pipelines/large/query", {"sql": f"select * from {view}", "format": form}
    began = time.perf_counter()
    with httpx.stream("GET", address, params=params, timeout=PATIENCE_S, trust_env=False) as answer:
        answer.raise_for_status()
        next(answer.iter_bytes())
        return time.perf_counter() - began


def _first_message(view: str, url: str) -> float:
    """Return the seconds to the first message of an answer in JSON over a WebSocket; then its client goes."""
    address = f"{url.replace('http', 'ws', 1)}/v0/pipelines/large/query"
    began = time.perf_counter()
    with connect(address, max_size=None, proxy=None) as socket:
        socket.send(json.dumps({"sql": f"select * from {view}", "format": "json"}))
        _require_no_problem(socket.recv(PATIENCE_S))
        return time.perf_counter() - began


def _require_no_problem(message: str | bytes) -> None:
    if b'"error_code"' in (message.encode() if isinstance(message, str) else message):
        raise ValueError(f"the query failed: {message!r}")


def _require(found: int, rows: int) -> None:
    if found != rows:
        raise ValueError(f"{found} rows came of {rows}")


def _host(home: Path) -> int:
    """Return the process ID of the Python process of the one host."""
    [host] = [host for host in Registry(open_database(Settings.load(home).database_url)).live_hosts() if host.pid is not None]
    assert host.pid is not None
    return host.pid
