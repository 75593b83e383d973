"""How elements become the bytes of messages and files, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.streams.errors import ExplainedError


class SerializationError(ExplainedError, ValueError):
    """A message cannot be read or written."""


class SerializationSchema(ABC):
    """Makes the bytes of a message from an element."""

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """The bytes of an element.

        :param element: the element
        :returns: its bytes
        :raises SerializationError: when it cannot be written
        """


class DeserializationSchema(ABC):
    """Makes an element from the bytes of a message."""

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """The element of a message.

        :param message: its bytes
        :returns: the element; None for a message that is skipped
        :raises SerializationError: when it cannot be read
        """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """The type of the elements.

        :returns: the type
        """


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text as its bytes.

    :param charset: the character set
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = checks.charset("charset", charset)

    def serialize(self, element: Any) -> bytes:
        """See :meth:`SerializationSchema.serialize`."""
        if not isinstance(element, str):
            raise SerializationError(
                f"SimpleStringSchema takes a str, not {element!r:.80} ({type(element).__name__}): use map(str) before the sink"
            )
        try:
            return element.encode(self._charset)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{element!r:.80} cannot be written in {self._charset}: {error.reason}") from None

    def deserialize(self, message: bytes) -> Any:
        """See :meth:`DeserializationSchema.deserialize`."""
        try:
            return message.decode(self._charset)
        except UnicodeDecodeError as error:
            raise SerializationError(f"{message!r:.80} is no text in {self._charset}: {error.reason}") from None

    def get_produced_type(self) -> TypeInformation:
        """See :meth:`DeserializationSchema.get_produced_type`."""
        return Types.STRING()


class Encoder:
    """Makes a line of a file from an element. Made with :meth:`simple_string_encoder`.

    :param charset_name: the character set
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = checks.charset("charset_name", charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """An encoder that writes each element as a line: its text as ``print`` shows it.

        :param charset_name: the character set
        :returns: the encoder
        """
        return Encoder(charset_name)

    def encode(self, text: str) -> bytes:
        """A line.

        :param text: its text
        :returns: its bytes, with the end of the line
        :raises SerializationError: when the character set has no such character
        """
        try:
            return f"{text}\n".encode(self.charset_name)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{text!r:.80} cannot be written in {self.charset_name}: {error.reason}") from None
