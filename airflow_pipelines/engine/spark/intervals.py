"""Intervals of Spark in Arrow tables, and as text.

Batches hold day-time intervals as Arrow durations in microseconds, and year-month intervals as 32-bit numbers of months: Arrow's
own type for months has the same bytes, but pyarrow cannot read its values. Rows that leave the engine have intervals as ISO 8601
text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from airflow_pipelines.rows.interval_texts import calendar_text, microseconds_text, months_text

_MONTHS = "month_interval"
"""The name of pyarrow's type of months, whose values it cannot read."""


def has_months(kind: DataType) -> bool:
    """Return True if a type is a year-month interval or holds one."""
    return _holds(kind, (YearMonthIntervalType,))


def numbered(kind: DataType) -> DataType:
    """Return the type with year-month intervals as integers, as batches hold them."""
    match kind:
        case YearMonthIntervalType():
            return IntegerType()
        case StructType():
            fields = [StructField(field.name, numbered(field.dataType), field.nullable, field.metadata) for field in kind.fields]
            return StructType(fields)
        case ArrayType():
            return ArrayType(numbered(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(numbered(kind.keyType), numbered(kind.valueType), kind.valueContainsNull)
        case _:
            return kind


def readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a record batch from Spark, with months as integers."""
    if _MONTHS not in str(batch.schema):
        return batch
    return pa.ipc.read_record_batch(batch.serialize(), readable_schema(batch.schema))


def readable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a record batch that Spark handed out, with months as integers."""
    if _MONTHS not in str(schema):
        return schema
    return pa.schema([field.with_type(_numbers(field.type)) for field in schema])


def _numbers(kind: pa.DataType) -> pa.DataType:
    if str(kind) == _MONTHS:
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_numbers(kind.key_type)), kind.item_field.with_type(_numbers(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers(kind.value_type)))
    return kind


def format_intervals(table: pa.Table, schema: StructType) -> pa.Table:
    """Return a table with its intervals, including nested ones, as ISO 8601 text such as ``P1DT2H`` and ``-P1Y3M``.

    :param schema: the Spark types of columns by name; other columns stay as they are
    """
    for field in schema.fields:
        at = table.schema.get_field_index(field.name)
        if at >= 0 and _holds(field.dataType, (YearMonthIntervalType, DayTimeIntervalType, CalendarIntervalType)):
            table = table.set_column(at, field.name, _format_array(_combine_chunks(table.column(at)), field.dataType))
    return table


def shown_in_order(table: pa.Table, schema: StructType) -> pa.Table:
    """Return the same as :func:`format_intervals` for a table whose columns are those of ``schema`` in order.

    Their names may repeat.
    """
    names, columns = table.column_names, []
    for field, column in zip(schema.fields, table.columns, strict=True):
        part = format_intervals(pa.table({"c": column}), StructType([StructField("c", field.dataType)]))
        columns.append(part.column(0))
    return pa.Table.from_arrays(columns, names=names)


def _holds(kind: DataType, wanted: tuple[type[DataType], ...]) -> bool:
    match kind:
        case StructType():
            return any(_holds(field.dataType, wanted) for field in kind.fields)
        case ArrayType():
            return _holds(kind.elementType, wanted)
        case MapType():
            return _holds(kind.keyType, wanted) or _holds(kind.valueType, wanted)
        case _:
            return isinstance(kind, wanted)


def _combine_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array that starts at the beginning of its buffers."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _format_array(array: pa.Array, kind: DataType) -> pa.Array:
    match kind:
        case YearMonthIntervalType():
            return _texts(array, months_text)
        case DayTimeIntervalType():
            return _texts(array.cast(pa.duration("us")).cast(pa.int64()), microseconds_text)
        case CalendarIntervalType():
            return _texts(array, calendar_text)
        case StructType():
            members = [_format_array(pc.struct_field(array, [at]), field.dataType) for at, field in enumerate(kind.fields)]
            fields = [pa.field(field.name, member.type) for field, member in zip(kind.fields, members, strict=True)]
            return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null()) if fields else array
        case ArrayType():
            return pa.ListArray.from_arrays(array.offsets, _format_array(array.values, kind.elementType), mask=array.is_null())
        case MapType():
            keys, items = _format_array(array.keys, kind.keyType), _format_array(array.items, kind.valueType)
            return pa.MapArray.from_arrays(array.offsets, keys, items, mask=array.is_null())
        case _:
            return array


def _texts(array: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in array.to_pylist()], pa.string())
