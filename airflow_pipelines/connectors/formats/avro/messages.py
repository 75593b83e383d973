"""Rows from messages in Avro: which schema each was written with, and what its record says."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from airflow_pipelines.connectors.formats.avro.options import AvroOptions
from airflow_pipelines.connectors.formats.avro.registry import SchemaRegistry
from airflow_pipelines.connectors.formats.avro.rows import AvroRows, Schema
from airflow_pipelines.connectors.formats.defaults import Now
from airflow_pipelines.connectors.formats.failures import FormatFailure
from airflow_pipelines.connectors.formats.messages import NO_PAYLOAD, Messages, ParsedMessages
from airflow_pipelines.connectors.formats.parsed import RecordProblem, RowBuffer
from airflow_pipelines.connectors.formats.tables import TableParser
from airflow_pipelines.engine.changes import Op
from airflow_pipelines.engine.schema import RelationSchema

HEADER: Final = 5
"""So many bytes are before the record: a zero, and the number of its schema."""
_GOES: Final = {"c": False, "r": False, "u": True, "d": True}
"""Of each operation of Debezium whether a row goes."""
_Change = tuple[Op, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Writer:
    """What messages of one schema are read with.

    :param number: of the schema; None for the only one
    :param schema: as fastavro has it
    :param rows: makes tables of rows
    """

    number: int | None
    schema: Schema
    rows: AvroRows


@dataclass(slots=True)
class _Block:
    """Changes in order whose messages have the same schema.

    :param writer: reads them
    :param numbers: of the message of each change
    :param operations: what each is
    :param rows: their rows
    """

    writer: _Writer
    numbers: list[int] = field(default_factory=list)
    operations: list[Op] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


class AvroMessages:
    """Reads the messages of one table."""

    def __init__(self, schema: RelationSchema, options: AvroOptions, now: Now) -> None:
        """Ask no registry yet.

        :param schema: the table
        :param options: where the schemas are
        :param now: the clock that a DEFAULT may read
        :raises FormatFailure: when the schema of the options is none
        """
        self._schema = schema
        self._tables = TableParser(schema, now)
        self._skips_header = not options.skip_schema_id
        self._is_debezium = options.update_format == "debezium"
        self._registry = SchemaRegistry(options) if options.registry_urls else None
        self._writers: dict[int, _Writer | str] = {}
        """By number of the schema what reads its messages, or why nothing can."""
        self._only: _Writer | None = None
        if options.definition is not None:
            try:
                self._only = self._writer(None, json.loads(options.definition))
            except RecordProblem as problem:
                raise FormatFailure(f"option 'schema' of format 'avro': {problem}") from problem

    def parse_messages(self, messages: Messages) -> ParsedMessages:
        """What messages say; a bad one costs none of the others.

        :raises FormatFailure: when their schemas cannot be had; :class:`TransientFormatFailure` when they may be later
        """
        buffer = RowBuffer(self._schema)
        self._tables.begin(messages.metadata)
        block: _Block | None = None
        for number, value in enumerate(messages.values):
            if value is None and self._is_debezium:
                # It follows each deletion, so that a topic may forget the key.
                continue
            try:
                writer = self._writer_of(value)
                changes = self._changes(writer, value or b"")
            except RecordProblem as problem:
                buffer.reject(number, str(problem))
                continue
            if block is None or block.writer is not writer:
                self._add(block, buffer)
                block = _Block(writer)
            for operation, row in changes:
                block.numbers.append(number)
                block.operations.append(operation)
                block.rows.append(row)
        self._add(block, buffer)
        parsed = buffer.finish(0, len(messages.values))
        return ParsedMessages(parsed.changes, parsed.records, parsed.errors, parsed.num_errors)

    def _writer_of(self, value: bytes | None) -> _Writer:
        """What reads a message."""
        if value is None:
            raise RecordProblem(NO_PAYLOAD)
        if self._skips_header and (len(value) < HEADER or value[0] != 0):
            raise RecordProblem(
                "the message does not begin with a zero and the number of a schema; where messages have none, set 'skip_schema_id'"
            )
        if self._only is not None:
            return self._only
        number = int.from_bytes(value[1:HEADER], "big")
        found = self._writers.get(number)
        if found is None:
            found = self._find(number)
        if isinstance(found, str):
            raise RecordProblem(found)
        return found

    def _find(self, number: int) -> _Writer | str:
        if self._registry is None:
            raise FormatFailure("format 'avro' has neither 'registry_urls' nor 'schema'")
        # A schema that is not there may be soon, and is asked for again.
        schema = self._registry.schema(number)
        try:
            self._writers[number] = self._writer(number, schema)
        except RecordProblem as problem:
            self._writers[number] = f"schema {number} cannot be read: {problem}"
        return self._writers[number]

    def _writer(self, number: int | None, definition: Schema) -> _Writer:
        try:
            schema = parse_schema(definition)
        except Exception as error:
            # fastavro has no common class for what is wrong with a schema.
            raise RecordProblem(f"it is no schema of Avro: {error!r}") from error
        row = _row_of_debezium(schema) if self._is_debezium else schema
        return _Writer(number, schema, AvroRows(row))

    def _changes(self, writer: _Writer, value: bytes) -> Sequence[_Change]:
        stream = io.BytesIO(value)
        stream.seek(HEADER if self._skips_header else 0)
        try:
            record: Any = schemaless_reader(stream, writer.schema, None)
        except Exception as error:
            # fastavro has no common class for what is wrong with a record.
            shown = str(error) or type(error).__name__
            raise RecordProblem(f"the message is no record of {_schema_name(writer)}: {shown}") from error
        left = len(value) - stream.tell()
        if left:
            raise RecordProblem(f"the message is no record of {_schema_name(writer)}: {left} bytes are left over")
        return self._of_debezium(record) if self._is_debezium else ((Op.INSERT, record),)

    def _of_debezium(self, record: dict[str, Any]) -> Sequence[_Change]:
        operation, before, after = record.get("op"), record.get("before"), record.get("after")
        if operation not in _GOES:
            raise RecordProblem(f"{operation!r} is no operation of Debezium; wanted 'c', 'u', 'd' or 'r'")
        changes: list[_Change] = []
        if _GOES[operation] and before is not None:
            changes.append((Op.DELETE, before))
        if operation != "d":
            if after is None:
                raise RecordProblem("the row that comes ('after') is missing")
            changes.append((Op.INSERT, after))
        if not changes:
            raise RecordProblem("the row that goes ('before') is missing")
        return changes

    def _add(self, block: _Block | None, buffer: RowBuffer) -> None:
        if block is not None:
            self._add_rows(block.writer.rows.table, block, 0, len(block.rows), buffer)

    def _add_rows(
        self, table: Callable[[Sequence[Any]], pa.Table], block: _Block, start: int, stop: int, buffer: RowBuffer
    ) -> None:
        """Add a part of a block; where one of its values fits into no table, each half of it."""
        numbers, operations = block.numbers[start:stop], block.operations[start:stop]
        try:
            rows = table(block.rows[start:stop])
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            if stop - start == 1:
                buffer.reject(numbers[0], f"a value cannot be taken: {error}")
                return
            middle = (start + stop) // 2
            self._add_rows(table, block, start, middle, buffer)
            self._add_rows(table, block, middle, stop, buffer)
            return
        self._tables.add_changes(rows, operations, numbers, buffer)


def _row_of_debezium(schema: Schema) -> Schema:
    """The schema of the rows in changes."""
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    types = {each["name"]: each["type"] for each in fields}
    if not {"before", "after", "op"} <= types.keys():
        raise RecordProblem("it is none of Debezium's changes, which have 'before', 'after' and 'op'")
    # One of the two has the definition, and the other one its name.
    for name in ("before", "after"):
        members = types[name] if isinstance(types[name], list) else [types[name]]
        for member in members:
            if isinstance(member, dict) and member.get("type") == "record":
                return member
    raise RecordProblem("its 'before' and 'after' are no records")


def _schema_name(writer: _Writer) -> str:
    return "the schema" if writer.number is None else f"schema {writer.number}"
