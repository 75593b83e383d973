"""Finding the few rows of large relations that a small delta concerns, without a Spark job.

See :mod:`airflow_pipelines.engine.lookup.index` for how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.arrow import arrow_schema, can_group
from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.lookup.index import can_look_up, file_index, memory_index
from airflow_pipelines.engine.operators.context import RelationVersions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select

_COLUMN = re.compile(r"\(*(?:`((?:[^`]|``)+)`|(\w+))(?:\.(?:`((?:[^`]|``)+)`|(\w+)))?\)*")
_CAST = re.compile(r"CAST\((.*) AS ([^()]*(?:\([^()]*\))?)\)", re.DOTALL)


def matching_table(batches: Iterable[Batch], wanted: Any, columns: Sequence[str], limits: Limits) -> Any | None:
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


def _in_batch(batch: Batch, wanted: Any, columns: Sequence[str], most: int) -> Iterable[Any | None]:
    if batch.table is not None:
        yield memory_index.find(batch.number, batch.table, wanted, columns, most)
    elif batch.store is not None:
        index = file_index(batch.store)
        for file in batch.files:
            yield index.find(file, wanted, columns, most)


def matching_batch(
    batches: Sequence[Batch], schema: StructType, wanted: Any, limits: Limits, columns: Iterable[str] | None = None
) -> Batch | None:
    """The same as a batch in memory of ``schema``; columns other than ``columns`` are NULL.

    None when it is to be found by a scan.
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The distinct rows (a pyarrow Table of some columns) that are asked of a relation."""

    relation: str
    rows: Any


def wanted_of(node: Linear, keys: Iterable[tuple[str, str, Any]], relations: Mapping[str, RelationVersions]) -> Wanted | None:
    """What to ask of the relation below a node to find its rows with some keys; None when no key is a column of a relation.

    :param keys: of each part of the key its text over the node's columns, its type and its values; parts that are no columns are
        left out, so that more rows are found than have the key
    """
    relation: str | None = None
    columns: dict[str, Any] = {}
    for text, kind, values in keys:
        base = base_column(node, without_casts(text, kind))
        if base is not None and same_kind(type_text(relations[base[0]].before.schema[base[1]].dataType), kind):
            relation = base[0]
            columns.setdefault(base[1], values)
    return None if relation is None else Wanted(relation, distinct_rows(columns))


def distinct_rows(columns: Mapping[str, Any]) -> Any:
    """The distinct rows of some columns, as a pyarrow Table; all rows where a type cannot be grouped, nor looked up then."""
    rows = pa.table(dict(columns))
    return rows if not can_group(rows.schema) else rows.group_by(list(columns), use_threads=False).aggregate([])


def read_columns(node: Linear, relation: str) -> frozenset[str] | None:
    """The columns of ``relation`` that a node may read: those whose name occurs in one of its texts; None for all."""
    match node:
        case Scan():
            return frozenset(node.columns) if node.relation == relation else frozenset()
        case Select() if len(node.sources) == 1 and isinstance(node.sources[0].node, Scan):
            text = " ".join([*(item.text for item in node.items), node.where or "", *node.laterals])
            return frozenset(name for name in node.sources[0].node.columns if name in text)
    return None


def base_column(node: Linear, text: str) -> tuple[str, str] | None:
    """The relation and its column that a text over a node's columns is, when it is nothing else.

    :param text: an expression over the node's columns by their bare names, or by ``alias.column``
    """
    name = column_named(text)
    match node:
        case Scan() if name in node.columns:
            return node.relation, str(name)
        case Select() if len(node.sources) == 1 and not node.laterals:
            for item in node.items:
                if item.name == name:
                    return base_column(node.sources[0].node, item.text)
    return None


def column_named(text: str) -> str | None:
    """The column that an expression is, when it is only that."""
    found = _COLUMN.fullmatch(text.strip())
    if found is None:
        return None
    name = found[3] or found[4] or found[1] or found[2]
    return str(name).replace("``", "`")


def without_casts(text: str, kind: str) -> str:
    """An expression without the casts to ``kind`` around it."""
    found = _CAST.fullmatch(text)
    while found is not None and found[2].strip().lower() == kind.lower():
        text = found[1]
        found = _CAST.fullmatch(text)
    return text


def same_kind(one: str, other: str) -> bool:
    """Whether values of two Spark types are equal exactly when they are after a cast to either type that succeeds."""
    return one == other or {one, other} <= {"tinyint", "smallint", "int", "bigint"}
