"""Types of messages: the files that define them, and the well-known ones."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions

DECIMAL_FILE: Final = "confluent/type/decimal.proto"
"""The file with the type for decimal numbers that Kafka's connectors use."""
_WELL_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")
"""The folders of files that registries and programs know."""


class UnknownTypeError(ValueError):
    """The error for files that do not fit together, or do not have a type."""


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Make a pool of types.

    :param files: the files with them, and all files that they import except for the well-known ones
    :raises UnknownTypeError: when one is missing, or they are invalid
    """
    given = {file.name: file for file in files}
    pool = DescriptorPool()
    done: set[str] = set()

    def add(name: str, within: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in within:
            raise UnknownTypeError(f"{name!r} imports itself")
        file = given.get(name) or _well_known_file(name)
        if file is None:
            raise UnknownTypeError(f"{within[-1]!r} imports {name!r}, which is missing; protoc adds it with --include_imports")
        for other in file.dependency:
            add(other, (*within, name))
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise UnknownTypeError(f"{name!r} has no valid types: {error}") from error
        done.add(name)

    for name in given:
        add(name, ())
    return pool


def is_well_known(name: str) -> bool:
    """Return True if a file is well-known.

    :param name: its name in import statements
    """
    return name.startswith(_WELL_KNOWN)


def type_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """Return the type with message indexes.

    :param file: the file of the type
    :param indexes: the number of a type in the file, then in the type before it
    :raises UnknownTypeError: when there is none
    """
    kind: Descriptor | None = None
    types: Sequence[Descriptor] = list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(types):
            raise UnknownTypeError(f"it has no type with the indexes {list(indexes)}")
        kind = types[index]
        types = list(kind.nested_types)
    if kind is None:
        raise UnknownTypeError("no type is named")
    return kind


def indexes_of(kind: Descriptor) -> tuple[int, ...]:
    """Return the message indexes of a type: its number in its file, or those of the enclosing type and its number in that.

    :param kind: the type
    """
    if kind.containing_type is not None:
        siblings = [each.full_name for each in kind.containing_type.nested_types]
        return (*indexes_of(kind.containing_type), siblings.index(kind.full_name))
    return (list(kind.file.message_types_by_name).index(kind.name),)


def type_of(options: ProtobufOptions) -> Descriptor:
    """Return the type of all messages that options name.

    :param options: the options, with a set of types
    :raises FormatFailure: when the set does not have it
    """
    option = "descriptor_set" if options.descriptor_set is not None else "descriptor_file"
    where = f"option {option!r} of format 'protobuf'"
    try:
        files = FileDescriptorSet.FromString(_bytes_of(options, where)).file
        if not files:
            raise UnknownTypeError("it has no types")
        pool = pool_of(files)
    except (DecodeError, UnknownTypeError) as error:
        raise FormatFailure(
            f"{where}: it is no FileDescriptorSet, as 'protoc --include_imports -o FILE' writes it: {error}"
        ) from error
    try:
        return pool.FindMessageTypeByName(str(options.message))
    except KeyError as error:
        known = sorted(each.full_name for file in files for each in pool.FindFileByName(file.name).message_types_by_name.values())
        listed = ", ".join(repr(name) for name in known[:10]) or "none"
        raise FormatFailure(
            f"option 'message' of format 'protobuf': there is no type {options.message!r} in {option!r}; it has {listed}"
        ) from error


def decimal_file() -> FileDescriptorProto:
    """Return the file with the type for decimal numbers: a signed whole number as big-endian bytes, its precision and its scale."""
    file = FileDescriptorProto(name=DECIMAL_FILE, package="confluent.type", syntax="proto3")
    kind = file.message_type.add(name="Decimal")
    fields = (
        ("value", FieldDescriptorProto.TYPE_BYTES),
        ("precision", FieldDescriptorProto.TYPE_UINT32),
        ("scale", FieldDescriptorProto.TYPE_INT32),
    )
    for number, (name, type_) in enumerate(fields, 1):
        kind.field.add(name=name, number=number, type=type_, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return file


def _bytes_of(options: ProtobufOptions, where: str) -> bytes:
    if options.descriptor_set is not None:
        try:
            return base64.b64decode(options.descriptor_set, validate=True)
        except binascii.Error as error:
            raise FormatFailure(f"{where}: it is not written in base64: {error}") from error
    try:
        return Path(str(options.descriptor_file)).read_bytes()
    except (OSError, ValueError) as error:
        raise FormatFailure(f"{where}: the file cannot be read where the pipeline runs: {error}") from error


def _well_known_file(name: str) -> FileDescriptorProto | None:
    """Return a well-known file, or None if there is none with this name."""
    if name == DECIMAL_FILE:
        return decimal_file()
    if name.startswith("confluent/"):
        # The other files there describe types to the registry, and are in no message.
        return FileDescriptorProto(name=name, syntax="proto3")
    if not is_well_known(name):
        return None
    try:
        module = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
