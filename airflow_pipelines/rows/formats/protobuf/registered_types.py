"""Types of messages in a schema registry, which stores them as source text and returns them compiled."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.types import UnknownTypeError, is_well_known, pool_of, type_at
from airflow_pipelines.rows.formats.registered.registry import KnownSchemas, Reference, RegisteredSchema, SchemaRegistry

PROTOBUF: Final = "PROTOBUF"
"""The registries' name for schemas of this kind."""
_SERIALIZED: Final = "serialized"
_UNNAMED: Final = ("", "default")


class RegisteredTypes:
    """The types of messages by the number of a schema and the message indexes within it."""

    def __init__(self, options: ProtobufOptions) -> None:
        """Prepare the requests, without sending one.

        :param options: the address and credentials of the registry
        """
        self._registry = SchemaRegistry(options, _SERIALIZED)
        self._files = KnownSchemas(self._registry, self._file)

    def find(self, number: int, indexes: Sequence[int]) -> Descriptor:
        """Return a type of messages.

        :param number: the number of the schema
        :param indexes: the message indexes of the type within it
        :raises RecordProblem: when there is none
        :raises FormatFailure: when the registry refuses to answer; :class:`TransientFormatFailure` when it does not answer
        """
        try:
            return type_at(self._files.of(number), indexes)
        except UnknownTypeError as error:
            raise RecordProblem(f"schema {number} cannot be read: {error}") from error

    def _file(self, number: int, schema: RegisteredSchema) -> FileDescriptor:
        what = f"schema {number}"
        root = self._parse_compiled(schema, what)
        if root.name in _UNNAMED:
            root.name = f"{what}.proto"
        files = {root.name: root}
        for reference in schema.references:
            self._add(reference, what, files)
        try:
            return pool_of(files.values()).FindFileByName(root.name)
        except UnknownTypeError as error:
            raise RecordProblem(f"{what} cannot be read: {error}") from error

    def _add(self, reference: Reference, what: str, files: dict[str, FileDescriptorProto]) -> None:
        """Add a file that another one imports, and the files that it imports."""
        if reference.name in files or is_well_known(reference.name):
            return
        schema = self._registry.fetch_referenced(reference, what)
        called = f"{reference.subject} {reference.version}"
        file = self._parse_compiled(schema, called)
        file.name = reference.name
        files[reference.name] = file
        for each in schema.references:
            self._add(each, called, files)

    def _parse_compiled(self, schema: RegisteredSchema, what: str) -> FileDescriptorProto:
        if schema.kind != PROTOBUF:
            raise RecordProblem(f"{what} is one of {schema.kind}, and not of Protobuf")
        try:
            return FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
        except (binascii.Error, ValueError, DecodeError) as error:
            raise FormatFailure(
                f"the schema registry at {self._registry.shown} gives {what} as source text, which only the compiler of Protobuf "
                f"reads, and not compiled ('format={_SERIALIZED}'). Compile it with 'protoc --include_imports -o FILE' and give "
                "the file as 'descriptor_file', with 'message'"
            ) from error
