"""The same programs in deployed pipelines: how many elements a second, and how long one takes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.measure import Bound, Measurement, percentile, timed
from benchmarks.streams.workloads import Workload

NAME: Final = "ours_deployed"
TARGET_MS: Final = 300.0
_HERE: Final = Path(__file__).parent
_PATIENCE_S: Final = 300.0
_FACTOR: Final = 20
"""Over so many times the elements of a workload, because starting takes long next to them."""
_ROWS: Final = 1_000_000
FILES_ROWS_PER_S: Final = 150_000.0
_ELEMENTS: Final = 200
_WARM_UP: Final = 20
_PAUSE_S: Final = 0.1


def measure(workloads: Sequence[Workload], repeats: int) -> list[Measurement]:
    """Measure the rates of workloads, and the milliseconds of one element.

    :param workloads: the workloads
    :param repeats: the number of runs of each; the medians count
    :returns: the figures
    """
    with _client() as client:
        found = [
            Measurement(f"streams.{workload.name}.{NAME}.elements_per_s", _rate(client, workload, repeats), "1/s")
            for workload in workloads
        ]
        return [*found, *_relations(client, repeats), *_latencies(client)]


@contextmanager
def _client() -> Iterator[PipelineClient]:
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as home:
        client = PipelineClient(home=Path(home))
        try:
            yield client
        finally:
            client.close()
            subprocess.run([sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", home], check=True)


def _rate(client: PipelineClient, workload: Workload, repeats: int) -> float:
    elements = workload.elements * _FACTOR
    seconds = [_seconds(client, workload, elements) - _seconds(client, workload, 1) for _ in range(repeats)]
    rate = elements / statistics.median(seconds)
    print(f"  {workload.name}, {NAME}: {rate:,.0f} elements/s", flush=True)
    return rate


def _seconds(client: PipelineClient, workload: Workload, elements: int) -> float:
    """From the start of a pipeline until all of its inputs have ended and everything is processed."""
    files = ("programs/many_elements.py", "workloads.py", "discard.py")
    pipeline = PipelineBuilder(
        client,
        "throughput",
        stream_program={Path(file).name: (_HERE / file).read_text() for file in files},
        stream_arguments=[workload.name, str(elements)],
    ).create_or_replace()
    with timed() as watch:
        pipeline.start(timeout_s=_PATIENCE_S)
        pipeline.wait_for_completion(timeout_s=_PATIENCE_S)
    pipeline.stop(force=True)
    return watch.seconds


def _relations(client: PipelineClient, repeats: int) -> list[Measurement]:
    """Return the rates of rows that become rows of a relation: from files of CSV through a state, and from a table."""
    figures = []
    with tempfile.TemporaryDirectory(prefix="pipelines-rows-") as folder:
        for name, target in (("files_to_relation", FILES_ROWS_PER_S), ("relation_to_relation", None)):
            seconds = []
            for _ in range(repeats):
                few, all_ = (_seconds_of_rows(client, name, Path(folder), rows) for rows in (1, _ROWS))
                seconds.append(all_ - few)
            rate = _ROWS / statistics.median(seconds)
            print(f"  {name}, {NAME}: {rate:,.0f} rows/s", flush=True)
            figures.append(Measurement(f"streams_{name}_rows_per_s", rate, "1/s", target, Bound.AT_LEAST))
    return figures


def _seconds_of_rows(client: PipelineClient, name: str, folder: Path, rows: int) -> float:
    """Return the seconds from the start of a pipeline until all rows of a file are in its relation."""
    file = folder / "rows.csv"
    file.write_text("".join(f"{number % 1000},{number},pears\n" for number in range(rows)))
    table = ""
    if name == "relation_to_relation":
        transport = {"transport": {"name": "file_input", "config": {"path": str(file)}}, "format": {"name": "csv"}}
        connectors = json.dumps([transport]).replace("'", "''")
        table = f"""create table given (key bigint, number bigint, fruit varchar)
            with ('append_only' = 'true', 'connectors' = '{connectors}');"""
    program = _HERE / "programs" / f"{name}.py"
    pipeline = PipelineBuilder(
        client,
        "rows",
        sql=f"{table} create materialized view shown as select count(*) as n from counted;",
        stream_program={program.name: program.read_text()},
        stream_arguments=[str(folder)],
    ).create_or_replace()
    with timed() as watch:
        pipeline.start(timeout_s=_PATIENCE_S)
        pipeline.wait_for_completion(timeout_s=_PATIENCE_S)
    ((shown,),) = [row.values() for row in pipeline.query("select n from shown")]
    pipeline.stop(force=True)
    if shown != rows:
        raise ValueError(f"{name}: {shown} of {rows} rows are in the relation")
    return watch.seconds


def _latencies(client: PipelineClient) -> list[Measurement]:
    """Of elements until the next function has them, and until a reader of the relation's changes has them."""
    program = _HERE / "programs" / "one_element.py"
    pipeline = PipelineBuilder(
        client,
        "latency",
        sql="create materialized view shown as select given, seen from passed;",
        stream_program={program.name: program.read_text()},
        stream_arguments=[str(_WARM_UP + _ELEMENTS), str(_PAUSE_S)],
    ).create_or_replace()
    pipeline.start_paused(timeout_s=_PATIENCE_S)
    rows = _received(pipeline)
    pipeline.stop(force=True)
    rows = sorted(rows)[_WARM_UP:]
    seen = [(seen - given) / 1e6 for given, seen, _ in rows]
    shown = [(shown - given) / 1e6 for given, _, shown in rows]
    return [
        *_percentiles(NAME, seen),
        *_percentiles(f"{NAME}_shown", shown),
        Measurement("streams_latency_deployed_ms", statistics.median(shown), "ms", TARGET_MS),
    ]


def _received(pipeline: Pipeline) -> list[tuple[int, int, int]]:
    """When each element was given, seen, and here, in ns."""
    rows: list[tuple[int, int, int]] = []
    all_here = threading.Event()

    def note(changes: Any, _: int) -> None:
        now = time.time_ns()
        rows.extend((given, seen, now) for given, seen in zip(changes["given"], changes["seen"], strict=True))
        if len(rows) >= _WARM_UP + _ELEMENTS:
            all_here.set()

    pipeline.foreach_chunk("shown", note)
    pipeline.resume(timeout_s=_PATIENCE_S)
    if not all_here.wait(_PATIENCE_S):
        raise TimeoutError(f"{len(rows)} of {_WARM_UP + _ELEMENTS} elements came within {_PATIENCE_S:.0f} s")
    return rows


def _percentiles(system: str, times: list[float]) -> list[Measurement]:
    return [
        Measurement(f"streams.latency.{system}.ms_median", statistics.median(times), "ms"),
        Measurement(f"streams.latency.{system}.ms_p95", percentile(times, 0.95), "ms"),
    ]
