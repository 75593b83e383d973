"""The conversion of Avro messages to rows: the schema of each message, and the values of its record."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.avro.references import definition_of
from airflow_pipelines.rows.formats.avro.rows import AvroRows, Schema
from airflow_pipelines.rows.formats.debezium import (
    Change,
    DebeziumChanges,
    Row,
    RowChange,
    completed_object,
    fields_of_object,
    may_have_unavailable,
)
from airflow_pipelines.rows.formats.defaults import Now
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.registered.messages import HEADER, MessageSchema, RegisteredMessages, schema_number
from airflow_pipelines.rows.formats.registered.registry import KnownSchemas, RegisteredSchema, SchemaRegistry
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import RelationSchema


class AvroMessageParser:
    """A parser of the messages of one schema."""

    def __init__(self, definition: Schema, table: RelationSchema, options: AvroOptions, name: str) -> None:
        """Analyse a schema.

        :param definition: the schema
        :param table: the table for the rows
        :param options: the options of the format
        :param name: the name of the schema in messages
        :raises RecordProblem: when it is invalid, or its values have no counterpart in tables
        """
        try:
            self._schema = parse_schema(definition)
        except Exception as error:
            # fastavro has no common class for errors in a schema.
            raise RecordProblem(f"it is no schema of Avro: {error!r}") from error
        self._is_debezium = options.update_format == "debezium"
        self._debezium = DebeziumChanges(table, RowReader(table), fields_of_object, completed_object)
        self._start = 0 if options.skip_schema_id else HEADER
        self._rows = AvroRows(_row_of_debezium(self._schema) if self._is_debezium else self._schema)
        written = json.dumps(self._schema)
        # The bytes of a list of numbers and of an enumeration's symbol differ from those of the text that they represent.
        self._is_plain = not any(f'"{kind}"' in written for kind in ("array", "enum"))
        self._name = name

    def changes(self, message: bytes) -> Sequence[Change]:
        """Parse one message.

        :raises RecordProblem: when it is malformed
        """
        stream = io.BytesIO(message)
        stream.seek(self._start)
        try:
            record: Any = schemaless_reader(stream, self._schema, None)
        except Exception as error:
            # fastavro has no common class for errors in a record.
            shown = str(error) or type(error).__name__
            raise RecordProblem(f"the message is no record of {self._name}: {shown}") from error
        left = len(message) - stream.tell()
        if left:
            raise RecordProblem(f"the message is no record of {self._name}: {left} bytes are left over")
        if self._is_debezium:
            is_complete = self._is_plain and not may_have_unavailable(message)
            return self._debezium.of(record.get("op"), record.get("before"), record.get("after"), is_complete=is_complete)
        return (RowChange(Op.INSERT, record),)

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Convert rows of changes to a table."""
        return self._rows.table(rows)


def avro_messages(schema: RelationSchema, options: AvroOptions, now: Now) -> RegisteredMessages:
    """Make the parser of the messages of one table. It sends no request to a registry yet.

    :param schema: the table
    :param options: the options, which locate the schemas
    :param now: the clock that a DEFAULT may read
    :raises FormatFailure: when the options have no valid schema
    """
    only = _make_only_parser(schema, options)
    registry = SchemaRegistry(options)

    def make(number: int, registered: RegisteredSchema) -> MessageSchema:
        definition = definition_of(registered, registry, f"schema {number}")
        try:
            return AvroMessageParser(definition, schema, options, f"schema {number}")
        except RecordProblem as problem:
            raise RecordProblem(f"schema {number} cannot be read: {problem}") from problem

    known = KnownSchemas(registry, make)

    def find(message: bytes) -> MessageSchema:
        number = 0 if options.skip_schema_id else schema_number(message)
        return known.of(number) if only is None else only

    # Debezium writes a tombstone after each deletion, so that a topic may forget the key.
    return RegisteredMessages(schema, now, find, skips_tombstones=options.update_format == "debezium")


def _make_only_parser(table: RelationSchema, options: AvroOptions) -> MessageSchema | None:
    """Return the parser of all messages if the options have their schema, or None."""
    if options.definition is None:
        if not options.registry_urls:
            raise FormatFailure("format 'avro' has neither 'registry_urls' nor 'schema'")
        return None
    try:
        return AvroMessageParser(json.loads(options.definition), table, options, "the schema")
    except RecordProblem as problem:
        raise FormatFailure(f"option 'schema' of format 'avro': {problem}") from problem


def _row_of_debezium(schema: Schema) -> Schema:
    """Return the schema of the rows in changes."""
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
