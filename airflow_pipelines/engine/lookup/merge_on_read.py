"""Queries that merge the batches of a large relation on read, without an exchange of its rows.

Only rows that some batch deletes have to be consolidated. So the hashes of the rows with negative weights are collected first: they
are few. All rows with other hashes are passed on as they are read. Rows with one of these hashes, including other rows that happen
to share it, are consolidated at the end, in one task that reads the batches a second time and keeps only these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews, grouping_key
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.values.row_hash import row_hash

_HASH = "__hash"
_HASHES = weighted(StructType([StructField(_HASH, LongType())]))
_COPIES = f"LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"
"""The SQL clause that repeats each row as often as its weight says."""
_BEGIN = "SELECT /*+ BROADCAST(c) */ s.* FROM"


@dataclass(frozen=True, slots=True)
class SplitChanges:
    """The rows of all batches in memory that have deletions.

    :param taken: the hashes of the rows with negative weights, each once
    :param touched: the rows that have one of these hashes
    :param others: the other rows, each as often as its weight says
    """

    taken: Batch
    touched: Batch
    others: Batch


def split_changes(trace: Trace, key: Sequence[str], views: BatchViews) -> SplitChanges:
    """Split the batches in memory that have deletions, for :func:`merge_split`.

    :param trace: the trace of a relation; its other batches have only inserted rows
    :param key: the columns of the relation's primary key, none for all columns
    :param views: the views that run queries over batches
    """
    mixed = Batch.in_memory(trace.schema, pa.concat_tables([batch.to_arrow() for batch in _select_mixed(trace)]))
    rows, weights = mixed.to_arrow(), mixed.to_arrow()[WEIGHT]
    # One task returns the hashes in the order of the rows.
    hashes = views.result(f"SELECT {_hash_sql(trace, key)} AS {_HASH} FROM {views.table(mixed)} AS s").rows[_HASH]
    taken = pc.unique(hashes.filter(pc.less(weights, 0)))
    is_touched = pc.is_in(hashes, value_set=taken)
    others = rows.filter(pc.and_not(pc.greater(weights, 0), is_touched))
    places = pa.array((at for at, weight in enumerate(others[WEIGHT].to_pylist()) for _ in range(weight)), pa.int64())
    return SplitChanges(
        Batch.in_memory(_HASHES, pa.table({_HASH: taken, WEIGHT: _ones(len(taken))})),
        Batch.in_memory(trace.schema, rows.filter(is_touched)),
        Batch.in_memory(trace.schema, others.take(places).drop_columns([WEIGHT]).append_column(WEIGHT, _ones(len(places)))),
    )


def _ones(count: int) -> pa.Array:
    return pa.array([1] * count, pa.int64())


def merge_split(trace: Trace, key: Sequence[str], changes: SplitChanges, views: BatchViews) -> str:
    """Return the query of :func:`merge_on_read` for deletions that are in memory. Spark plans it faster.

    :param trace: the trace of the relation
    :param key: the columns of the relation's primary key, none for all columns
    :param changes: its batches with deletions, split
    :param views: the views that name the batches
    """
    taken = f"{views.table(changes.taken)} AS c ON {_hash_sql(trace, key)} = c.{_HASH}"
    inserted, columns = views.rows(_select_insert_only(trace)), _columns(trace)
    touched = f"({_BEGIN} {inserted} AS s LEFT SEMI JOIN {taken} UNION ALL SELECT * FROM {views.table(changes.touched)})"
    parts = (
        f"SELECT {columns} FROM ({_BEGIN} {inserted} AS s LEFT ANTI JOIN {taken})",
        f"SELECT {columns} FROM {views.table(changes.others)}",
        f"SELECT {columns} FROM ({_consolidate_sql(trace, touched)}) {_COPIES}",
    )
    return " UNION ALL ".join(parts)


def merge_on_read(trace: Trace, key: Sequence[str], views: BatchViews) -> str:
    """Return a query for the contents of a relation as a plain multiset.

    :param trace: the trace of the relation; it has columns, batches with and without deletions, and only weights are merged
    :param key: the columns of the relation's primary key, by which its rows are then identified; none for all columns
    :param views: the views that name the batches
    """
    hashed, columns = _hash_sql(trace, key), _columns(trace)
    mixed = views.rows(_select_mixed(trace))
    taken = f"(SELECT {hashed} AS {_HASH} FROM {mixed} AS s WHERE s.{WEIGHT} < 0) AS c ON {hashed} = c.{_HASH}"
    touched = f"({_BEGIN} {views.rows(trace.batches)} AS s LEFT SEMI JOIN {taken})"
    parts = (
        f"SELECT {columns} FROM ({_BEGIN} {views.rows(_select_insert_only(trace))} AS s LEFT ANTI JOIN {taken})",
        f"SELECT {columns} FROM ({_BEGIN} {mixed} AS s LEFT ANTI JOIN {taken} WHERE s.{WEIGHT} > 0) {_COPIES}",
        f"SELECT {columns} FROM ({_consolidate_sql(trace, touched)}) {_COPIES}",
    )
    return " UNION ALL ".join(parts)


def _select_insert_only(trace: Trace) -> tuple[Batch, ...]:
    return tuple(batch for batch in trace.batches if batch.insert_only)


def _select_mixed(trace: Trace) -> tuple[Batch, ...]:
    return tuple(batch for batch in trace.batches if not batch.insert_only)


def _columns(trace: Trace) -> str:
    return ", ".join(quote(name) for name in trace.columns)


def _hash_sql(trace: Trace, key: Sequence[str]) -> str:
    """Return the SQL expression of the hash of a row of ``s``."""
    kinds = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    return row_hash({f"s.{quote(name)}": kinds[name] for name in key or trace.columns})


def _consolidate_sql(trace: Trace, rows: str) -> str:
    """Return a query that consolidates rows in one task, and keeps those whose weight is positive."""
    kinds = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    groups = {name: grouping_key(f"s.{quote(name)}", kinds[name]) for name in trace.keys}
    made = {name: f"`__group{at}`" for at, name in enumerate(trace.keys) if groups[name] != f"s.{quote(name)}"}
    # Spark loses the single partitioning when it calls Python, so the grouping keys are computed before it is set.
    items = ", ".join(["s.*", *(f"{groups[name]} AS {group}" for name, group in made.items())])
    keys = (f"ANY_VALUE({quote(name)}) AS {quote(name)}" if name in made else quote(name) for name in trace.keys)
    by = ", ".join(made.get(name, quote(name)) for name in trace.keys)
    one = f"SELECT /*+ COALESCE(1) */ * FROM (SELECT {items} FROM {rows} AS s)"
    return f"SELECT {', '.join(keys)}, SUM({WEIGHT}) AS {WEIGHT} FROM ({one}) GROUP BY {by} HAVING SUM({WEIGHT}) > 0"
