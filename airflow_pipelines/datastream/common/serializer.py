"""Serializers of values of one kind to bytes and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """A serializer that converts values to bytes and back.

    >>> import io
    >>> from airflow_pipelines.datastream.common import TypeSerializer
    >>> class YearSerializer(TypeSerializer[int]):
    ...     def serialize(self, element, stream):
    ...         stream.write(element.to_bytes(2, "big"))
    ...     def deserialize(self, stream):
    ...         return int.from_bytes(stream.read(2), "big")
    >>> YearSerializer().deserialize(io.BytesIO(bytes.fromhex("07e8")))
    2024
    """

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write a value.

        :param element: the value
        :param stream: the stream to write to
        """

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read the next value.

        :param stream: the stream to read from
        :returns: the value
        """
