"""The search for the few rows of large relations that a small delta affects, without a Spark job.

See :mod:`airflow_pipelines.engine.lookup.index` for the indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.lookup.index import can_look_up, file_index, memory_index
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.type_text import WHOLE_NUMBERS, type_text
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.zsets import can_group
from airflow_pipelines.sql.plan.ir.lookup import Lookup


def matching_table(batches: Iterable[Batch], wanted: pa.Table, columns: Sequence[str], limits: Limits) -> pa.Table:
    """Return the stored rows of some batches, not consolidated, that agree with a row of ``wanted`` in all its columns.

    :param batches: the batches to search, of which at least one has rows
    :param wanted: distinct rows; NULL agrees with NULL
    :param columns: the columns of the result; the weight is one of them
    :param limits: the limits of lookups
    :raises Declined: if a type has no index, or if so many rows are wanted or found that a scan is better
    """
    Budget(limits.small_rows).require(wanted.num_rows)
    if not all(can_look_up(column.type) for column in wanted.columns):
        raise Declined("a type has no index")
    parts, budget = list[pa.Table](), Budget(limits.fan_out)
    for batch in batches:
        if not batch.rows:
            continue
        types = arrow_schema(batch.schema)
        try:
            asked = pa.table({name: wanted[name].cast(types.field(name).type) for name in wanted.column_names})
        except pa.ArrowInvalid:
            raise Declined("the stored type cannot represent a wanted value") from None
        kinds = pa.schema([types.field(name) for name in columns])
        parts += [rows.cast(kinds) for rows in _find_in_batch(batch, asked, columns, budget)]
    if not parts:
        raise Declined("there are no rows")
    return pa.concat_tables(parts)


def _find_in_batch(batch: Batch, wanted: pa.Table, columns: Sequence[str], budget: Budget) -> Iterable[pa.Table]:
    if batch.table is not None:
        yield memory_index.find(batch.number, batch.table, wanted, columns, budget)
    elif batch.store is not None:
        index = file_index(batch.store)
        for file in batch.files:
            yield index.find(file, wanted, columns, budget)


def matching_batch(
    batches: Sequence[Batch], schema: StructType, wanted: pa.Table, limits: Limits, columns: Iterable[str] | None = None
) -> Batch:
    """Return the rows of :func:`matching_table` as a batch in memory.

    :param batches: the batches to search
    :param schema: the columns of the batches and of the result, the weight included
    :param wanted: the keys to look for, one column for each part of the key
    :param limits: the limits of lookups
    :param columns: the columns to read; the others are NULL in the result. None for all.
    :raises Declined: if a scan is needed to find them
    """
    arrow = arrow_schema(schema)
    if not any(batch.rows for batch in batches):
        return Batch.empty(schema)
    kept = [name for name in arrow.names if columns is None or name in columns or name == WEIGHT]
    rows = matching_table(batches, wanted, kept, limits)
    filled = [rows[name] if name in kept else pa.nulls(rows.num_rows, arrow.field(name).type) for name in arrow.names]
    return Batch.in_memory(schema, pa.table(filled, names=arrow.names))


def limits_of_groups(batches: Iterable[Batch], limits: Limits) -> Limits:
    """Return the limits for looking up the stored rows of groups, which are higher than those for few rows.

    :param batches: the batches with the rows
    :param limits: the limits for few rows
    """
    most = limits.most_groups(max((batch.row_bytes for batch in batches), default=0))
    return replace(limits, small_rows=most, fan_out=most)


@dataclass(frozen=True, slots=True)
class WantedValues:
    """The distinct values of some columns to look up in a relation."""

    relation: str
    rows: pa.Table


_INSTANTS = frozenset({"timestamp", "timestamp_ntz"})
"""The timestamp types. The session's time zone, UTC, converts one to the other; so does Arrow."""


def wanted_of(
    lookup: Lookup | None, kinds: Sequence[str], values: Sequence[Any], relations: Mapping[str, RelationVersions]
) -> WantedValues | None:
    """Return the lookup for rows with some keys in the relation below a node, or None if no part of the key can be looked up.

    :param lookup: the columns by which the rows are looked up; parts of the key without a column are left out, so that more rows
        are found than have the key
    :param kinds: the types of the parts of the key
    :param values: the values of the parts, a column each
    :param relations: the versions of all relations
    """
    if lookup is None:
        return None
    schema = relations[lookup.relation].before.schema
    columns: dict[str, ArrowColumn] = {}
    for column, kind, value in zip(lookup.columns, kinds, values, strict=True):
        own = type_text(schema[column].dataType) if column is not None else ""
        if column is not None and (same_kind(own, kind) or {own, kind} == _INSTANTS):
            columns.setdefault(column, value)
    return WantedValues(lookup.relation, distinct_rows(columns)) if columns else None


def distinct_rows(columns: Mapping[str, ArrowColumn]) -> pa.Table:
    """Return the distinct rows of some columns.

    All rows are returned if a type cannot be grouped; it cannot be looked up either.
    """
    rows = pa.table(dict(columns))
    return rows if not can_group(rows.schema) else rows.group_by(list(columns), use_threads=False).aggregate([])


def same_kind(one: str, other: str) -> bool:
    """Return True if two values of two Spark types are equal exactly when they are equal after a successful cast to either type."""
    return one == other or {one, other} <= WHOLE_NUMBERS
