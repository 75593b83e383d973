"""Rows in Arrow tables: their types, and the conversion of values to the types of a schema."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray


def cast_to_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns that a schema names, cast to its types.

    :param table: a table with at least these columns
    :param schema: names and types of the columns
    :raises ValueError: when a VARIANT lacks one of its parts
    """
    columns = []
    for column in schema:
        values = table[column.name]
        if _has_variant(column.type):
            chunks = [_cast_array(pa.concat_arrays([chunk]), column.type) for chunk in values.chunks]
            values = pa.chunked_array(chunks, column.type)
        columns.append(values if values.type == column.type else values.cast(column.type))
    return pa.table(columns, schema=schema)


def _has_variant(kind: pa.DataType) -> bool:
    if is_variant(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_variant(kind.field(at).type) for at in range(kind.num_fields))


def is_variant(kind: pa.DataType) -> bool:
    """Return True if an Arrow type is the one in which Spark represents a VARIANT."""
    if not pa.types.is_struct(kind) or kind.get_field_index("metadata") < 0:
        return False
    return bool((kind.field("metadata").metadata or {}).get(b"variant") == b"true")


def _cast_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast an array to a type, with every VARIANT in Spark's form, whose parts are not nullable, so those of a NULL are empty."""
    if not _has_variant(kind):
        return array if array.type == kind else array.cast(kind)
    if is_variant(kind):
        pieces = [pc.struct_field(array, field.name).cast(field.type) for field in kind]
        if any(part.null_count > array.null_count for part in pieces):
            raise ValueError("a VARIANT lacks its value or its metadata; was it written in typed pieces (shredded)?")
        parts = [part.fill_null(b"") for part in pieces]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_struct(kind):
        parts = [_cast_array(pc.struct_field(array, [at]), field.type) for at, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        keys, items = _cast_array(array.keys, kind.key_type), _cast_array(array.items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, _cast_array(array.values, kind.value_type), type=kind, mask=array.is_null())


def fixed_width(schema: pa.Schema) -> int | None:
    """Return the bytes that each row of a schema takes in memory, or None if they depend on its values.

    :param schema: the columns
    """
    bits = 0
    for column in schema:
        if not (pa.types.is_primitive(column.type) or pa.types.is_decimal(column.type)):
            return None
        # One bit is for the validity.
        bits += 1 + int(column.type.bit_width)
    return -(-bits // 8)
