"""Types of messages: which files they are in, and those that everybody has."""

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
"""Has the type for decimal numbers that Kafka's connectors use."""
_WELL_KNOWN: Final = ("google/protobuf/", "google/type/", "confluent/")
"""Files below these are known to registries and programs alike."""


class UnknownTypeError(ValueError):
    """Files do not fit together, or do not have a type."""


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Make a pool of types.

    :param files: have them and, but for those that everybody has, all that they import
    :raises UnknownTypeError: when one is missing, or they are wrong
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
    """Return True if everybody has a file.

    :param name: as other files import it
    """
    return name.startswith(_WELL_KNOWN)


def type_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """Find the type to which message indexes lead.

    :param file: of the type
    :param indexes: the number of a type in the file, then in the type before it
    :raises UnknownTypeError: when there is none
    """
    found: Descriptor | None = None
    types: Sequence[Descriptor] = list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(types):
            raise UnknownTypeError(f"it has no type with the indexes {list(indexes)}")
        found = types[index]
        types = list(found.nested_types)
    if found is None:
        raise UnknownTypeError("no type is named")
    return found


def indexes_of(kind: Descriptor) -> tuple[int, ...]:
    """Find the way to a type: its number in its file, or that of the type around it and its number in that.

    :param kind: the type
    """
    if kind.containing_type is not None:
        siblings = [each.full_name for each in kind.containing_type.nested_types]
        return (*indexes_of(kind.containing_type), siblings.index(kind.full_name))
    return (list(kind.file.message_types_by_name).index(kind.name),)


def type_of(options: ProtobufOptions) -> Descriptor:
    """Find the type of all messages that options name.

    :param options: with a set of types
    :raises FormatFailure: when they do not have it
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
    """Make the file with the type for decimal numbers: the bytes of a whole number with a sign, greatest first, and its digits."""
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
    """Find a file that everybody has."""
    if name == DECIMAL_FILE:
        return decimal_file()
    if name.startswith("confluent/"):
        # What else is there describes types to the registry, and is in no message.
        return FileDescriptorProto(name=name, syntax="proto3")
    if not is_well_known(name):
        return None
    try:
        module = import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
