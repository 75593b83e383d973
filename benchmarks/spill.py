"""A view whose state needs four times the memory that the driver has: it must go to disk, and the answer must be right."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.application import jvm_process
from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from benchmarks.measure import Measurement, timed
from benchmarks.options import Options
from tools.process_figures import resident

HEAP_MIB = 512
"""Spark does not start with much less."""
NAME_BYTES = 100
ROW_BYTES = NAME_BYTES + 3 * 8
"""A row of the state: the name, a count, a sum and the weight."""
GROUPS = 4 * HEAP_MIB * 2**20 // ROW_BYTES
CHUNK = 4_000_000
CHANGED_ROWS = 1_000
PROGRAM = """
create table events (name varchar, amount bigint);
create view totals as select name, count(*) as events, sum(amount) as total from events group by name;
create materialized view by_count as select events, count(*) as names, sum(total) as total from totals group by events;
"""


def measure(options: Options) -> list[Measurement]:
    """Load one row for each group, change some, and compare what the second view knows with what must come out."""
    spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": f"{HEAP_MIB}m"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
            return _measure(spark, Path(folder), options.repeats)
    finally:
        spark.stop()


def _measure(spark: SparkSession, folder: Path, steps: int) -> list[Measurement]:
    sessions = SparkSessions.of(spark)
    circuit = Circuit(compile_program(PROGRAM, sessions), sessions, BatchStore(folder / "batches"))
    with timed() as load:
        for start in range(0, GROUPS, CHUNK):
            _insert(circuit, np.arange(start, min(start + CHUNK, GROUPS)))
    with timed() as step:
        for at in range(steps):
            _insert(circuit, np.arange(CHANGED_ROWS) + at * CHANGED_ROWS)
    expected = {1: GROUPS - steps * CHANGED_ROWS, 2: steps * CHANGED_ROWS}
    found = {row["events"]: row["names"] for row in circuit.relation("by_count").collect()}
    if found != expected:
        raise AssertionError(f"the view holds {found}, which should be {expected}")
    return [
        Measurement("spill_state_to_heap", GROUPS * ROW_BYTES / (HEAP_MIB * 2**20), "x"),
        Measurement("spill.load_s", load.seconds, "s"),
        Measurement("spill.step_s", step.seconds / steps, "s"),
        Measurement("spill.jvm_peak_rss", resident(jvm_process(spark.sparkContext), field="VmHWM"), "MiB"),
    ]


def _insert(circuit: Circuit, ids: npt.NDArray[np.int64]) -> None:

    names = pc.utf8_lpad(pa.array(ids).cast(pa.string()), NAME_BYTES, "0")
    rows = pa.table({"name": names, "amount": ids % 1_000, OP: pa.repeat(pa.scalar(int(Op.INSERT), pa.int8()), len(ids))})
    circuit.publish(circuit.step([TableChanges("events", rows)]))
    circuit.maintain()
