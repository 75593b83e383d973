"""Changes from messages of a queue, such as the records of Kafka: each message is a document of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import pyarrow as pa

from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.parsed import Parser, RecordError, RecordProblem, RowBuffer
from airflow_pipelines.rows.schema import RelationSchema

_FEW: Final = 16
"""The maximum number of messages that are read one by one if they cannot be read together."""
_FIRST: Final = "record 0: "
"""The prefix of errors that is dropped, because most documents have one record only."""
NO_PAYLOAD: Final = "the message has no payload (a tombstone), which says nothing that this format could read"


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in order.

    :param values: their payloads; None if there is none
    :param key: a function that returns the key of a message by its number
    :param metadata: the metadata of each message, one column for each name; None if there are none
    """

    values: Sequence[bytes | None]
    key: Callable[[int], bytes | None]
    metadata: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The contents of messages.

    :param changes: the well-formed rows in order, None if there are none
    :param records: the number of these rows
    :param errors: the first malformed records; the index of each is the number of its message
    :param num_errors: the number of all malformed records
    """

    changes: TableChanges | None
    records: int
    errors: tuple[RecordError, ...]
    num_errors: int


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A change as a message.

    :param key: its key; None for a message without one
    :param value: its payload; None for a tombstone, which only says that its key is deleted
    :param headers: its headers by name
    """

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()

    @property
    def size(self) -> int:
        """The number of bytes of its key and its payload."""
        return len(self.key or b"") + len(self.value or b"")


class MessageEncoder(Protocol):
    """An encoder of changes as messages with keys, for one stream."""

    def open(self, topic: str) -> None:
        """Prepare to write.

        :param topic: the topic of the messages
        :raises FormatFailure: when it cannot write
        """

    def messages(self, changes: pa.Table) -> Iterator[WrittenMessage]:
        """Yield each change as a message; the two rows of an update as one if the format has updates.

        :param changes: rows with a weight of 1 or -1 as the last column, and optionally with updates (``formats.delta.UPDATE``)
        :raises FormatFailure: when one cannot be written
        """


@runtime_checkable
class MessageParser(Protocol):
    """A parser of messages of one format."""

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages; a malformed one does not affect the others."""


@runtime_checkable
class DocumentParser(Protocol):
    """A parser of a format in which each message is a document that is complete by itself."""

    @property
    def repeats_deletes(self) -> bool:
        """True if a message without a payload repeats the delete before it, so that a queue may forget its key."""

    def begin(self, metadata: pa.Table | None) -> None:
        """Begin another batch of documents, whose DEFAULTs have a time of their own.

        :param metadata: the metadata of each document, one column for each name; None if there are none
        """

    def read_together(self, documents: Sequence[bytes], numbers: Sequence[int], buffer: RowBuffer) -> bool:
        """Add the changes of documents to a buffer, or add nothing and return False if they have to be read one by one.

        :param documents: the documents
        :param numbers: their numbers, by which their metadata are found
        :param buffer: the buffer for the rows
        """

    def read_document(self, document: bytes, buffer: RowBuffer) -> None:
        """Add the changes of a document to a buffer, and its problems.

        The buffer has the number of the document, by which its metadata are found.
        """


def message_parser(schema: RelationSchema, parser: Parser) -> MessageParser:
    """Make the parser of the messages of a format.

    :param schema: the schema of the table for the rows
    :param parser: the parser of the format
    :raises RecordProblem: when the format has no messages
    """
    if isinstance(parser, MessageParser):
        return parser
    if isinstance(parser, DocumentParser):
        return DocumentMessages(schema, parser)
    raise RecordProblem("this format cannot be read from messages")


class DocumentMessages:
    """A parser of messages that are documents, as many at once as the format allows."""

    def __init__(self, schema: RelationSchema, parser: DocumentParser) -> None:
        """Make the parser of the messages of one table.

        :param schema: the schema of the table
        :param parser: the parser of the format
        """
        self._schema = schema
        self._parser = parser

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages, together if possible."""
        buffer = RowBuffer(self._schema)
        documents = [value for value in messages.values if value]
        numbers: Sequence[int] = range(len(documents))
        if len(documents) < len(messages.values):
            numbers = [number for number, value in enumerate(messages.values) if value]
            self._reject_missing(messages, buffer)
        self._parser.begin(messages.metadata)
        self._read(numbers, documents, buffer)
        parsed = buffer.finish(0, len(messages.values))
        errors = (RecordError(error.index, error.message.removeprefix(_FIRST)) for error in parsed.errors)
        return ParsedMessages(parsed.changes, parsed.records, tuple(errors), parsed.num_errors)

    def _reject_missing(self, messages: Messages, buffer: RowBuffer) -> None:
        for number, value in enumerate(messages.values):
            if not value and (value is not None or not self._parser.repeats_deletes):
                buffer.reject(number, NO_PAYLOAD)

    def _read(self, numbers: Sequence[int], documents: Sequence[bytes], buffer: RowBuffer) -> None:
        """Read documents together; if that fails, each half of them, so that a malformed one slows down few others."""
        if len(documents) > _FEW:
            if self._parser.read_together(documents, numbers, buffer):
                return
            middle = len(documents) // 2
            self._read(numbers[:middle], documents[:middle], buffer)
            self._read(numbers[middle:], documents[middle:], buffer)
            return
        for number, document in zip(numbers, documents, strict=True):
            buffer.document = number
            self._parser.read_document(document, buffer)
        buffer.document = None
