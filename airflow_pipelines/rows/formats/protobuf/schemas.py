"""Types of messages that are made for the rows of a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.protobuf.types import DECIMAL_FILE
from airflow_pipelines.rows.formats.registered.options import NAME
from airflow_pipelines.rows.types import BINARIES, FLOATS, ColumnType

_NAME: Final = re.compile(f"^{NAME}$")
_SCALARS: Final[Mapping[str, FieldDescriptorProto.Type.ValueType]] = {
    "BOOLEAN": FieldDescriptorProto.TYPE_BOOL,
    "TINYINT": FieldDescriptorProto.TYPE_INT32,
    "SMALLINT": FieldDescriptorProto.TYPE_INT32,
    "INTEGER": FieldDescriptorProto.TYPE_INT32,
    "BIGINT": FieldDescriptorProto.TYPE_INT64,
    "UTINYINT": FieldDescriptorProto.TYPE_UINT32,
    "USMALLINT": FieldDescriptorProto.TYPE_UINT32,
    "UINTEGER": FieldDescriptorProto.TYPE_UINT32,
    "UBIGINT": FieldDescriptorProto.TYPE_UINT64,
    "REAL": FieldDescriptorProto.TYPE_FLOAT,
    "DOUBLE": FieldDescriptorProto.TYPE_DOUBLE,
    "VARCHAR": FieldDescriptorProto.TYPE_STRING,
    "CHAR": FieldDescriptorProto.TYPE_STRING,
    "UUID": FieldDescriptorProto.TYPE_STRING,
    "VARIANT": FieldDescriptorProto.TYPE_STRING,
    "NULL": FieldDescriptorProto.TYPE_STRING,
    "BINARY": FieldDescriptorProto.TYPE_BYTES,
    "VARBINARY": FieldDescriptorProto.TYPE_BYTES,
}
_MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    "DECIMAL": (".confluent.type.Decimal", DECIMAL_FILE),
    "DATE": (".google.type.Date", "google/type/date.proto"),
    "TIME": (".google.type.TimeOfDay", "google/type/timeofday.proto"),
    "TIMESTAMP": (".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    "TIMESTAMP_TZ": (".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
"""By type of a column, the type of messages that represents it, and its file."""
_KEYS: Final = _SCALARS.keys() - (FLOATS | BINARIES | {"VARIANT", "NULL"})
WRAPPED: Final = "items"
"""The field of a message that represents an array or a map in places where Protobuf allows none."""


def row_file(
    columns: Iterable[tuple[str, ColumnType]], name: str, package: str | None, more: Iterable[tuple[str, ColumnType]] = ()
) -> FileDescriptorProto:
    """Make a file with the type of messages for rows, which is its first.

    :param columns: names and types of the columns
    :param name: the name of the type; characters that names cannot have become ``_``
    :param package: the package of the type, if it has one
    :param more: the fields after those of the columns
    :raises FormatFailure: when a column has no counterpart in Protobuf
    """
    written = re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)
    file = FileDescriptorProto(name=f"{written}.proto", package=package or "", syntax="proto3")
    made = _File(file, f".{package}.{written}" if package else f".{written}")
    made.add_fields(file.message_type.add(name=written), made.root, [*columns, *more], "column")
    return file


class _File:
    """A builder of the types in a file."""

    def __init__(self, file: FileDescriptorProto, root: str) -> None:
        self._file = file
        self.root = root

    def add_fields(self, message: DescriptorProto, path: str, fields: Iterable[tuple[str, ColumnType]], what: str) -> None:
        """Add fields to a type.

        :param message: the type
        :param path: its full name
        :param fields: names and types
        :param what: the word for them in messages
        """
        for number, (name, kind) in enumerate(fields, 1):
            where = f"{what} {name!r}"
            if not _NAME.match(name):
                raise FormatFailure(
                    f"{where} has a name that Protobuf cannot have (letters, digits and '_'); give it another one in the view"
                )
            field = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if kind.component is not None:
                field.label = FieldDescriptorProto.LABEL_REPEATED
                self._set_item(field, message, path, kind.component, where)
            elif kind.key is not None and kind.value is not None:
                self._set_map(field, message, path, kind.key, kind.value, where)
            else:
                self._set_type(field, message, path, kind, where)
                if kind.nullable and not field.type_name:
                    # The presence of a message is always known.
                    _make_optional(field, message)

    def _set_type(self, field: FieldDescriptorProto, message: DescriptorProto, path: str, kind: ColumnType, where: str) -> None:
        """Set the type of a field with one value."""
        if kind.fields is not None:
            members = kind.fields
            self._set_nested(field, message, path, lambda nested, name: self.add_fields(nested, name, members, f"{where}, field"))
        elif kind.name in _MESSAGES:
            field.type = FieldDescriptorProto.TYPE_MESSAGE
            field.type_name, file = _MESSAGES[kind.name]
            if file not in self._file.dependency:
                self._file.dependency.append(file)
        else:
            # Intervals are encoded as texts.
            field.type = FieldDescriptorProto.TYPE_STRING if kind.is_interval else _SCALARS[kind.name]

    def _set_item(self, field: FieldDescriptorProto, message: DescriptorProto, path: str, kind: ColumnType, where: str) -> None:
        """Set the type of one of several values; an array or a map needs a message around it."""
        if kind.component is None and kind.key is None:
            self._set_type(field, message, path, kind, where)
            return
        self._set_nested(field, message, path, lambda nested, name: self.add_fields(nested, name, [(WRAPPED, kind)], where))

    def _set_map(
        self, field: FieldDescriptorProto, message: DescriptorProto, path: str, key: ColumnType, value: ColumnType, where: str
    ) -> None:
        if key.name not in _KEYS:
            raise FormatFailure(
                f"{where} is a map whose keys are {key.name}, and those of Protobuf are whole numbers, texts or BOOLEAN; "
                "make it an array in the view"
            )
        field.label = FieldDescriptorProto.LABEL_REPEATED
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        entry = message.nested_type.add(name=f"{_camel_case(field.name)}Entry")
        entry.options.map_entry = True
        field.type_name = f"{path}.{entry.name}"
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            part = entry.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            # A type cannot be nested in the type of the entries.
            self._set_item(part, message, path, kind, where)

    def _set_nested(
        self, field: FieldDescriptorProto, message: DescriptorProto, path: str, fill: Callable[[DescriptorProto, str], Any]
    ) -> None:
        """Give a field a type of its own, nested in the enclosing type."""
        taken = {each.name for each in (*message.field, *message.nested_type)}
        name = _camel_case(field.name) + "Row"
        while name in taken:
            name += "_"
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f"{path}.{name}"
        fill(message.nested_type.add(name=name), field.type_name)


def _make_optional(field: FieldDescriptorProto, message: DescriptorProto) -> None:
    """Make a field optional, so that its presence is known."""
    field.proto3_optional = True
    field.oneof_index = len(message.oneof_decl)
    message.oneof_decl.add(name=f"_{field.name}")


def _camel_case(name: str) -> str:
    """Convert a name to camel case, the form of names of map entries."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
