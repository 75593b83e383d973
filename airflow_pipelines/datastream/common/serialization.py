"""Serialisation of elements to the bytes of messages and files, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.streams.errors import ExplainedError


class SerializationError(ExplainedError, ValueError):
    """A failure to read or write a message.

    >>> from airflow_pipelines.datastream.common import SerializationError, SimpleStringSchema
    >>> try:
    ...     SimpleStringSchema("ascii").serialize("käse")
    ... except SerializationError as error:
    ...     print(error)
    'käse' cannot be written in ascii: ordinal not in range(128)
    """


class SerializationSchema(ABC):
    """A schema that converts an element to the bytes of a message.

    >>> from airflow_pipelines.datastream.common import SerializationSchema
    >>> class NameAndNumber(SerializationSchema):
    ...     def serialize(self, element):
    ...         name, number = element
    ...         return f"{name}={number}".encode()
    >>> NameAndNumber().serialize(("pears", 3))
    b'pears=3'
    """

    @abstractmethod
    def serialize(self, element: Any) -> bytes:
        """Return the bytes of an element.

        :param element: the element
        :returns: its bytes
        :raises SerializationError: if it cannot be written
        """


class DeserializationSchema(ABC):
    """A schema that converts the bytes of a message to an element.

    >>> from airflow_pipelines.datastream.common import DeserializationSchema, Types
    >>> class Words(DeserializationSchema):
    ...     def deserialize(self, message):
    ...         return message.decode().split() or None
    ...     def get_produced_type(self):
    ...         return Types.LIST(Types.STRING())
    >>> Words().deserialize(b"to be"), Words().deserialize(b" ")
    (['to', 'be'], None)
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the element of a message.

        :param message: its bytes
        :returns: the element; None to skip the message
        :raises SerializationError: if it cannot be read
        """

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the elements.

        :returns: the type
        """


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """A schema for text and its bytes in a character set.

    :param charset: the character set

    >>> from airflow_pipelines.datastream.common import SimpleStringSchema
    >>> SimpleStringSchema().serialize("pears"), SimpleStringSchema().deserialize(b"pears")
    (b'pears', 'pears')
    >>> SimpleStringSchema("latin-1").deserialize(bytes.fromhex("6be47365"))
    'käse'
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
    """An encoder that converts an element to a line of a file. Use :meth:`simple_string_encoder` to make one.

    :param charset_name: the character set
    """

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = checks.charset("charset_name", charset_name)

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Return an encoder that writes each element as a line, with the text that ``print`` shows.

        :param charset_name: the character set
        :returns: the encoder
        """
        return Encoder(charset_name)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a line.

        :param text: the text of the line
        :returns: the bytes, with the end of the line
        :raises SerializationError: if the character set lacks a character
        """
        try:
            return f"{text}\n".encode(self.charset_name)
        except UnicodeEncodeError as error:
            raise SerializationError(f"{text!r:.80} cannot be written in {self.charset_name}: {error.reason}") from None
