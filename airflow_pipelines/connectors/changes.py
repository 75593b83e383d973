"""The changes of a delta in the order in which outputs and listeners receive them, a few thousand at a time.

Deletes come before inserts, each part sorted by row; a row of weight w comes abs(w) times. For an output with an index, they are
ordered by key, with deletes before inserts for each key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as f
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import ArrayType, CalendarIntervalType, DataType, MapType, StructField, StructType, VariantType

from airflow_pipelines.connectors.sort_keys import sort_keys
from airflow_pipelines.connectors.updates import with_updates
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.spark.value_bytes import VALUE_BYTES
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT

ROWS_AT_ONCE = 10_000
"""The maximum number of rows of a table of changes."""
PARTITION_ROWS = 250_000
"""The approximate number of rows of a partition in which Spark sorts a large delta. A few partitions are in memory at a time."""


class Changes(Protocol):
    """The changes of one step to one relation, which can be iterated more than once."""

    def count(self) -> int:
        """Return the number of changes."""

    def tables(self) -> Iterator[pa.Table]:
        """Yield all changes in order, as tables of at most :data:`ROWS_AT_ONCE` rows with a weight of 1 or -1 as the last column.

        With an index, which identifies rows that belong together, updates are marked (:func:`with_updates`).
        """


def changes_of(delta: Batch, columns: Sequence[str], session: SparkSession, key: Sequence[str] = ()) -> Changes:
    """Return the changes of a delta, which the caller keeps while they are iterated.

    :param delta: rows with weights
    :param columns: the columns to show
    :param session: the Spark session, which sorts a delta that is large or in files
    :param key: the columns of the output's index; empty without one
    """
    names = [*columns, WEIGHT]
    if (delta.table is None and delta.files) or not delta.is_small(DEFAULT_LIMITS):
        return StreamedChanges(delta.frame(session).select(*map(quote, names)), delta.rows, key)
    return ChangesInMemory(format_intervals(delta.to_arrow(), delta.schema).select(names), key)


class ChangesInMemory:
    """The changes of a delta that is in memory.

    :param delta: rows with ``__weight`` as the last column, and intervals as text
    :param key: the columns of the output's index
    """

    def __init__(self, delta: pa.Table, key: Sequence[str] = ()) -> None:
        self._delta = delta
        self._key = key

    def count(self) -> int:
        """Return the number of changes."""
        return int(pc.sum(pc.abs(self._delta.column(WEIGHT))).as_py() or 0)

    def tables(self) -> Iterator[pa.Table]:
        """Yield all changes in order."""
        tables = self._single_rows()
        return with_updates(tables, self._key) if self._key else tables

    def _single_rows(self) -> Iterator[pa.Table]:
        for begin in range(0, self._sorted.num_rows, ROWS_AT_ONCE):
            yield from _repeat_by_weight(self._sorted.slice(begin, ROWS_AT_ONCE))

    @cached_property
    def _sorted(self) -> pa.Table:
        if self._delta.num_rows < 2:
            return self._delta
        rows = self._delta.drop_columns([WEIGHT])
        keys, names = sort_keys(rows)
        keys = keys.append_column("_delete_first", pc.sign(self._delta.column(WEIGHT)))
        first = [names[rows.column_names.index(column)] for column in self._key]
        rest = [name for name in names if name not in first]
        order = [(name, "ascending", "at_start") for name in (*first, "_delete_first", *rest)]
        return self._delta.take(pc.sort_indices(keys, sort_keys=order))


class StreamedChanges:
    """The changes of a delta that is in files. Spark sorts them, and they are streamed to Python while they are read.

    :param frame: the delta's rows with ``__weight`` as the last column
    :param rows: the approximate number of rows
    :param key: the columns of the output's index
    """

    def __init__(self, frame: DataFrame, rows: int, key: Sequence[str] = ()) -> None:
        self._frame = frame
        self._key = key
        self._partitions = max(1, rows // PARTITION_ROWS)

    def count(self) -> int:
        """Return the number of changes."""
        row = self._frame.agg(f.sum(f.abs(f.col(WEIGHT)))).first()
        return 0 if row is None or row[0] is None else int(row[0])

    def tables(self) -> Iterator[pa.Table]:
        """Yield all changes in order."""
        tables = self._single_rows()
        return with_updates(tables, self._key) if self._key else tables

    def _single_rows(self) -> Iterator[pa.Table]:
        schema = self._frame.schema
        first = [_sort_key(schema[column]) for column in self._key]
        rest = [_sort_key(field) for field in schema.fields if field.name not in {WEIGHT, *self._key}]
        keys = [*first, f.signum(f.col(WEIGHT)), *rest]
        # Like orderBy, but with partitions that fit into Spark's driver whatever the size of the delta.
        ordered = self._frame.repartitionByRange(self._partitions, *keys).sortWithinPartitions(*keys)
        for table in stream_tables(ordered):
            yield from _repeat_by_weight(format_intervals(cast_to_schema(table, arrow_schema(schema)), schema))


def _repeat_by_weight(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield each row as often as its weight says, in tables of at most :data:`ROWS_AT_ONCE` rows."""
    weights = rows.column(WEIGHT)
    if not rows.num_rows or pc.max(pc.abs(weights)).as_py() == 1:
        for begin in range(0, rows.num_rows, ROWS_AT_ONCE):
            yield rows.slice(begin, ROWS_AT_ONCE)
        return
    indices: list[int] = []
    for number, times in enumerate(pc.abs(weights).to_pylist()):
        left = times
        while left:
            added = min(left, ROWS_AT_ONCE - len(indices))
            indices += [number] * added
            left -= added
            if len(indices) == ROWS_AT_ONCE:
                yield _single(rows, indices)
                indices = []
    if indices:
        yield _single(rows, indices)


def _single(rows: pa.Table, indices: list[int]) -> pa.Table:
    taken = rows.take(pa.array(indices, pa.int64()))
    weights = taken.column(WEIGHT)
    return taken.set_column(taken.num_columns - 1, WEIGHT, pc.sign(weights).cast(weights.type))


def _sort_key(field: StructField) -> Column:
    """Return an expression that Spark can sort in place of a column."""
    name = quote(field.name)
    return f.col(name) if _has_order(field.dataType) else f.expr(f"{VALUE_BYTES}({name})")


def _has_order(kind: DataType) -> bool:
    match kind:
        case StructType():
            return all(_has_order(field.dataType) for field in kind.fields)
        case ArrayType():
            return _has_order(kind.elementType)
        case _:
            return not isinstance(kind, MapType | VariantType | CalendarIntervalType)
