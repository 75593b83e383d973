"""Z-set arithmetic on Arrow tables: rows with weights are merged and compared.

The weight of a row is the number of times that it is added or removed; a relation's change is a table of such rows (Budiu et al.,
DBSP: Automatic Incremental View Maintenance for Rich Query Languages, VLDB 2023).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.python_values import python_values


class Merge(Enum):
    """The aggregate that merges the values of a state's column for the same key.

    ``SUM``: the sum. ``MIN`` and ``MAX``: the least or the greatest value; NULL means no value yet, and no value can be retracted.
    ``NEWEST``: the value that was written last.
    """

    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    NEWEST = "NEWEST"


WEIGHT = "__weight"
"""The column with the weight of a row: how often the row is added (positive) or removed (negative).

A bigint, last in every batch.
"""
VERSION = "__version"
"""The column of a state with the version of a row, a bigint: the greatest of several rows of the same key is the newest."""
SEQUENCE = "__sequence"
"""The column with the arrival order of rows, if an operator depends on it: a bigint before the weight."""
WEIGHTS_ADD_UP: Mapping[str, Merge] = MappingProxyType({WEIGHT: Merge.SUM})
"""The merge of a relation's rows: weights of equal rows add up."""
_PLACE = "__place"


RowKey: TypeAlias = tuple[Any, ...]
"""A row's values in a form that can be a key of a dictionary."""


def can_group(schema: pa.Schema) -> bool:
    """Return True if pyarrow can group by all columns of a schema; it cannot group by nested ones."""
    return not any(pa.types.is_nested(column.type) or pa.types.is_null(column.type) for column in schema)


def consolidate_groupable(table: pa.Table, merges: Mapping[str, Merge] = WEIGHTS_ADD_UP) -> pa.Table:
    """Merge rows of the same key, and drop rows whose sums are all 0.

    A row of weight 0 with another sum stays, because it changes an accumulator of a row in another batch. Floating-point numbers
    are compared bit by bit.

    :param table: rows whose key columns pass :func:`can_group`
    :param merges: the merge of each column; all other columns are the key
    """
    merged = merge_groupable(table, merges)
    added = [name for name, merge in merges.items() if merge is Merge.SUM]
    changes = [pc.not_equal(merged[name], pa.scalar(0, pa.int64()).cast(merged[name].type)) for name in added]
    return merged.filter(functools.reduce(pc.or_, changes))


def merge_groupable(table: pa.Table, merges: Mapping[str, Merge]) -> pa.Table:
    """Merge equal rows and keep all of them; see :func:`consolidate_groupable`."""
    newest = [name for name, merge in merges.items() if merge is Merge.NEWEST]
    if newest:
        return _merge_by_version(table, merges, newest)
    # A dict, because tables may have thousands of columns.
    keys = dict.fromkeys(name for name in table.column_names if name not in merges)
    functions = {name: merge.value.lower() for name, merge in merges.items()}
    grouped = table.group_by(list(keys), use_threads=False).aggregate(list(functions.items()))
    columns = [grouped[name] if name in keys else grouped[f"{name}_{functions[name]}"] for name in table.column_names]
    return pa.table(columns, names=table.column_names).cast(table.schema)


def _merge_by_version(table: pa.Table, merges: Mapping[str, Merge], newest: Sequence[str]) -> pa.Table:
    """Merge equal rows; ``newest`` columns get the values of the row with the greatest version."""
    ordered = table.sort_by(VERSION)
    numbered = ordered.drop_columns(list(newest)).append_column(_PLACE, pa.array(np.arange(ordered.num_rows)))
    others = {name: merge for name, merge in merges.items() if merge is not Merge.NEWEST}
    merged = merge_groupable(numbered, {**others, _PLACE: Merge.MAX})
    last = ordered.take(merged[_PLACE])
    return pa.table([last[name] if name in newest else merged[name] for name in table.column_names], schema=table.schema)


def consolidate(table: pa.Table) -> pa.Table:
    """Add up the weights of equal rows, and drop rows of weight 0. The columns may have any type."""
    names = [name for name in table.column_names if name != WEIGHT]
    if can_group(table.select(names).schema):
        return consolidate_groupable(table)
    weights: dict[RowKey, int] = {}
    first: dict[RowKey, int] = {}
    for at, (key, weight) in enumerate(zip(row_keys(table.select(names)), python_values(table[WEIGHT]), strict=True)):
        weights[key] = weights.get(key, 0) + weight
        first.setdefault(key, at)
    kept = [key for key, weight in weights.items() if weight]
    rows = table.take(pa.array([first[key] for key in kept], pa.int64()))
    return rows.set_column(rows.num_columns - 1, WEIGHT, pa.array([weights[key] for key in kept], pa.int64()))


def row_keys(rows: pa.Table) -> list[RowKey]:
    """Return a key for each row. Rows in canonical form have equal keys if no SQL function can distinguish them."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*map(_key_values, rows.columns), strict=True))


def _key_values(column: pa.ChunkedArray) -> list[Any]:
    values = python_values(column)
    has_one_form = not pa.types.is_nested(column.type) and not pa.types.is_floating(column.type)
    return values if has_one_form else list(map(_frozen, values))


def _frozen(value: Any) -> Any:
    match value:
        case float():
            # NaN is not equal to itself.
            return ("NaN", float) if value != value else value
        case dict():
            return tuple(map(_frozen, value.values()))
        case list() | tuple():
            return tuple(map(_frozen, value))
        case _:
            return value
