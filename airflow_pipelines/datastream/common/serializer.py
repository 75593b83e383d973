"""How values of one kind become bytes and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Makes bytes of values and values of bytes."""

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write a value.

        :param element: the value
        :param stream: takes its bytes
        """

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read the next value.

        :param stream: gives its bytes
        :returns: the value
        """
