"""The definition of the Avro format, and the parser of both files and messages."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.avro.rows import AvroRows
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.messages import MessageEncoder, Messages, ParsedMessages
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.registered.options import check_messages_written, check_read, check_written
from airflow_pipelines.rows.formats.tables import TableFileParser
from airflow_pipelines.rows.schema import RelationSchema

if TYPE_CHECKING:
    from airflow_pipelines.rows.formats.registered.messages import RegisteredMessages


class AvroParser:
    """A parser of files, which contain their schema, and of messages, which do not."""

    def __init__(self, schema: RelationSchema, options: AvroOptions, now: Now) -> None:
        """Make a parser for one table.

        :param schema: the table
        :param options: the options, which locate the schemas of messages
        :param now: the clock that a DEFAULT may read
        """
        self._schema = schema
        self._options = options
        self._now = now
        self._files = TableFileParser(schema, now, "an Avro", _read)

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:
        """Parse a whole file."""
        return self._files.parse(data, first_index)

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Parse the whole file, which is complete or cannot be read, like :meth:`parse`."""
        return self._files.parse(data, first_index)

    def state(self) -> dict[str, Any]:
        """Return an empty state: nothing is remembered between calls."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because nothing is remembered between calls."""

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages; a malformed one does not affect the others.

        :raises FormatFailure: when their schemas are not available
        """
        return self._messages.parse_messages(messages)

    @cached_property
    def _messages(self) -> RegisteredMessages:
        from airflow_pipelines.rows.formats.avro.messages import avro_messages

        return avro_messages(self._schema, self._options, self._now)


def _read(data: bytes) -> pa.Table:
    from fastavro import reader

    try:
        records = reader(io.BytesIO(data))
        return AvroRows(records.writer_schema).table(list(records))
    except Exception as error:
        # fastavro has no common class for errors in a file.
        raise ValueError(str(error)) from error


def _new_message_encoder(schema: RelationSchema, options: AvroOptions, key: Sequence[str]) -> MessageEncoder:
    from airflow_pipelines.rows.formats.avro.changes import avro_changes

    return avro_changes(schema, options, key)


AVRO: Final = FormatDefinition(
    name="avro",
    options=AvroOptions,
    new_parser=AvroParser,
    new_message_encoder=_new_message_encoder,
    check_read=check_read,
    check_written=check_written,
    check_messages_written=check_messages_written,
    packages=("fastavro",),
    extra="avro",
)
