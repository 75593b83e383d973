"""The conversion of Protobuf messages to rows: the type of each message, and the values of its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.debezium import Change, DebeziumChanges, Row, RowChange, may_have_unavailable
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.protobuf import indexes
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.registered_types import RegisteredTypes
from airflow_pipelines.rows.formats.protobuf.rows import ProtobufRows, TypeOf
from airflow_pipelines.rows.formats.protobuf.types import type_of
from airflow_pipelines.rows.formats.registered.messages import HEADER, MessageSchema, RegisteredMessages, schema_number
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType

_ROWS: Final = ("before", "after")
_AS_THEY_ARE: Final = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE})
"""The types whose values a message contains verbatim, also in a list."""
_WRAPPERS: Final = "google/protobuf/wrappers.proto"


class ProtobufSchema:
    """A parser of the messages of one type whose records begin at the same offset."""

    def __init__(self, kind: Descriptor, start: int, type_of_column: TypeOf, debezium: DebeziumChanges | None) -> None:
        """Analyse a type.

        :param kind: the type
        :param start: the offset of records
        :param type_of_column: a function that returns the types of columns
        :param debezium: the reader of changes, if messages are changes of rows
        :raises RecordProblem: when it has no field for the table
        """
        self._new = GetMessageClass(kind)
        self._name = kind.full_name
        self._start = start
        self._debezium = debezium
        rows = kind if debezium is None else _row_of_debezium(kind)
        self._rows = ProtobufRows(rows, type_of_column)
        # The bytes of a list of numbers differ from those of the text that they represent.
        self._is_plain = all(not field.is_repeated or field.type in _AS_THEY_ARE for field in rows.fields)

    def changes(self, message: bytes) -> Sequence[Change]:
        """Parse one message.

        :raises RecordProblem: when it is malformed
        """
        record: Any = self._new()
        try:
            record.ParseFromString(message[self._start :])
        except DecodeError as error:
            raise RecordProblem(f"the message is no {self._name}: {error}") from error
        if not record.IsInitialized():
            raise RecordProblem(f"the message is no {self._name}: it lacks {', '.join(record.FindInitializationErrors())}")
        if self._debezium is None:
            return (RowChange(Op.INSERT, record),)
        before, after = (getattr(record, name) if record.HasField(name) else None for name in _ROWS)
        return self._debezium.of(record.op, before, after, is_complete=self._is_plain and not may_have_unavailable(message))

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Convert rows of changes to a table.

        :raises ValueError: when one of their values is invalid, such as a text that is not in UTF-8
        """
        return self._rows.table(rows)


def protobuf_messages(schema: RelationSchema, options: ProtobufOptions, now: Now) -> RegisteredMessages:
    """Make the parser of the messages of one table. It sends no request to a registry yet.

    :param schema: the table
    :param options: the options, which locate the types of messages
    :param now: the clock that a DEFAULT may read
    :raises FormatFailure: when the options have no such type
    """
    is_debezium = options.update_format == "debezium"
    debezium = DebeziumChanges(schema, RowReader(schema), _fields_of, _complete) if is_debezium else None
    types = partial(ProtobufSchema, type_of_column=_types_of(schema), debezium=debezium)
    find = _OfOneType(options, types) if options.has_types else _OfRegistry(options, types)
    # Debezium writes a tombstone after each deletion, so that a topic may forget the key.
    return RegisteredMessages(schema, now, find, skips_tombstones=is_debezium)


class _OfOneType:
    """A factory of parsers for messages whose type the options name."""

    def __init__(self, options: ProtobufOptions, new: partial[ProtobufSchema]) -> None:
        self._new = new
        self._skips_header = not options.skip_schema_id
        self._type = type_of(options)
        self._by_start: dict[int, MessageSchema] = {}
        try:
            self._by_start[0] = new(self._type, 0)
        except RecordProblem as problem:
            raise FormatFailure(f"option 'message' of format 'protobuf': {problem}") from problem

    def __call__(self, message: bytes) -> MessageSchema:
        start = 0
        if self._skips_header:
            schema_number(message)
            _, start = indexes.read(message, HEADER)
        if start not in self._by_start:
            self._by_start[start] = self._new(self._type, start)
        return self._by_start[start]


class _OfRegistry:
    """A factory of parsers for messages whose types are in a registry."""

    def __init__(self, options: ProtobufOptions, new: partial[ProtobufSchema]) -> None:
        self._types = RegisteredTypes(options)
        self._new = new
        self._known: dict[tuple[int, bytes], MessageSchema | str] = {}
        """The parsers, or the reasons why there is none, by the number of a schema and the indexes after it."""

    def __call__(self, message: bytes) -> MessageSchema:
        number = schema_number(message)
        way, start = indexes.read(message, HEADER)
        named = (number, message[HEADER:start])
        entry = self._known.get(named)
        if entry is None:
            # A missing schema may be registered soon, so it is requested again.
            kind = self._types.find(number, way)
            try:
                entry = self._new(kind, start)
            except RecordProblem as problem:
                entry = f"schema {number} cannot be read: {problem}"
            self._known[named] = entry
        if isinstance(entry, str):
            raise RecordProblem(entry)
        return entry


def _types_of(schema: RelationSchema) -> TypeOf:
    reader = RowReader(schema)

    def type_of_column(name: str) -> ColumnType | None:
        place = reader.place(name)
        return None if place is None else reader.columns[place].type

    return type_of_column


def _fields_of(row: Any) -> dict[str, Any]:
    """Return the values of a row: lists in place of the library's own kind, and the values in wrappers."""
    return {field.name: _plain(field, value) for field, value in row.ListFields()}


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if field.is_repeated:
        return list(value)
    return value.value if _is_wrapper(field) else value


def _is_wrapper(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.file.name == _WRAPPERS


def _complete(row: Any, values: Mapping[str, Any]) -> Any:
    """Replace the values of some fields of a row."""
    completed = type(row)()
    completed.CopyFrom(row)
    for name, value in values.items():
        field = completed.DESCRIPTOR.fields_by_name[name]
        completed.ClearField(name)
        if field.is_repeated:
            getattr(completed, name).extend(value)
        elif _is_wrapper(field):
            getattr(completed, name).value = value
        else:
            setattr(completed, name, value)
    return completed


def _row_of_debezium(kind: Descriptor) -> Descriptor:
    """Return the type of the rows in changes."""
    fields = [kind.fields_by_name.get(name) for name in (*_ROWS, "op")]
    if any(field is None or field.is_repeated for field in fields):
        raise RecordProblem(f"{kind.full_name} is none of Debezium's changes, which have 'before', 'after' and 'op'")
    before, after = (kind.fields_by_name[name].message_type for name in _ROWS)
    if before is None or before is not after:
        raise RecordProblem(f"the 'before' and 'after' of {kind.full_name} are not of one type")
    return before
