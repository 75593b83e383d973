"""The conversion of Protobuf messages to rows of Arrow: the Arrow type of each type, and the value of an absent field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.protobuf.well_known import WELL_KNOWN
from airflow_pipelines.rows.types import ColumnType

Read: TypeAlias = Callable[[Any], Any]
"""A function that converts the content of a message to a value."""
TypeOf: TypeAlias = Callable[[str], ColumnType | None]
"""A function that returns the type of the column with a name, or None if there is none."""

_SCALARS: Final[Mapping[int, pa.DataType]] = {
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT32: pa.uint32(),
    FieldDescriptor.TYPE_FIXED32: pa.uint32(),
    FieldDescriptor.TYPE_UINT64: pa.uint64(),
    FieldDescriptor.TYPE_FIXED64: pa.uint64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
}


class ProtobufRows:
    """A conversion of the messages of one type to rows and Arrow tables. It reads only fields with a column."""

    def __init__(self, kind: Descriptor, type_of: TypeOf) -> None:
        """Analyse a type.

        :param kind: the type
        :param type_of: a function that returns the types of columns
        :raises RecordProblem: when its messages have no field for the columns, or values that fit into no column
        """
        columns = [(field, column) for field in kind.fields if (column := type_of(field.name)) is not None]
        if not columns:
            raise RecordProblem(f"{kind.full_name} has no field for any column of the table")
        read = [(field.name, *_field(field, column, (kind.full_name,))) for field, column in columns]
        self._columns = [(reads, arrow) for _, arrow, reads in read]
        self._schema = pa.schema([(name, arrow) for name, arrow, _ in read])

    def table(self, messages: Sequence[Any]) -> pa.Table:
        """Convert messages to the rows of a table.

        :param messages: the messages
        :raises ValueError: when one of their values is invalid
        """
        columns = [pa.array([read(message) for message in messages], arrow) for read, arrow in self._columns]
        return pa.Table.from_arrays(columns, schema=self._schema)


def _field(field: FieldDescriptor, column: ColumnType | None, within: tuple[str, ...]) -> tuple[pa.DataType, Read]:
    """Return the Arrow type of a field, and the function that reads its value from a message.

    :param column: the type of the column; None if any type is possible
    :param within: the names of the enclosing types
    """
    name = field.name
    if not field.is_repeated:
        kind, value = _value(field, column, within)
        return kind, _single(field, value)
    if is_map(field):
        return _map(field, column, within)
    kind, value = _value(field, None if column is None else column.component, within)
    if value is None:
        return pa.list_(kind), lambda message: list(getattr(message, name))
    plain = value
    return pa.list_(kind), lambda message: [plain(each) for each in getattr(message, name)]


def is_map(field: FieldDescriptor) -> bool:
    """Return True if the values of a repeated field are the entries of a map.

    :param field: the field
    """
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _single(field: FieldDescriptor, value: Read | None) -> Read:
    name = field.name
    if value is None:
        if field.has_presence and not field.has_default_value:
            return lambda message: getattr(message, name) if message.HasField(name) else None
        # An absent value is the default of its type.
        return attrgetter(name)
    plain = value
    if field.has_presence and not field.has_default_value:
        return lambda message: plain(getattr(message, name)) if message.HasField(name) else None
    return lambda message: plain(getattr(message, name))


def _map(field: FieldDescriptor, column: ColumnType | None, within: tuple[str, ...]) -> tuple[pa.DataType, Read]:
    name = field.name
    of_key, of_value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
    key, _ = _value(of_key, None, within)
    kind, value = _value(of_value, None if column is None else column.value, within)
    if value is None:
        return pa.map_(key, kind), lambda message: list(getattr(message, name).items())
    plain = value
    return pa.map_(key, kind), lambda message: [(each, plain(part)) for each, part in getattr(message, name).items()]


def _value(field: FieldDescriptor, column: ColumnType | None, within: tuple[str, ...]) -> tuple[pa.DataType, Read | None]:
    """Return the Arrow type of one value of a field, and its conversion from the message's value (None if it needs none)."""
    if field.enum_type is not None:
        return _enum(field.enum_type, column)
    if field.message_type is not None:
        return _message(field.message_type, column, within)
    return _SCALARS[field.type], None


def _enum(kind: EnumDescriptor, column: ColumnType | None) -> tuple[pa.DataType, Read | None]:
    if column is not None and column.is_integer:
        return pa.int32(), None
    names = {number: value.name for number, value in kind.values_by_number.items()}
    # A value of the enumeration may be newer than the schema.
    return pa.string(), lambda number: names.get(number) or str(number)


def _message(kind: Descriptor, column: ColumnType | None, within: tuple[str, ...]) -> tuple[pa.DataType, Read]:
    known = WELL_KNOWN.get(kind.full_name)
    if known is not None:
        return known.kind, known.read
    if kind.full_name in within:
        raise RecordProblem(f"{kind.full_name} contains itself, and no column type does; make the column a STRUCT of other fields")
    inside = (*within, kind.full_name)
    if is_wrapped(kind, column):
        return _field(kind.fields[0], column, inside)
    fields = [(field, part) for field, part in _parts(kind, column)]
    read = [(field.name, *_field(field, part, inside)) for field, part in fields]
    members = [(name, reads) for name, _, reads in read]
    return pa.struct([(name, arrow) for name, arrow, _ in read]), lambda message: {name: reads(message) for name, reads in members}


def is_wrapped(kind: Descriptor, column: ColumnType | None) -> bool:
    """Return True if messages represent an array or a map that they hold, which arrays of arrays need.

    :param kind: the type of the messages
    :param column: the type of the column
    """
    is_collection = column is not None and (column.component is not None or column.key is not None)
    return is_collection and len(kind.fields) == 1 and kind.fields[0].is_repeated


def _parts(kind: Descriptor, column: ColumnType | None) -> Sequence[tuple[FieldDescriptor, ColumnType | None]]:
    """Return the fields of a message that are read, with the types of their columns."""
    if column is None or column.fields is None:
        return [(field, None) for field in kind.fields]
    exact = dict(column.fields)
    folded = {name.lower(): part for name, part in column.fields}
    parts = [(field, exact.get(field.name) or folded.get(field.name.lower())) for field in kind.fields]
    return [(field, part) for field, part in parts if part is not None]
