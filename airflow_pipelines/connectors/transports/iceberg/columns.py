"""The columns of a relation as an Iceberg table holds them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

import pyarrow as pa
import pyarrow.types as pat

from airflow_pipelines.connectors.transports.lake.columns import table_rows, table_schema
from airflow_pipelines.rows.schema import Column

_SMALL = (pa.int8(), pa.int16())


def iceberg_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of the table that holds a relation's columns.

    :param columns: the columns of the relation
    :raises ColumnProblem: when a column has no counterpart
    """
    plain = table_schema(columns)
    return pa.schema([pa.field(field.name, _type(field.type, column)) for field, column in zip(plain, columns, strict=True)])


def with_required(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the schema with some columns marked as never NULL.

    :param schema: the schema of a table
    :param names: the names of the columns; names that are not in the schema are ignored
    """
    return pa.schema([field.with_nullable(field.nullable and field.name not in names) for field in schema])


def as_iceberg(rows: pa.Table, columns: Sequence[Column], schema: pa.Schema) -> pa.Table:
    """Return rows of a relation as its table holds them.

    :param rows: the rows, with intervals as texts; columns that are not the relation's are left out
    :param columns: the columns of the relation
    :param schema: the schema of the table, as :func:`iceberg_schema` returns it
    :raises ValueError: for a value that the column of the table does not have
    """
    texts = table_rows(rows, columns, table_schema(columns))
    arrays = []
    for column, values, field in zip(columns, texts.columns, schema, strict=True):
        # Times of the day within other values are texts, as in Delta tables.
        given = rows.column(column.name) if column.type.is_time else values
        values = given if given.type == field.type else given.cast(field.type)
        _check(values, field)
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=schema)


def _check(values: pa.ChunkedArray, field: pa.Field) -> None:
    if not field.nullable and values.null_count:
        raise ValueError(f"column {field.name!r} must not be NULL in the table")
    try:
        # A text that is not UTF-8 would abort the process, and not only the call, when the library computes partitions.
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {field.name!r}: {error}") from error


def plain_uuids(rows: pa.Table) -> pa.Table:
    """Return rows of a table with UUIDs as texts; the library gives them in a type of their own."""
    for place, field in enumerate(rows.schema):
        if isinstance(field.type, pa.UuidType):
            values = rows.column(place).cast(pa.binary(16)).to_pylist()
            texts = [None if value is None else str(UUID(bytes=value)) for value in values]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
    return rows


def _type(kind: pa.DataType, column: Column) -> pa.DataType:
    if column.type.is_time:
        return pa.time64("us")
    return _widen(kind)


def _widen(kind: pa.DataType) -> pa.DataType:
    """Return the type with integers of at least 32 bits, which are the smallest that Iceberg has."""
    if kind in _SMALL:
        return pa.int32()
    if pat.is_map(kind):
        return pa.map_(_widen(kind.key_type), _widen(kind.item_type))
    if pat.is_list(kind):
        return pa.list_(pa.field("element", _widen(kind.value_type)))
    if pat.is_struct(kind):
        return pa.struct([pa.field(field.name, _widen(field.type)) for field in kind])
    return kind
