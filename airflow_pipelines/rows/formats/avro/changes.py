"""Encoders of the rows of a view as records of Avro."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastavro import parse_schema, schemaless_writer

from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.avro.rows import Schema
from airflow_pipelines.rows.formats.avro.schemas import Record, as_record, record_schema
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.registered.changes import RegisteredChanges
from airflow_pipelines.rows.formats.registered.registry import RegisteredSchema, SchemaRegistry
from airflow_pipelines.rows.schema import RelationSchema


@dataclass(frozen=True, slots=True)
class _Encoding:
    """The encoding of rows as bytes.

    :param fields: the fields of a record, with the column of each
    :param records: the conversions of the values of some columns for records
    :param schema: the schema, as fastavro parses it
    :param narrow: the columns of 32 bits in it, for which fastavro accepts any number
    :param head: the bytes before a record
    """

    fields: Sequence[tuple[str, str]]
    records: Mapping[str, Record]
    schema: Schema
    narrow: Sequence[str]
    head: bytes

    def encode(self, row: dict[str, Any]) -> bytes:
        """Encode a row as a record.

        :raises FormatFailure: when its values do not fit into the schema
        """
        for name in self.narrow:
            if isinstance(row[name], int) and not -(2**31) <= row[name] < 2**31:
                raise FormatFailure(
                    f"a row does not fit into the schema of format 'avro': {row[name]} of column {name!r} is no int of 32 bits"
                )
        stream = io.BytesIO()
        stream.write(self.head)
        changed = {name: make(row[name]) for name, make in self.records.items() if row[name] is not None}
        values = {**row, **changed} if changed else row
        try:
            schemaless_writer(stream, self.schema, {name: values[column] for name, column in self.fields})
        except Exception as error:
            # fastavro has no common class for values that do not fit into a schema.
            raise FormatFailure(f"a row does not fit into the schema of format 'avro': {error}") from error
        return stream.getvalue()


class AvroEncodings:
    """The encodings of the values and the keys of messages."""

    def __init__(self, schema: RelationSchema, options: AvroOptions, key: Sequence[str]) -> None:
        """Determine the schemas.

        :param schema: the view
        :param options: the options of the format
        :param key: the columns of the index; empty without one
        :raises FormatFailure: when the view does not fit into a schema
        """
        self._options = options
        self._columns = schema.column_names
        self._records = {column.name: made for column in schema.columns if (made := as_record(column.type)) is not None}
        self._value_schema = self._of_values(schema)
        self._key = list(key)
        self._key_schema = None
        if key and options.key_mode != "none":
            of_key = {column.name: column for column in schema.columns}
            self._key_schema = record_schema([of_key[name] for name in key], f"{schema.name}_key", options.namespace)

    def open(self, topic: str) -> tuple[_Encoding, _Encoding | None]:
        """Register the schemas, if there is a registry.

        :param topic: the topic of the messages
        :raises FormatFailure: when the registry refuses them; :class:`TransientFormatFailure` when it does not answer
        """
        registry = SchemaRegistry(self._options) if self._options.registry_urls else None
        value = self._encoding(self._value_schema, self._columns, topic, "value", registry)
        if self._key_schema is None:
            return value, None
        return value, self._encoding(self._key_schema, self._key, topic, "key", registry)

    def _of_values(self, schema: RelationSchema) -> Schema:
        """Return the schema of values: that of the options, or one made for the view."""
        more = () if self._options.cdc_field is None else ({"name": self._options.cdc_field, "type": "string"},)
        if self._options.definition is None:
            return record_schema(schema.columns, schema.name, self._options.namespace, more)
        definition = json.loads(self._options.definition)
        if not isinstance(definition, dict) or definition.get("type") != "record":
            raise FormatFailure("option 'schema' of format 'avro' is none of a record, and a row has columns")
        return definition

    def _encoding(
        self, definition: Schema, columns: Sequence[str], topic: str, part: str, registry: SchemaRegistry | None
    ) -> _Encoding:
        try:
            schema: Any = parse_schema(definition)
        except Exception as error:
            # fastavro has no common class for errors in a schema.
            raise FormatFailure(f"option 'schema' of format 'avro': it is no schema of Avro: {error!r}") from error
        number = 0
        if registry is not None:
            # The schema is registered also if the messages do not contain its number.
            subject = self._options.subject(schema["name"], topic, part)
            number = registry.register(subject, RegisteredSchema(json.dumps(definition)))
        head = b"" if self._options.skip_schema_id else struct.pack(">bI", 0, number)
        fields = self._fields(schema, columns)
        records = {column: self._records[column] for _, column in fields if column in self._records}
        narrow = [column for (_, column), each in zip(fields, schema["fields"], strict=True) if _is_narrow(each["type"])]
        return _Encoding(fields, records, schema, narrow, head)

    def _fields(self, schema: Schema, columns: Sequence[str]) -> list[tuple[str, str]]:
        names = {name.lower(): name for name in columns}
        if self._options.cdc_field is not None:
            names[self._options.cdc_field.lower()] = self._options.cdc_field
        fields = [(each["name"], names.get(each["name"].lower())) for each in schema["fields"]]
        unknown = [name for name, column in fields if column is None]
        if unknown:
            listed = ", ".join(repr(name) for name in unknown)
            raise FormatFailure(f"option 'schema' of format 'avro' has fields that the view does not have: {listed}")
        return [(name, column) for name, column in fields if column is not None]


def _is_narrow(kind: Schema) -> bool:
    """Return True if the integers of a field have 32 bits."""
    members = kind if isinstance(kind, list) else [kind]
    plain = {member if isinstance(member, str) else member["type"] for member in members if _is_plain(member)}
    return "int" in plain and not plain & {"long", "float", "double"}


def _is_plain(kind: Schema) -> bool:
    return isinstance(kind, str) or (isinstance(kind.get("type"), str) and "logicalType" not in kind)


def avro_changes(schema: RelationSchema, options: AvroOptions, key: Sequence[str]) -> RegisteredChanges:
    """Make the encoder of the changes of one view. It sends no request to the registry before it is opened.

    :param schema: the view
    :param options: the options of the format
    :param key: the columns of the index; empty without one
    :raises FormatFailure: when the view does not fit into a schema
    """
    return RegisteredChanges(schema.column_names, options, AvroEncodings(schema, options, key))
