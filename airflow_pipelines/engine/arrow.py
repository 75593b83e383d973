"""Z-set arithmetic in the driver on Arrow tables: rows with weights are merged, compared and cast."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from airflow_pipelines.engine.spark.arrow_frames import arrow_schema_of
from airflow_pipelines.engine.values.intervals import numbered
from airflow_pipelines.sql.plan.ir.merge import Merge

WEIGHT = "__weight"
"""The column with a row's weight: how often the row is added (positive) or removed (negative). A bigint, last in every batch."""
VERSION = "__version"
"""The column of a state that says which of several rows of the same key is the newest: a bigint."""
SEQUENCE = "__sequence"
"""The column that says in which order rows have arrived, where an operator depends on it: a bigint before the weight."""
WEIGHTS_ADD_UP: Mapping[str, Merge] = MappingProxyType({WEIGHT: Merge.SUM})
"""How the rows of a relation are merged."""
_PLACE = "__place"


# A schema stays as long as it is known here, so that no other one gets its id. To compare schemas takes as long as to convert one.
_known: LRUCache[int, tuple[StructType, pa.Schema]] = LRUCache(1_000)
_lock = threading.Lock()
ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray
RowKey: TypeAlias = tuple[Any, ...]
"""A row's values in a form that can be a key of a dictionary."""


def relaxed(schema: StructType) -> StructType:
    """The schema with NULL allowed everywhere but in the keys of maps.

    Spark infers nullability, and infers it differently for each query. Arrow refuses a NULL struct that has a field without NULL.
    """
    fields = [StructField(field.name, _relaxed(field.dataType), nullable=True) for field in schema.fields]
    return StructType(fields)


def _relaxed(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return relaxed(kind)
        case ArrayType():
            return ArrayType(_relaxed(kind.elementType), containsNull=True)
        case MapType():
            return MapType(_relaxed(kind.keyType), _relaxed(kind.valueType), valueContainsNull=True)
        case _:
            return kind


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of batches that have a Spark schema.

    :param schema: the columns; they must not be changed afterwards
    """
    with _lock:
        known = _known.get(id(schema))
    if known is None:
        known = schema, arrow_schema_of(cast(StructType, numbered(relaxed(schema))))
        with _lock:
            _known[id(schema)] = known
    return known[1]


def shaped(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns that ``schema`` names, cast to its types."""
    columns = []
    for column in schema:
        found = table[column.name]
        if _has_variant(column.type):
            chunks = [_shaped(pa.concat_arrays([chunk]), column.type) for chunk in found.chunks]
            found = pa.chunked_array(chunks, column.type)
        columns.append(found if found.type == column.type else found.cast(column.type))
    return pa.table(columns, schema=schema)


def _has_variant(kind: pa.DataType) -> bool:
    if is_variant(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_variant(kind.field(at).type) for at in range(kind.num_fields))


def is_variant(kind: pa.DataType) -> bool:
    """Whether an Arrow type is the one in which Spark represents a VARIANT."""
    if not pa.types.is_struct(kind) or kind.get_field_index("metadata") < 0:
        return False
    return bool((kind.field("metadata").metadata or {}).get(b"variant") == b"true")


def _shaped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array cast to a type, with every VARIANT in Spark's form: its parts are not nullable, so those of a NULL are empty."""
    if not _has_variant(kind):
        return array if array.type == kind else array.cast(kind)
    if is_variant(kind):
        found = [pc.struct_field(array, field.name).cast(field.type) for field in kind]
        if any(part.null_count > array.null_count for part in found):
            raise ValueError("a VARIANT lacks its value or its metadata; was it written in typed pieces (shredded)?")
        parts = [part.fill_null(b"") for part in found]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_struct(kind):
        parts = [_shaped(pc.struct_field(array, [at]), field.type) for at, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        keys, items = _shaped(array.keys, kind.key_type), _shaped(array.items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, _shaped(array.values, kind.value_type), type=kind, mask=array.is_null())


def can_group(schema: pa.Schema) -> bool:
    """Whether pyarrow can group by all columns of a schema; it cannot group by nested ones."""
    return not any(pa.types.is_nested(column.type) or pa.types.is_null(column.type) for column in schema)


def fixed_width(schema: pa.Schema) -> int | None:
    """The bytes that each row of a schema takes in memory; None where they are as many as its values need.

    :param schema: the columns
    """
    bits = 0
    for column in schema:
        if not (pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)):
            return None
        # One says whether there is a value.
        bits += 1 + int(column.type.bit_width)
    return -(-bits // 8)


def consolidate_groupable(table: pa.Table, merges: Mapping[str, Merge] = WEIGHTS_ADD_UP) -> pa.Table:
    """Merge rows of the same key, and drop rows whose sums are all 0.

    A row of weight 0 that has another sum stays: it changes an accumulator of a row in another batch. Floating-point numbers are
    compared bit by bit.

    :param table: rows whose key columns pass :func:`can_group`
    :param merges: by column, how values become one; all other columns are the key
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
    """Merge equal rows; ``newest`` columns have the values of the row with the greatest version."""
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
    for at, (key, weight) in enumerate(zip(row_keys(table.select(names)), table[WEIGHT].to_pylist(), strict=True)):
        weights[key] = weights.get(key, 0) + weight
        first.setdefault(key, at)
    kept = [key for key, weight in weights.items() if weight]
    rows = table.take(pa.array([first[key] for key in kept], pa.int64()))
    return rows.set_column(rows.num_columns - 1, WEIGHT, pa.array([weights[key] for key in kept], pa.int64()))


def row_keys(rows: pa.Table) -> list[RowKey]:
    """A key for each row. Rows in canonical form have equal keys when no function of SQL can tell them apart."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    columns = [[_frozen(value) for value in rows[name].to_pylist()] for name in rows.column_names]
    return list(zip(*columns, strict=True))


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
