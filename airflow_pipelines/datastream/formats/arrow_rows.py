"""Rows of a declared type as Arrow tables, and the columns of files as such rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.composite_types import ArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo
from airflow_pipelines.datastream.common.row import Row, RowKind, checked_row
from airflow_pipelines.datastream.common.serialization import SerializationError
from airflow_pipelines.datastream.common.type_information import Converter, TypeConversionError, TypeInformation
from airflow_pipelines.datastream.connectors.file_formats import BulkWriter
from airflow_pipelines.datastream.relation_columns import plain_value
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.streams.worker.columns import MisfitError, column_of

_ARROW: Mapping[BasicType, pa.DataType] = {
    BasicType.STRING: pa.string(),
    BasicType.CHAR: pa.string(),
    BasicType.BOOLEAN: pa.bool_(),
    BasicType.BYTE: pa.int8(),
    BasicType.SHORT: pa.int16(),
    BasicType.INT: pa.int32(),
    BasicType.LONG: pa.int64(),
    BasicType.FLOAT: pa.float32(),
    BasicType.DOUBLE: pa.float64(),
    BasicType.BIG_INT: pa.decimal128(38, 0),
    BasicType.BIG_DEC: pa.decimal128(38, 18),
    BasicType.SQL_DATE: pa.date32(),
    BasicType.SQL_TIME: pa.time64("us"),
    BasicType.SQL_TIMESTAMP: pa.timestamp("us"),
    BasicType.INSTANT: pa.timestamp("us", "UTC"),
}
_ROWS_AT_ONCE = 10_000
_READ_AS_THEY_ARE = frozenset(_ARROW) - {BasicType.CHAR, BasicType.BIG_INT, BasicType.INSTANT}
"""The types whose values need no conversion where a file has their Arrow type."""


def arrow_type(type_info: TypeInformation) -> pa.DataType:
    """Return the Arrow type for the values of a type.

    :param type_info: a basic type, or rows, lists and maps of such types
    :returns: the Arrow type
    :raises TypeError: if there is none
    """
    if isinstance(type_info, BasicTypeInfo):
        return _ARROW[type_info.basic_type]
    if isinstance(type_info, RowTypeInfo):
        return pa.struct(list(_fields(type_info)))
    if isinstance(type_info, MapTypeInfo):
        return pa.map_(arrow_type(type_info.key_type), arrow_type(type_info.value_type))
    if isinstance(type_info, ArrayTypeInfo | ListTypeInfo):
        return pa.binary() if isinstance(type_info.convert([]), bytes) else pa.list_(arrow_type(type_info.element_type))
    raise TypeError(f"A file has no form for {type_info!r}: declare what the values consist of, such as Types.STRING()")


def arrow_schema(row_type: RowTypeInfo) -> pa.Schema:
    """Return the Arrow schema for the rows of a type.

    :param row_type: the type of the rows
    :returns: the schema
    :raises TypeError: if a field has no Arrow type
    """
    return pa.schema(list(_fields(row_type)))


def _fields(row_type: RowTypeInfo) -> Iterator[pa.Field]:
    for name, type_info in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True):
        yield pa.field(name, arrow_type(type_info))


def batch_of_rows(elements: Sequence[Any], row_type: RowTypeInfo, schema: pa.Schema) -> pa.RecordBatch:
    """Convert elements to a record batch.

    :param elements: rows, tuples, lists or dicts that fit the type
    :param row_type: the type of the rows
    :param schema: the result of :func:`arrow_schema`
    :returns: the batch
    :raises SerializationError: if an element does not fit; the message says which, and why
    """
    convert = row_type.converter()
    rows: list[Row] = []
    element: Any = None
    try:
        for element in elements:
            rows.append(convert(element))
    except TypeConversionError as error:
        raise SerializationError(f"{element!r:.200} cannot be written to the file: {error}") from None
    columns = []
    for position, field in enumerate(schema):
        values = [plain_value(row[position]) for row in rows]
        try:
            columns.append(column_of(values, field))
        except MisfitError as misfit:
            reason = f": {misfit.reason}" if misfit.reason else ""
            raise SerializationError(
                f"{elements[misfit.position]!r:.200} cannot be written to the file: field {field.name!r} of type {field.type}"
                f" cannot take {values[misfit.position]!r:.80}{reason}"
            ) from None
    return pa.record_batch(columns, schema=schema)


class BatchWriter(BulkWriter):
    """A writer of files that are written in record batches.

    :param row_type: the type of the rows
    :param write_batch: the function that writes a batch to the file
    :param close: the function that writes the end of the file
    """

    def __init__(self, row_type: RowTypeInfo, write_batch: Callable[[pa.RecordBatch], None], close: Callable[[], None]) -> None:
        self._row_type = row_type
        self._schema = arrow_schema(row_type)
        self._write_batch = write_batch
        self._close = close
        self._elements: list[Any] = []

    def add_element(self, element: Any) -> None:
        """Add an element. It is written with some thousand others."""
        self._elements.append(element)
        if len(self._elements) >= _ROWS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        elements, self._elements = self._elements, []
        self._write_batch(batch_of_rows(elements, self._row_type, self._schema))

    def finish(self) -> None:
        """Write all elements that are still in memory, and the end of the file."""
        self._write()
        self._close()


class RowsOfColumns:
    """The conversion of the columns of a file to rows.

    :param row_type: the type of the rows
    :param names: the names of the columns in the file
    :param is_case_sensitive: False to find a column also by its name in another case
    """

    def __init__(self, row_type: RowTypeInfo, names: Sequence[str], is_case_sensitive: bool = True) -> None:
        self._names = tuple(row_type.get_field_names())
        self._types = row_type.get_field_types()
        in_lower_case = {} if is_case_sensitive else {name.lower(): name for name in reversed(names)}
        self._columns = [name if name in names else in_lower_case.get(name.lower()) for name in self._names]

    @property
    def columns(self) -> list[str]:
        """The columns that are read; fields without a column are None."""
        return [name for name in self._columns if name is not None]

    def rows(self, batch: pa.RecordBatch | pa.Table) -> list[Row]:
        """Return the rows of a part of the file.

        :param batch: the part, with at least the columns that are read
        :returns: the rows in order
        :raises ValueError: if a value does not fit its field
        """
        values = [
            [None] * batch.num_rows if column is None else self._values(name, batch.column(column), type_info)
            for name, column, type_info in zip(self._names, self._columns, self._types, strict=True)
        ]
        names = self._names
        return [checked_row(list(row), names, RowKind.INSERT) for row in zip(*values, strict=True)]

    def _values(self, name: str, column: Any, type_info: TypeInformation) -> list[Any]:
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        if pa.types.is_timestamp(column.type):
            # Without a time zone a point in time is shown as in UTC. Digits after the microsecond are cut off.
            zone = None if isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.SQL_TIMESTAMP else "UTC"
            column = pc.cast(column, options=pc.CastOptions(target_type=pa.timestamp("us", zone), allow_time_truncate=True))
        values = python_values(column, "strict")
        if (
            isinstance(type_info, BasicTypeInfo)
            and type_info.basic_type in _READ_AS_THEY_ARE
            and column.type == arrow_type(type_info)
        ):
            return values
        if pa.types.is_decimal(column.type) and column.type.scale == 0 and type_info != BasicTypeInfo(BasicType.BIG_DEC):
            values = [None if value is None else int(value) for value in values]
        return _convert_all(name, values, type_info.converter())


def _convert_all(name: str, values: list[Any], convert: Converter) -> list[Any]:
    converted: list[Any] = []
    try:
        for value in values:
            converted.append(convert(value))  # noqa: PERF401 (the message names the value)
    except TypeConversionError as error:
        raise ValueError(f"the value {values[len(converted)]!r:.80} of column {name!r} does not fit its type: {error}") from None
    return converted
