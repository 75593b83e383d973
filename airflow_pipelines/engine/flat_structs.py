"""Conversion of STRUCT columns to flat columns, by which Arrow can group rows, and back."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.zsets import can_group

_PREFIX = "\0"
"""The prefix of the flat columns, with which no column of a user begins."""


def can_group_flat(schema: pa.Schema) -> bool:
    """Return True if pyarrow can group by all columns of a schema once their STRUCTs are flattened.

    :param schema: the columns
    """
    return all(_can_group_flat(column) for column in schema)


def without_structs(table: pa.Table, kept: Collection[str]) -> pa.Table:
    """Return a table with each STRUCT replaced by its fields, and before them a column that is True where the STRUCT is not NULL.

    The column tells a NULL from a STRUCT of NULLs.

    :param table: any rows
    :param kept: columns that stay as they are
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        columns |= _parts(column, f"{_PREFIX}{at}") if pa.types.is_struct(column.type) and name not in kept else {name: column}
    return pa.table(columns)


def with_structs(table: pa.Table, schema: pa.Schema, kept: Collection[str]) -> pa.Table:
    """Rebuild the STRUCTs of a table that :func:`without_structs` flattened.

    :param table: the rows
    :param schema: the original columns
    :param kept: columns that stayed as they were
    """
    columns = [
        _whole(table, f"{_PREFIX}{at}", field.type)
        if pa.types.is_struct(field.type) and field.name not in kept
        else table[field.name]
        for at, field in enumerate(schema)
    ]
    return pa.table(columns, schema=schema)


def _can_group_flat(column: pa.Field) -> bool:
    if pa.types.is_struct(column.type):
        return all(_can_group_flat(field) for field in column.type)
    return can_group(pa.schema([column]))


def _parts(column: pa.ChunkedArray, name: str) -> dict[str, pa.ChunkedArray]:
    if not pa.types.is_struct(column.type):
        return {name: column}
    parts = {f"{name}?": column.is_valid()}
    # The fields of a NULL struct become NULL.
    for at, field in enumerate(column.flatten()):
        parts |= _parts(field, f"{name}.{at}")
    return parts


def _whole(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return table[name].combine_chunks()
    fields = [_whole(table, f"{name}.{at}", field.type) for at, field in enumerate(kind)]
    missing = pc.invert(table[f"{name}?"]).combine_chunks()
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=missing)
