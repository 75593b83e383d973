"""Takes STRUCTs apart into their fields, by which Arrow can group rows, and puts them together again."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.rows.zsets import can_group

_PREFIX = "\0"
"""No column of a user's begins with it."""


def can_group_flat(schema: pa.Schema) -> bool:
    """Whether pyarrow can group by all columns of a schema when their STRUCTs are taken apart.

    :param schema: the columns
    """
    return all(_can_group_flat(column) for column in schema)


def without_structs(table: pa.Table, kept: Collection[str]) -> pa.Table:
    """A table with the fields of each STRUCT in its place, and before them whether there is one: NULL is no STRUCT of NULLs.

    :param table: any rows
    :param kept: columns that stay as they are
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for at, name in enumerate(table.column_names):
        column = table.column(at)
        columns |= _parts(column, f"{_PREFIX}{at}") if pa.types.is_struct(column.type) and name not in kept else {name: column}
    return pa.table(columns)


def with_structs(table: pa.Table, schema: pa.Schema, kept: Collection[str]) -> pa.Table:
    """The rows of a table that :func:`without_structs` made.

    :param table: the rows
    :param schema: the columns that there were
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
    # The fields of what is NULL become NULL.
    for at, field in enumerate(column.flatten()):
        parts |= _parts(field, f"{name}.{at}")
    return parts


def _whole(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return table[name].combine_chunks()
    fields = [_whole(table, f"{name}.{at}", field.type) for at, field in enumerate(kind)]
    missing = pc.invert(table[f"{name}?"]).combine_chunks()
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=missing)
