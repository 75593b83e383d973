"""The tables of one size, loaded once and shared by the programs of all queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.sessions import LARGE_CONF, SparkSessions, sibling
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import Op
from benchmarks.measure import timed
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.queries import queries
from benchmarks.tpch.refresh import table_changes
from benchmarks.tpch.schema import TABLES, table_statements


@dataclass(frozen=True)
class Prepared:
    """The tables as the engine keeps them and as plain Parquet.

    ``load_s``: seconds in which the engine took all rows of the tables in. ``batch``: a session with Spark's own choices that
    has the tables as views over Parquet files.
    """

    generator: Generator
    sessions: SparkSessions
    store: BatchStore
    snapshot: Snapshot
    batch: SparkSession
    load_s: float

    @classmethod
    def load(cls, generator: Generator, spark: SparkSession, folder: Path, tables: Iterable[str] = TABLES) -> Prepared:
        """Make the data and load it, a chunk of orders at a time.

        :param folder: where batches and Parquet files go
        :param tables: only these tables
        """
        wanted = set(tables)
        sessions = SparkSessions.of(spark)
        store = BatchStore(folder / "batches")
        circuit = Circuit(compile_program(table_statements(wanted), sessions), sessions, store)
        seconds = 0.0
        chunks = [{name: generator.table(name)} for name in TABLES[:6]]
        for chunk in (*chunks, *(generator.chunks() if wanted & {"orders", "lineitem"} else ())):
            changes = [table_changes(name, rows, Op.INSERT) for name, rows in chunk.items() if name in wanted]
            with timed() as watch:
                if changes:
                    circuit.publish(circuit.step(changes))
                    circuit.maintain()
            seconds += watch.seconds
        partitions = str(sessions.large.conf.get("spark.sql.shuffle.partitions"))
        batch = sibling(spark, {**LARGE_CONF, "spark.sql.shuffle.partitions": partitions})
        for name in wanted:
            path = str(folder / "parquet" / name)
            circuit.relation(name).write.parquet(path)
            batch.read.parquet(path).createOrReplaceTempView(name)
        return cls(generator, sessions, store, circuit.snapshot, batch, seconds)

    def tables(self, names: Iterable[str]) -> Snapshot:
        """Return a snapshot of some tables as loaded."""
        return self.snapshot.keep(set(names))

    def query(self, name: str) -> DataFrame:
        """Return a query over the Parquet files."""
        return self.batch.sql(queries(self.generator.scale)[name])
