"""The conversion of messages that begin with the number of their schema to rows, in blocks that are read at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa

from airflow_pipelines.rows.formats.debezium import Change, Row, RowChange, Truncation
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.messages import NO_PAYLOAD, Messages, ParsedMessages
from airflow_pipelines.rows.formats.parsed import RecordProblem, RowBuffer
from airflow_pipelines.rows.formats.tables import TableParser
from airflow_pipelines.rows.schema import RelationSchema

HEADER: Final = 5
"""The number of bytes of the header: a zero and the number of a schema."""


class MessageSchema(Protocol):
    """A parser of the messages of one schema."""

    def changes(self, message: bytes) -> Sequence[Change]:
        """Parse one message.

        :param message: the message, with everything before its record
        :raises RecordProblem: when it is malformed
        """

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Convert rows of changes to a table.

        :param rows: the rows, as ``changes`` returns them
        :raises ValueError: when one of their values is invalid
        """


@dataclass(slots=True)
class _Block:
    """Consecutive changes whose messages have the same schema.

    :param schema: the parser of the schema
    :param numbers: the number of the message of each change
    :param changes: the changes
    """

    schema: MessageSchema
    numbers: list[int] = field(default_factory=list)
    changes: list[RowChange] = field(default_factory=list)


class RegisteredMessages:
    """A parser of the messages of one table."""

    def __init__(self, schema: RelationSchema, now: Now, find: Callable[[bytes], MessageSchema], *, skips_tombstones: bool) -> None:
        """Make the parser, without a request to a registry.

        :param schema: the table
        :param now: the clock that a DEFAULT may read
        :param find: a function that returns the parser of a message, by its header
        :param skips_tombstones: True if a message without a payload is ignored, and not malformed
        """
        self._schema = schema
        self._tables = TableParser(schema, now)
        self._find = find
        self._skips_tombstones = skips_tombstones

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages; a malformed one does not affect the others.

        :raises FormatFailure: when their schemas are not available; :class:`TransientFormatFailure` when they may be later
        """
        buffer = RowBuffer(self._schema)
        self._tables.begin(messages.metadata)
        block: _Block | None = None
        for number, value in enumerate(messages.values):
            if value is None and self._skips_tombstones:
                continue
            try:
                if value is None:
                    raise RecordProblem(NO_PAYLOAD)
                schema = self._find(value)
                changes = schema.changes(value)
            except RecordProblem as problem:
                buffer.reject(number, str(problem))
                continue
            if block is None or block.schema is not schema:
                self._add(block, buffer)
                block = _Block(schema)
            for change in changes:
                if isinstance(change, Truncation):
                    self._add(block, buffer)
                    block = _Block(schema)
                    buffer.truncate()
                else:
                    block.numbers.append(number)
                    block.changes.append(change)
        self._add(block, buffer)
        parsed = buffer.finish(0, len(messages.values))
        return ParsedMessages(parsed.changes, parsed.records, parsed.errors, parsed.num_errors)

    def _add(self, block: _Block | None, buffer: RowBuffer) -> None:
        if block is not None:
            self._add_rows(block, 0, len(block.changes), buffer)

    def _add_rows(self, block: _Block, start: int, stop: int, buffer: RowBuffer) -> None:
        """Add a part of a block; if one of its values fits into no table, add each half of it."""
        numbers, changes = block.numbers[start:stop], block.changes[start:stop]
        try:
            rows = block.schema.table([change.row for change in changes])
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            if stop - start == 1:
                buffer.reject(numbers[0], f"a value cannot be taken: {error}")
                return
            middle = (start + stop) // 2
            self._add_rows(block, start, middle, buffer)
            self._add_rows(block, middle, stop, buffer)
            return
        left_out = [change.left_out for change in changes] if any(change.left_out for change in changes) else None
        self._tables.add_changes(rows, [change.op for change in changes], numbers, buffer, left_out)


def schema_number(message: bytes) -> int:
    """Decode the number of the schema of a message.

    :param message: the message, with everything before its record
    :raises RecordProblem: when it does not begin with one
    """
    if len(message) < HEADER or message[0] != 0:
        raise RecordProblem(
            "the message does not begin with a zero and the number of a schema; where messages have none, set 'skip_schema_id'"
        )
    return int.from_bytes(message[1:HEADER], "big")
