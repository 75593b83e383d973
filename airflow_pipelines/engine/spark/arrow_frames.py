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

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm, singleton


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark reads and gives the columns of a schema; timestamps are in UTC."""
    return to_arrow_schema(schema, timezone="UTC", error_on_duplicated_field_names_in_struct=False)


def arrow_frame(session: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """The rows of a table as a DataFrame.

    :param table: in the types of ``schema``, with year-month intervals as 32-bit numbers of months
    :param schema: the columns in order
    """
    java = _classes(session.sparkContext)
    batches = [bytes(batch.serialize()) for batch in table.combine_chunks().to_batches()]
    if len(batches) == 1:
        # The usual case takes a call instead of four.
        return frame_of(session, java.frame(java.iterators.single(batches[0]), schema.json(), java_session(session)))
    arrays = java.list()
    for batch in batches:
        arrays.add(batch)
    return frame_of(session, record_batch_dataset(session, arrays, schema.json()))


def record_batch_dataset(session: SparkSession, arrays: JavaObject, schema: str) -> JavaObject:
    """A Java Dataset over Arrow record batches, with a partition for each batch.

    :param arrays: a java.util.List of byte arrays, each an encapsulated record batch, which Spark keeps as they are
    :param schema: the columns as JSON
    """
    java = _classes(session.sparkContext)
    return java.frame(java.as_scala(arrays.iterator()), schema, java_session(session))


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the JVM and methods, looked up once: each part of a name costs a call."""

    list: JavaObject
    iterators: JavaObject
    as_scala: JavaObject
    frame: JavaObject


@functools.lru_cache(maxsize=4)
def _classes(context: SparkContext) -> _Classes:
    java = jvm(context)
    return _Classes(
        list=java.java.util.ArrayList,
        iterators=singleton(java.scala.collection, "Iterator"),
        as_scala=java.scala.jdk.javaapi.CollectionConverters.asScala,
        frame=java.org.apache.spark.sql.api.python.PythonSQLUtils.toDataFrame,
    )
