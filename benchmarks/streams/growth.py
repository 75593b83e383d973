"""Steps that touch ten thousand keys, over more and more keys: their time must hardly grow, and memory must be bounded.

Each size runs in a process of its own. The keys of a step are spread evenly over all, so that no step finds what the last one used.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.connectors import NumberSequenceSource
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.state.database import DatabaseRows, StateDatabase
from airflow_pipelines.streams.state.rows import StateRows
from benchmarks.measure import Bound, Measurement
from benchmarks.options import Options
from benchmarks.streams.discard import Discard
from benchmarks.streams.systems import ours_environment
from tools.flink import run

SIZES = (100_000, 1_000_000, 10_000_000)
TARGET = 3.0
TOUCHED = 10_000
WARM_UP, STEPS = 5, 20
SPREAD = 2_654_435_761
"""A multiplier without a common factor with the sizes, so that successive numbers give keys far from each other, each once."""


def measure(options: Options) -> list[Measurement]:
    """Measure each size; those that the budget does not allow are left out, and with the largest the figure of the summary."""
    found: dict[int, dict[str, float]] = {}
    for size in SIZES:
        if not options.out_of_time:
            found[size] = json.loads(run([sys.executable, "-m", "benchmarks.streams.growth", str(size)], ours_environment()))
            print(f"  {size:,} keys: {found[size]}", flush=True)
    return measurements(found)


def measurements(found: dict[int, dict[str, float]]) -> list[Measurement]:
    """Return the figures of the sizes that were measured.

    :param found: the result of :func:`figures` by size
    """
    units = {"step_s": "s", "step_and_checkpoint_s": "s", "rss_mib": "MiB", "load_s": "s"}
    listed = [
        Measurement(f"streams.growth.1e{len(str(size)) - 1}.{name}", row[name], unit)
        for size, row in found.items()
        for name, unit in units.items()
    ]
    smallest, largest = SIZES[0], SIZES[-1]
    if {smallest, largest} <= set(found):
        growth = found[largest]["step_and_checkpoint_s"] / found[smallest]["step_and_checkpoint_s"]
        listed.append(Measurement("streams_state_growth", growth, "x", TARGET, Bound.AT_MOST))
    return listed


def figures(keys: int) -> dict[str, float]:
    """Fill the state, then time steps, each with a checkpoint after it, which links the files of the database, as in a pipeline."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(StateDatabase(Path(folder, "state"))) as database:
        return _time_steps(keys, database, Path(folder, "checkpoint"))


def _time_steps(keys: int, database: StateDatabase, checkpoint: Path) -> dict[str, float]:
    runner = _runner(keys, keys + TOUCHED * (WARM_UP + STEPS), database)

    def take_checkpoint() -> None:
        runner.flush()
        database.checkpoint(checkpoint)
        shutil.rmtree(checkpoint)

    start = time.perf_counter()
    for _ in range(keys // TOUCHED):
        runner.step(default=TOUCHED)
    take_checkpoint()
    loaded = time.perf_counter() - start
    alone, whole = [], []
    for _ in range(WARM_UP + STEPS):
        start = time.perf_counter()
        runner.step(default=TOUCHED)
        alone.append(time.perf_counter() - start)
        take_checkpoint()
        whole.append(time.perf_counter() - start)
    return {
        "step_s": statistics.median(alone[WARM_UP:]),
        "step_and_checkpoint_s": statistics.median(whole[WARM_UP:]),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load_s": loaded,
    }


class _Sum(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:  # noqa: ARG002
        found = (self.sum.value() or 0) + value
        self.sum.update(found)
        yield found


def _runner(keys: int, elements: int, database: StateDatabase) -> LocalRunner:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = NumberSequenceSource(0, elements - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    by_key = numbers.key_by(lambda number: number if number < keys else number * SPREAD % keys, Types.LONG())
    by_key.process(_Sum(), Types.LONG()).sink_to(Discard())
    sink = env._take_sinks()[0]

    def rows_of(uid: str, groups: range, max_parallelism: int) -> StateRows:  # noqa: ARG001 (there is one operator)
        return DatabaseRows(database, 0, groups, max_parallelism)

    return LocalRunner(plan_of(env.graph, [sink.id], Defaults(1)), rows_of=rows_of)


if __name__ == "__main__":
    print(json.dumps(figures(int(sys.argv[1]))))
