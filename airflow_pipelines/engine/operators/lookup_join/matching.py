"""Finding the few rows of large relations that a small delta concerns, without a Spark job.

See :mod:`airflow_pipelines.engine.lookup.index` for how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.lookup.index import can_look_up, file_index, memory_index
from airflow_pipelines.engine.operators.comparisons import WHOLE_NUMBERS
from airflow_pipelines.engine.operators.relation_versions import RelationVersions
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.zsets import can_group
from airflow_pipelines.sql.plan.ir.lookup import Lookup


def matching_table(batches: Iterable[Batch], wanted: pa.Table, columns: Sequence[str], limits: Limits) -> pa.Table | None:
    """The stored rows of some batches (not added up) that agree with a row of ``wanted`` in all its columns.

    :param wanted: pyarrow Table of distinct rows, NULL agrees with NULL
    :param columns: the columns of the result; the weight is one of them
    :returns: a pyarrow Table, or None when a type has no index, or so much is asked for or found that a scan is better
    """
    if wanted.num_rows > limits.small_rows or not all(can_look_up(column.type) for column in wanted.columns):
        return None
    parts, left = [], limits.fan_out
    for batch in batches:
        if not batch.rows:
            continue
        types = arrow_schema(batch.schema)
        try:
            asked = pa.table({name: wanted[name].cast(types.field(name).type) for name in wanted.column_names})
        except pa.ArrowInvalid:
            # A value that the stored type does not have.
            return None
        for found in _in_batch(batch, asked, columns, left):
            if found is None:
                return None
            parts.append(found.cast(pa.schema([types.field(name) for name in columns])))
            left -= found.num_rows
            if left < 0:
                return None
    return pa.concat_tables(parts) if parts else None


def _in_batch(batch: Batch, wanted: pa.Table, columns: Sequence[str], most: int) -> Iterable[pa.Table | None]:
    if batch.table is not None:
        yield memory_index.find(batch.number, batch.table, wanted, columns, most)
    elif batch.store is not None:
        index = file_index(batch.store)
        for file in batch.files:
            yield index.find(file, wanted, columns, most)


def matching_batch(
    batches: Sequence[Batch], schema: StructType, wanted: pa.Table, limits: Limits, columns: Iterable[str] | None = None
) -> Batch | None:
    """The rows of :func:`matching_table` as a batch in memory.

    :param batches: where to look
    :param schema: the columns of the batches and of the result, the weight included
    :param wanted: the keys to look for, one column for each part of the key
    :param limits: says how much is looked up
    :param columns: those that are read; the others are NULL in the result. None for all.
    :returns: the rows; None when they are to be found by a scan
    """
    arrow = arrow_schema(schema)
    if not any(batch.rows for batch in batches):
        return Batch.empty(schema)
    kept = [name for name in arrow.names if columns is None or name in columns or name == WEIGHT]
    found = matching_table(batches, wanted, kept, limits)
    if found is None:
        return None
    filled = [found[name] if name in kept else pa.nulls(found.num_rows, arrow.field(name).type) for name in arrow.names]
    return Batch.in_memory(schema, pa.table(filled, names=arrow.names))


def limits_of_groups(batches: Iterable[Batch], limits: Limits) -> Limits:
    """The limits by which the stored rows of groups are looked up, which may be many more than those of few rows.

    :param batches: have the rows
    :param limits: those of few rows
    """
    most = limits.most_groups(max((batch.row_bytes for batch in batches), default=0))
    return replace(limits, small_rows=most, fan_out=most)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The distinct rows of some columns that are asked of a relation."""

    relation: str
    rows: pa.Table


_INSTANTS = frozenset({"timestamp", "timestamp_ntz"})
"""Of one a session's time zone makes the other, which is UTC; so does Arrow."""


def wanted_of(
    lookup: Lookup | None, kinds: Sequence[str], values: Sequence[Any], relations: Mapping[str, RelationVersions]
) -> Wanted | None:
    """What to ask of the relation below a node to find its rows with some keys; None when no part of the key can be looked up.

    :param lookup: by which columns the rows are looked up; parts of the key without a column are left out, so that more rows are
        found than have the key
    :param kinds: the types of the parts of the key
    :param values: their values, a column each
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
    return Wanted(lookup.relation, distinct_rows(columns)) if columns else None


def distinct_rows(columns: Mapping[str, ArrowColumn]) -> pa.Table:
    """The distinct rows of some columns; all rows where a type cannot be grouped, nor looked up then."""
    rows = pa.table(dict(columns))
    return rows if not can_group(rows.schema) else rows.group_by(list(columns), use_threads=False).aggregate([])


def same_kind(one: str, other: str) -> bool:
    """Whether values of two Spark types are equal exactly when they are after a cast to either type that succeeds."""
    return one == other or {one, other} <= WHOLE_NUMBERS
