"""Changes of a view as messages in Avro."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer

from airflow_pipelines.connectors.formats.avro.options import AvroOptions
from airflow_pipelines.connectors.formats.avro.registry import SchemaRegistry
from airflow_pipelines.connectors.formats.avro.rows import Schema
from airflow_pipelines.connectors.formats.avro.schemas import Record, as_record, record_schema
from airflow_pipelines.connectors.formats.delta import UPDATE
from airflow_pipelines.connectors.formats.failures import FormatFailure
from airflow_pipelines.connectors.formats.messages import WrittenMessage
from airflow_pipelines.engine.arrow import WEIGHT
from airflow_pipelines.engine.schema import RelationSchema

OPERATION: Final = "op"
"""The header that says what a message is."""
_INSERT, _UPDATE, _DELETE = "insert", "update", "delete"
_LETTERS: Final = {_INSERT: "I", _UPDATE: "U", _DELETE: "D"}


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How rows become bytes.

    :param fields: of a record, with the column of each
    :param schema: as fastavro has it
    :param head: what stands before a record
    """

    fields: Sequence[tuple[str, str]]
    schema: Schema
    head: bytes

    def encoded(self, row: dict[str, Any]) -> bytes:
        """A row as a record.

        :raises FormatFailure: when the schema does not take its values
        """
        stream = io.BytesIO()
        stream.write(self.head)
        try:
            schemaless_writer(stream, self.schema, {name: row[column] for name, column in self.fields})
        except Exception as error:
            # fastavro has no common class for values that a schema does not take.
            raise FormatFailure(f"a row does not fit into the schema of format 'avro': {error}") from error
        return stream.getvalue()


class AvroChanges:
    """Writes each change as a message; its key is the columns of the index."""

    def __init__(self, schema: RelationSchema, options: AvroOptions, key: Sequence[str]) -> None:
        """Make what writes the changes of one view. Nothing is asked or registered before it is opened.

        :param schema: the view
        :param options: those of the format
        :param key: the columns of the index; empty without one
        :raises FormatFailure: when the view does not fit into a schema
        """
        self._options = options
        self._is_jdbc = options.update_format == "confluent_jdbc"
        self._records: list[tuple[str, Record]] = []
        for column in schema.columns:
            made = as_record(column.type)
            if made is not None:
                self._records.append((column.name, made))
        self._value_schema = self._of_values(schema)
        of_key = {name: column for column in schema.columns for name in (column.name,) if name in key}
        self._key_schema = None
        if key and options.key_mode != "none":
            self._key_schema = record_schema([of_key[name] for name in key], f"{schema.name}_key", options.namespace)
        self._columns = [column.name for column in schema.columns]
        self._key = list(key)
        self._value: _Encoding | None = None
        self._keys: _Encoding | None = None

    def open(self, topic: str) -> None:
        """Register the schemas, where there is a registry.

        :param topic: where messages go
        :raises FormatFailure: when the registry refuses them; :class:`TransientFormatFailure` when it does not answer
        """
        registry = SchemaRegistry(self._options) if self._options.registry_urls else None
        self._value = self._encoding(self._value_schema, self._columns, topic, "value", registry)
        if self._key_schema is not None:
            self._keys = self._encoding(self._key_schema, self._key, topic, "key", registry)

    def messages(self, changes: pa.Table) -> Iterator[WrittenMessage]:
        """Each change as a message; the two rows of an update as one.

        :param changes: rows with a weight of 1 or -1 as the last column, and maybe with updates
        :raises FormatFailure: when a row does not fit into the schema
        """
        if self._value is None:
            raise FormatFailure("format 'avro' was not opened")
        updates = changes.column(UPDATE).to_pylist() if UPDATE in changes.column_names else [False] * changes.num_rows
        weights = changes.column(WEIGHT).to_pylist()
        for row, weight, is_part in zip(changes.select(self._columns).to_pylist(), weights, updates, strict=True):
            if is_part and weight < 0:
                # The message of the new row says it.
                continue
            for name, record in self._records:
                if row[name] is not None:
                    row[name] = record(row[name])
            yield self._message(row, _UPDATE if is_part else _INSERT if weight > 0 else _DELETE, self._value)

    def _message(self, row: dict[str, Any], operation: str, value: _Encoding) -> WrittenMessage:
        key = None if self._keys is None else self._keys.encoded(row)
        if self._is_jdbc:
            return WrittenMessage(key, None if operation == _DELETE else value.encoded(row))
        if self._options.cdc_field is not None:
            row[self._options.cdc_field] = _LETTERS[operation]
        return WrittenMessage(key, value.encoded(row), ((OPERATION, operation.encode()),))

    def _of_values(self, schema: RelationSchema) -> Schema:
        """The schema of values: that of the options, or one that is made for the view."""
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
            # fastavro has no common class for what is wrong with a schema.
            raise FormatFailure(f"option 'schema' of format 'avro': it is no schema of Avro: {error!r}") from error
        # The one that was registered is asked for whatever the messages then say of it.
        number = 0 if registry is None else registry.register(self._subject(schema["name"], topic, part), definition)
        head = b"" if self._options.skip_schema_id else struct.pack(">bI", 0, number)
        return _Encoding(self._fields(schema, columns), schema, head)

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

    def _subject(self, name: str, topic: str, part: str) -> str:
        strategy = self._options.subject_name_strategy or ("topic_name" if self._is_jdbc else "record_name")
        return {"topic_name": f"{topic}-{part}", "record_name": name, "topic_record_name": f"{topic}-{name}"}[strategy]
