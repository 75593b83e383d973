"""DataFrames over Arrow record batches, and Arrow's schema for a Spark schema.

``SparkSession.createDataFrame`` reads a pyarrow Table as well, but refuses year-month intervals.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark reads and gives the columns of a schema; timestamps are in UTC."""
    return to_arrow_schema(schema, timezone="UTC", error_on_duplicated_field_names_in_struct=False)


def arrow_frame(session: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """The rows of a table as a DataFrame.

    :param table: in the types of ``schema``, with year-month intervals as 32-bit numbers of months
    :param schema: the columns in order
    """
    arrays = jvm(session.sparkContext).java.util.ArrayList()
    for batch in table.combine_chunks().to_batches():
        arrays.add(bytes(batch.serialize()))
    return frame_of(session, record_batch_dataset(session, arrays, schema.json()))


def record_batch_dataset(session: SparkSession, arrays: JavaObject, schema: str) -> JavaObject:
    """A Java Dataset over Arrow record batches, with a partition for each batch.

    :param arrays: a java.util.List of byte arrays, each an encapsulated record batch, which Spark keeps as they are
    :param schema: the columns as JSON
    """
    classes = _classes(session.sparkContext)
    iterator = classes.converters.asScala(arrays.iterator())
    return classes.python.toDataFrame(iterator, schema, java_session(session))


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM, looked up once: each part of a name costs a call."""

    converters: JavaObject
    python: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    return _Classes(java.scala.jdk.javaapi.CollectionConverters, java.org.apache.spark.sql.api.python.PythonSQLUtils)
