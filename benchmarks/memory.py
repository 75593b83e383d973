"""The driver's memory over many small steps: contents of constant size must not make it grow."""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.application import collect_garbage, heap_used, jvm_process
from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from benchmarks.measure import Measurement
from benchmarks.options import Options
from tools.process_figures import resident

KEYS = 1_000
CHANGED_ROWS = 10
SAMPLES = 50
TARGET = 1.2
PROGRAM = """
create table readings (id bigint not null primary key, sensor bigint, level bigint);
create table sensors (id bigint not null primary key, place varchar);
create materialized view by_sensor as select sensor, count(*) as readings, sum(level) as total from readings group by sensor;
create materialized view by_place as
  select place, sum(total) as total from by_sensor join sensors on by_sensor.sensor = sensors.id group by place;
create materialized view highest as select sensor, max(level) as level from readings group by sensor;
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory after ``step`` in MiB: of the Python process, of the JVM's process, and of the JVM's objects that are in use."""

    step: int
    python_rss: float
    jvm_rss: float
    jvm_live: float

    def measurements(self) -> list[Measurement]:
        """Return the figures by name."""
        values = {"python_rss": self.python_rss, "jvm_rss": self.jvm_rss, "jvm_live": self.jvm_live}
        return [Measurement(f"memory.step.{self.step}.{name}", value, "MiB") for name, value in values.items()]


def measure(options: Options) -> list[Measurement]:
    """Take ``options.steps`` steps that replace rows, and compare the memory at the end with that after a fifth of the way."""
    spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": "1g"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
            samples = _samples(spark, Path(folder), options.steps)
    finally:
        spark.stop()
    settled = samples[len(samples) // 5 :]
    early, late = settled[: len(settled) // 4 + 1], settled[-(len(settled) // 4 + 1) :]
    ratios = [
        Measurement(
            f"memory_{name}_last_to_early",
            statistics.median(getattr(one, name) for one in late) / statistics.median(getattr(one, name) for one in early),
            "x",
            TARGET,
        )
        for name in ("python_rss", "jvm_rss", "jvm_live")
    ]
    return [*ratios, *(item for sample in samples for item in sample.measurements())]


def _samples(spark: SparkSession, folder: Path, steps: int) -> list[Sample]:
    sessions = SparkSessions.of(spark)
    circuit = Circuit(compile_program(PROGRAM, sessions), sessions, BatchStore(folder / "batches"))
    sensors = pa.table({"id": range(50), "place": [f"place {at % 7}" for at in range(50)]})
    circuit.publish(circuit.step([_upserts("sensors", sensors)]))
    samples = []
    for step in range(1, steps + 1):
        ids = (np.arange(CHANGED_ROWS) + step * CHANGED_ROWS) % KEYS
        readings = pa.table({"id": ids, "sensor": ids % 50, "level": ids * step % 1_000})
        circuit.publish(circuit.step([_upserts("readings", readings)]))
        circuit.maintain()
        if step % max(1, steps // SAMPLES) == 0:
            samples.append(_sample(spark, step))
    return samples


def _upserts(table: str, rows: pa.Table) -> TableChanges:
    return TableChanges(table, rows.append_column(OP, pa.repeat(pa.scalar(int(Op.INSERT), pa.int8()), rows.num_rows)))


def _sample(spark: SparkSession, step: int) -> Sample:
    context = spark.sparkContext
    collect_garbage(context)
    live = heap_used(context) / 2**20
    return Sample(step, resident(os.getpid()), resident(jvm_process(context)), live)
