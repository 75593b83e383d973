"""The input that a stream program gets from a relation's delta: single rows, in an order that follows from their values.

A delta is a set. A step that is computed again must give a program the same rows in the same order, so they are sorted: deleted
rows come before inserted ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as f
from pyspark.sql import SparkSession

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.spark.value_bytes import VALUE_BYTES
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import SEQUENCE, WEIGHT

ROWS_AT_ONCE = 10_000
"""The maximum number of rows in a table of rows."""
_PARTITION_ROWS = 250_000
_GOES = "__goes_first"


def relation_rows(delta: Batch, session: SparkSession) -> Iterator[pa.Table]:
    """Yield the rows of a delta.

    :param delta: rows with weights
    :param session: the session that sorts a delta that is in files
    :returns: the relation's columns, and last the weight, which is 1 or -1; in tables of at most :data:`ROWS_AT_ONCE` rows
    """
    tables = [_sort(delta.table)] if delta.table is not None else _sort_by_spark(delta, session)
    for table in tables:
        rows = format_intervals(table, delta.schema)
        rows = rows.drop_columns([SEQUENCE]) if SEQUENCE in rows.column_names else rows
        for start in range(0, rows.num_rows, ROWS_AT_ONCE):
            yield from _repeat_rows(rows.slice(start, ROWS_AT_ONCE))


def _sort(rows: pa.Table) -> pa.Table:
    if rows.num_rows < 2:
        return rows
    names = [f"c{at}" for at in range(rows.num_columns)]
    columns = [_to_comparable(rows[column]) for column in rows.column_names]
    keys = pa.table([*columns, pc.sign(rows[WEIGHT])], names=[*names, _GOES])
    order = [(_GOES, "ascending", "at_start"), *((name, "ascending", "at_start") for name in names)]
    return rows.take(pc.sort_indices(keys, sort_keys=order))


def _to_comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that Arrow can sort, with the same order in every process."""
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        return pa.chunked_array([pa.array(list(map(repr, python_values(column))), pa.string())])
    return column


def _sort_by_spark(delta: Batch, session: SparkSession) -> Iterator[pa.Table]:
    if not delta.files:
        return
    frame = delta.frame(session)
    rest = ", ".join(quote(column.name) for column in delta.schema.fields if column.name not in {WEIGHT, SEQUENCE})
    keys = [f.signum(f.col(WEIGHT)), f.expr(f"{VALUE_BYTES}(STRUCT({rest}))")]
    partitions = max(1, delta.rows // _PARTITION_ROWS)
    for table in stream_tables(frame.repartitionByRange(partitions, *keys).sortWithinPartitions(*keys)):
        yield cast_to_schema(table, arrow_schema(delta.schema))


def _repeat_rows(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield each row as often as its weight says."""
    weights = python_values(rows[WEIGHT])
    if all(weight in (1, -1) for weight in weights):
        yield rows
        return
    indices = [at for at, weight in enumerate(weights) for _ in range(abs(weight))]
    for start in range(0, len(indices), ROWS_AT_ONCE):
        taken = rows.take(pa.array(indices[start : start + ROWS_AT_ONCE], pa.int64()))
        yield taken.set_column(taken.num_columns - 1, WEIGHT, pc.sign(taken[WEIGHT]).cast(pa.int64()))
