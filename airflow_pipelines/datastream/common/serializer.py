"""Serializers of values of one kind to bytes and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """A serializer that converts values to bytes and back."""

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
