"""Rows from messages that begin with the number of their schema: what each says, and which ones can be read at once."""

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
"""So many bytes are a zero and the number of a schema."""


class MessageSchema(Protocol):
    """A parser of the messages of one schema."""

    def changes(self, message: bytes) -> Sequence[Change]:
        """Parse one message.

        :param message: with all that stands before its record
        :raises RecordProblem: when it is malformed
        """

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Rows of changes as a table.

        :param rows: as ``changes`` gives them
        :raises ValueError: when one of their values is none
        """


@dataclass(slots=True)
class _Block:
    """Changes in order whose messages have the same schema.

    :param schema: reads them
    :param numbers: of the message of each change
    :param changes: the changes
    """

    schema: MessageSchema
    numbers: list[int] = field(default_factory=list)
    changes: list[RowChange] = field(default_factory=list)


class RegisteredMessages:
    """A parser of the messages of one table."""

    def __init__(self, schema: RelationSchema, now: Now, find: Callable[[bytes], MessageSchema], *, skips_tombstones: bool) -> None:
        """Ask no registry yet.

        :param schema: the table
        :param now: the clock that a DEFAULT may read
        :param find: gives what reads a message, by what it begins with
        :param skips_tombstones: a message without a payload says nothing, and is not malformed
        """
        self._schema = schema
        self._tables = TableParser(schema, now)
        self._find = find
        self._skips_tombstones = skips_tombstones

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """Parse messages; a bad one costs none of the others.

        :raises FormatFailure: when their schemas cannot be had; :class:`TransientFormatFailure` when they may be later
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
        """Add a part of a block; where one of its values fits into no table, each half of it."""
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

    :param message: with all that stands before its record
    :raises RecordProblem: when it does not begin with one
    """
    if len(message) < HEADER or message[0] != 0:
        raise RecordProblem(
            "the message does not begin with a zero and the number of a schema; where messages have none, set 'skip_schema_id'"
        )
    return int.from_bytes(message[1:HEADER], "big")
