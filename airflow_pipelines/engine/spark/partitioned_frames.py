"""DataFrames over many rows in memory, which Spark keeps as Arrow record batches, one for each core.

``SparkSession.createDataFrame`` converts them to rows of its own, in one partition, or in a partition of every ten thousand rows.
In both cases Spark does not know the size, so that it would never broadcast the frame.
"""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm, singleton
from airflow_pipelines.engine.spark.sessions import SESSION_CONF, sibling


def partitioned_frame(session: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return the rows of a table as a DataFrame.

    :param session: the session of the DataFrame
    :param table: the rows in the types of ``schema``, with year-month intervals as 32-bit numbers of months
    :param schema: the columns in order
    """
    java, reading = _classes(session), _reading(session)
    cores = session.sparkContext.defaultParallelism
    # Python would send each byte array as text, so Java reads them from a file.
    with tempfile.TemporaryDirectory(prefix="airflow-pipelines-") as folder:
        path = Path(folder, "rows.arrow")
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table.combine_chunks(), max_chunksize=max(1, -(-table.num_rows // cores)))
        batches = java.python.readArrowStreamFromFile(str(path))
    rows = java.python.toDataFrame(batches, schema.json(), java_session(reading)).queryExecution().analyzed()
    # Python cannot create Spark's statistics, which need a Scala BigInt. A range of 8-byte numbers has the same ones.
    size = java_session(session).range(max(1, table.nbytes // 8)).queryExecution().analyzed().computeStats()
    leaf = java.rdd_leaf(
        rows.output(),
        rows.rdd(),
        java.any_partitioning,
        java.nil,
        False,
        java.none,
        java_session(session),
        java.some(size),
        java.none,
    )
    return frame_of(session, java.datasets.ofRows(java_session(session), leaf))


@functools.lru_cache(maxsize=8)
def _reading(session: SparkSession) -> SparkSession:
    """Return a session in which Spark copies no rows into plans, however few."""
    return sibling(session, {**SESSION_CONF, "spark.sql.execution.arrow.localRelationThreshold": "0"})


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes and objects of the JVM, looked up once: each part of a name costs a call."""

    python: JavaObject
    datasets: JavaObject
    rdd_leaf: JavaObject
    any_partitioning: JavaObject
    none: JavaObject
    nil: JavaObject
    some: JavaObject


@functools.lru_cache(maxsize=8)
def _classes(session: SparkSession) -> _Classes:
    java = jvm(session.sparkContext)
    sql = java.org.apache.spark.sql
    return _Classes(
        python=sql.api.python.PythonSQLUtils,
        datasets=singleton(sql.classic, "Dataset"),
        rdd_leaf=sql.execution.LogicalRDD,
        any_partitioning=sql.catalyst.plans.physical.UnknownPartitioning(0),
        none=singleton(java.scala, "None"),
        nil=singleton(java.scala.collection.immutable, "Nil"),
        some=java.scala.Some,
    )
