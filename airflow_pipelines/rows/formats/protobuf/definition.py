"""The definition of the Protobuf format. It is for messages, which do not describe themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.messages import MessageEncoder, Messages, ParsedMessages
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.registered.options import check_messages_written, check_read, check_written
from airflow_pipelines.rows.schema import RelationSchema

if TYPE_CHECKING:
    from airflow_pipelines.rows.formats.registered.messages import RegisteredMessages


class ProtobufParser:
    """A parser of messages of a queue."""

    def __init__(self, schema: RelationSchema, options: ProtobufOptions, now: Now) -> None:
        """Make a parser for one table.

        :param schema: the table
        :param options: the options, which locate the types of messages
        :param now: the clock that a DEFAULT may read
        """
        self._schema = schema
        self._options = options
        self._now = now

    def parse(self, data: bytes, first_index: int = 0) -> Parsed:  # noqa: ARG002 - the protocol's signature
        """Raise, because bytes alone do not separate one message from the next.

        :raises InvalidOptionError: always
        """
        raise InvalidOptionError("format 'protobuf' is for the messages of a queue, such as those of 'kafka_input'", "protobuf")

    def parse_prefix(self, data: bytes, first_index: int) -> Parsed:
        """Raise like :meth:`parse`."""
        return self.parse(data, first_index)

    def state(self) -> dict[str, Any]:
        """Return an empty state: nothing is remembered between calls."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing, because nothing is remembered between calls."""

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages; a malformed one does not affect the others.

        :raises FormatFailure: when their types are not available
        """
        return self._messages.parse_messages(messages)

    @cached_property
    def _messages(self) -> RegisteredMessages:
        from airflow_pipelines.rows.formats.protobuf.messages import protobuf_messages

        return protobuf_messages(self._schema, self._options, self._now)


def _new_message_encoder(schema: RelationSchema, options: ProtobufOptions, key: Sequence[str]) -> MessageEncoder:
    from airflow_pipelines.rows.formats.protobuf.changes import protobuf_changes

    return protobuf_changes(schema, options, key)


PROTOBUF: Final = FormatDefinition(
    name="protobuf",
    options=ProtobufOptions,
    new_parser=ProtobufParser,
    new_message_encoder=_new_message_encoder,
    check_read=check_read,
    check_written=check_written,
    check_messages_written=check_messages_written,
    packages=("google.protobuf",),
    extra="protobuf",
)
