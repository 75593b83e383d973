"""The columns of a relation as Parquet files, and tables made of them, hold them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.formats.encode import json_texts
from airflow_pipelines.rows.schema import Column, arrow_type
from airflow_pipelines.rows.types import ColumnType


class ColumnProblem(ValueError):
    """The error for a column that a table cannot have; its message says which, why, and what to do."""


def table_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of the table that holds a relation's columns.

    :raises ColumnProblem: when there is none
    """
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.name.lower(), column.name)
        if other != column.name:
            raise ColumnProblem(
                f"columns {other!r} and {column.name!r} differ in case only, which tables of a lake cannot tell apart; rename one "
                "in the view"
            )
    return pa.schema([pa.field(column.name, _type(column.type, column.name)) for column in columns])


def _type(kind: ColumnType, column: str) -> pa.DataType:
    if kind.is_null:
        raise ColumnProblem(f"column {column!r} is always NULL and has no type; give it one with CAST(NULL AS ...)")
    if kind.is_time or kind.is_variant or kind.is_interval:
        return pa.string()
    if kind.component is not None:
        return pa.list_(pa.field("element", _type(kind.component, column)))
    if kind.key is not None and kind.value is not None:
        return pa.map_(_type(kind.key, column), _type(kind.value, column))
    if kind.fields is not None:
        return pa.struct([pa.field(name, _type(inner, column)) for name, inner in kind.fields])
    return arrow_type(kind)


def table_rows(rows: pa.Table, columns: Sequence[Column], schema: pa.Schema) -> pa.Table:
    """Return rows of a relation as its table holds them.

    :param rows: the rows, with intervals as texts; columns that are not the relation's are left out
    :param columns: the columns of the relation
    :param schema: the schema of the table, as :func:`table_schema` returns it
    """
    chunked = [_column(rows.column(column.name), column.type, schema.field(column.name).type) for column in columns]
    return pa.Table.from_arrays(chunked, schema=schema)


def _column(values: pa.ChunkedArray, kind: ColumnType, wanted: pa.DataType) -> pa.ChunkedArray:
    if not _has_texts(kind):
        return values if values.type == wanted else values.cast(wanted)
    return pa.chunked_array([_array(chunk, kind, wanted) for chunk in values.chunks], wanted)


def _has_texts(kind: ColumnType) -> bool:
    return kind.is_time or kind.is_variant or any(map(_has_texts, kind.parts))


def _array(array: pa.Array, kind: ColumnType, wanted: pa.DataType) -> pa.Array:
    if not _has_texts(kind):
        return array if array.type == wanted else array.cast(wanted)
    if kind.is_time:
        return array.cast(pa.time64("us")).cast(pa.string())
    if kind.is_variant:
        texts = json_texts(pa.chunked_array([array]))
        return pa.array([text if valid else None for text, valid in zip(texts, array.is_valid().to_pylist(), strict=True)], wanted)
    # Copy the array: a slice still has all values, and its validity bitmap has an offset.
    array = pa.concat_arrays([array])
    if kind.fields is not None:
        parts = [_array(pc.struct_field(array, [at]), inner, wanted.field(at).type) for at, (_, inner) in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=array.is_null())
    if kind.key is not None and kind.value is not None:
        keys, items = _array(array.keys, kind.key, wanted.key_type), _array(array.items, kind.value, wanted.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=array.is_null())
    component = kind.component
    if component is None:
        raise TypeError(f"{kind} has no components")
    return pa.ListArray.from_arrays(
        array.offsets, _array(array.values, component, wanted.value_type), type=wanted, mask=array.is_null()
    )
