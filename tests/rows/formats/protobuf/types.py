"""Types of messages as their writers have them, and messages as they write them."""

from __future__ import annotations

import base64
import struct
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

SHOP = """
name: "shop.proto" package: "shop" syntax: "proto3"
message_type { name: "Other" field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
message_type {
  name: "Person"
  field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "unused" number: 3 type: TYPE_BYTES label: LABEL_OPTIONAL }
  oneof_decl { name: "_name" }
  nested_type { name: "Inner" field { name: "id" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
}
"""
"""The type of people is the second one of its file, and has another one in it."""


def file(text: str) -> FileDescriptorProto:
    """A file of types, compiled."""
    return text_format.Parse(text, FileDescriptorProto())


def compiled(text: str) -> str:
    """A file of types as a registry gives it."""
    return base64.b64encode(file(text).SerializeToString()).decode()


def in_options(*texts: str) -> str:
    """Files of types as options have them."""
    return base64.b64encode(FileDescriptorSet(file=[file(text) for text in texts]).SerializeToString()).decode()


def message_class(name: str, *files: FileDescriptorProto) -> Any:
    """The class of the messages of a type."""
    pool = DescriptorPool()
    for each in files:
        pool.AddSerializedFile(each.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


PERSON: Any = message_class("shop.Person", file(SHOP))


def headed(record: bytes, number: int = 0, indexes: bytes = b"\2\2") -> bytes:
    """A message; its type is the second one of its schema."""
    return struct.pack(">bI", 0, number) + indexes + record


def person(number: int, name: str | None = None) -> bytes:
    """One of the people."""
    made: bytes = PERSON(id=number, name=name).SerializeToString()
    return made
