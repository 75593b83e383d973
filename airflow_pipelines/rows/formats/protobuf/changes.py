"""Encoders of the rows of a view as messages of Protobuf."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.protobuf import indexes
from airflow_pipelines.rows.formats.protobuf.filling import Fill, fill_fields
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.registered_types import PROTOBUF
from airflow_pipelines.rows.formats.protobuf.schemas import row_file
from airflow_pipelines.rows.formats.protobuf.types import UnknownTypeError, indexes_of, is_well_known, pool_of, type_of
from airflow_pipelines.rows.formats.registered.changes import RegisteredChanges
from airflow_pipelines.rows.formats.registered.registry import Reference, RegisteredSchema, SchemaRegistry
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType


@dataclass(frozen=True, slots=True)
class _Encoding:
    """The encoding of rows as bytes.

    :param new: the class of the message
    :param fill: a function that writes a row into it
    :param head: the bytes before it
    """

    new: type[Message]
    fill: Fill
    head: bytes

    def encode(self, row: dict[str, Any]) -> bytes:
        """Encode a row as a message.

        :raises FormatFailure: when its values do not fit into the type
        """
        message = self.new()
        self.fill(message, row)
        try:
            # Deterministic, so that equal keys have equal bytes.
            written: bytes = message.SerializeToString(deterministic=True)
        except EncodeError as error:
            raise FormatFailure(f"a row does not fit into the type of format 'protobuf': {error}") from error
        return self.head + written


class ProtobufEncodings:
    """The encodings of the values and the keys of messages."""

    def __init__(self, schema: RelationSchema, options: ProtobufOptions, key: Sequence[str]) -> None:
        """Determine the types.

        :param schema: the view
        :param options: the options of the format
        :param key: the columns of the index; empty without one
        :raises FormatFailure: when the view does not fit into one
        """
        self._options = options
        columns = [(column.name, column.type) for column in schema.columns]
        more = () if options.cdc_field is None else ((options.cdc_field, ColumnType("VARCHAR", nullable=False)),)
        self._value = type_of(options) if options.has_types else _make_type(columns, schema.name, options.package, more)
        self._fill_value = fill_fields(self._value, [*columns, *more], "column")
        self._key: Descriptor | None = None
        if key and options.key_mode != "none":
            of_key = dict(columns)
            named = [(name, of_key[name]) for name in key]
            self._key = _make_type(named, f"{schema.name}_key", options.package, ())
            self._fill_key = fill_fields(self._key, named, "column")

    def open(self, topic: str) -> tuple[_Encoding, _Encoding | None]:
        """Register the types, if there is a registry.

        :param topic: the topic of the messages
        :raises FormatFailure: when the registry refuses them; :class:`TransientFormatFailure` when it does not answer
        """
        registry = SchemaRegistry(self._options) if self._options.registry_urls else None
        value = self._encoding(self._value, self._fill_value, topic, "value", registry)
        if self._key is None:
            return value, None
        return value, self._encoding(self._key, self._fill_key, topic, "key", registry)

    def _encoding(self, kind: Descriptor, fill: Fill, topic: str, part: str, registry: SchemaRegistry | None) -> _Encoding:
        number = 0
        if registry is not None:
            # The schema is registered also if the messages do not contain its number.
            subject = self._options.subject(kind.full_name, topic, part)
            number = registry.register(subject, _register_file(kind.file, registry))
        head = b"" if self._options.skip_schema_id else struct.pack(">bI", 0, number) + indexes.encode_indexes(indexes_of(kind))
        return _Encoding(GetMessageClass(kind), fill, head)


def protobuf_changes(schema: RelationSchema, options: ProtobufOptions, key: Sequence[str]) -> RegisteredChanges:
    """Make the encoder of the changes of one view. It sends no request to the registry before it is opened.

    :param schema: the view
    :param options: the options of the format
    :param key: the columns of the index; empty without one
    :raises FormatFailure: when the view does not fit into a type
    """
    return RegisteredChanges(schema.column_names, options, ProtobufEncodings(schema, options, key))


def _make_type(
    columns: Sequence[tuple[str, ColumnType]], name: str, package: str | None, more: Sequence[tuple[str, ColumnType]]
) -> Descriptor:
    """Make the type of messages for rows.

    :raises FormatFailure: when there is no such type
    """
    file: FileDescriptorProto = row_file(columns, name, package, more)
    try:
        descriptor = pool_of([file]).FindFileByName(file.name)
    except UnknownTypeError as error:
        raise FormatFailure(f"the view does not fit into format 'protobuf'; give its columns other names: {error}") from error
    return next(iter(descriptor.message_types_by_name.values()))


def _register_file(file: FileDescriptor, registry: SchemaRegistry) -> RegisteredSchema:
    """Register a file, after those that it imports."""
    references = []
    for other in file.dependencies:
        if not is_well_known(other.name):
            schema = _register_file(other, registry)
            registry.register(other.name, schema)
            references.append(Reference(other.name, other.name, registry.version(other.name, schema)))
    return RegisteredSchema(base64.b64encode(file.serialized_pb).decode(), PROTOBUF, references)
