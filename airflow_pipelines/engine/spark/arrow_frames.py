"""DataFrames over Arrow record batches, and Arrow's schema for a Spark schema.

``SparkSession.createDataFrame`` reads a pyarrow Table as well, but refuses year-month intervals.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from cachetools import LRUCache
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from airflow_pipelines.engine.spark.internals import JavaObject, frame_of, java_session, jvm, singleton
from airflow_pipelines.engine.spark.intervals import numbered

# The cache holds each schema, so that no other one gets its id. Comparing schemas takes as long as converting one.
_known: LRUCache[int, tuple[StructType, pa.Schema]] = LRUCache(1_000)
_lock = threading.Lock()
_EVALUABLE = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType, DateType, TimestampType,
    TimestampNTZType,
)  # fmt: skip


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark reads and writes the columns of a schema. Timestamps are in UTC."""
    return to_arrow_schema(schema, timezone="UTC", error_on_duplicated_field_names_in_struct=False)


@functools.lru_cache(maxsize=1_000)
def evaluable_type(kind: DataType) -> pa.DataType | None:
    """Return the Arrow type of columns that :mod:`airflow_pipelines.rows.expressions` may read.

    :param kind: a Spark type
    :returns: None for all types but numbers, texts without a collation, dates and timestamps
    """
    is_text = isinstance(kind, StringType) and kind.simpleString() == "string"
    return to_arrow_type(kind, timezone="UTC") if is_text or isinstance(kind, _EVALUABLE) else None


def relaxed(schema: StructType) -> StructType:
    """Return the schema with NULL allowed everywhere but in the keys of maps.

    Spark infers nullability, differently for each query. Arrow refuses a NULL struct that has a field without NULL.
    """
    fields = [StructField(field.name, _relax(field.dataType), nullable=True) for field in schema.fields]
    return StructType(fields)


def _relax(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return relaxed(kind)
        case ArrayType():
            return ArrayType(_relax(kind.elementType), containsNull=True)
        case MapType():
            return MapType(_relax(kind.keyType), _relax(kind.valueType), valueContainsNull=True)
        case _:
            return kind


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of batches that have a Spark schema.

    :param schema: the columns; they must not be changed afterwards
    """
    with _lock:
        known = _known.get(id(schema))
    if known is None:
        known = schema, arrow_schema_of(cast(StructType, numbered(relaxed(schema))))
        with _lock:
            _known[id(schema)] = known
    return known[1]


def arrow_frame(session: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Return the rows of a table as a DataFrame.

    :param table: the rows in the types of ``schema``, with year-month intervals as 32-bit numbers of months
    :param schema: the columns in order
    """
    java = _classes(session.sparkContext)
    batches = [bytes(batch.serialize()) for batch in table.combine_chunks().to_batches()]
    if len(batches) == 1:
        # The usual case takes one call instead of four.
        return frame_of(session, java.frame(java.iterators.single(batches[0]), schema.json(), java_session(session)))
    arrays = java.list()
    for batch in batches:
        arrays.add(batch)
    return frame_of(session, record_batch_dataset(session, arrays, schema.json()))


def record_batch_dataset(session: SparkSession, arrays: JavaObject, schema: str) -> JavaObject:
    """Return a Java Dataset over Arrow record batches, with a partition for each batch.

    :param arrays: a java.util.List of byte arrays, each an encapsulated record batch, which Spark keeps as they are
    :param schema: the columns as JSON
    """
    java = _classes(session.sparkContext)
    return java.frame(java.as_scala(arrays.iterator()), schema, java_session(session))


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes and methods of the JVM, looked up once: each part of a name costs a call."""

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
