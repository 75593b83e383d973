"""Rows as Avro records."""

from __future__ import annotations

import io
import json
from typing import Any

from airflow_pipelines.datastream.common.avro_types import AvroType, avro_type, row_type
from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationError, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation
from airflow_pipelines.streams.errors import ExplainedError

_FRAMED = (
    " Messages of a schema registry have five more bytes at their beginning: read those with the connector kafka_input and its"
    " format avro."
)


class AvroNotAvailableError(ExplainedError, ImportError):
    """A missing library: a program reads or writes Avro, and the library for it is not installed.

    >>> import sys
    >>> from unittest.mock import patch
    >>> from airflow_pipelines.datastream.common import AvroNotAvailableError, AvroRowSerializationSchema
    >>> with patch.dict(sys.modules, fastavro=None):  # as if the library was not installed
    ...     try:
    ...         AvroRowSerializationSchema(avro_schema_string='{"type": "record", "name": "Sale", "fields": []}')
    ...     except AvroNotAvailableError as error:
    ...         print(error)
    AvroRowSerializationSchema needs fastavro: pip install 'airflow-pipelines[avro]'
    """


class AvroRowDeserializationSchema(DeserializationSchema):
    """A schema that converts Avro records in binary form to rows. Each message has one record.

    :param record_class: name of a Java class, which is not loaded
    :param avro_schema_string: the schema of a record as JSON
    :raises ValueError: if the schema is missing or invalid
    :raises AvroNotAvailableError: if ``fastavro`` is not installed

    >>> from airflow_pipelines.datastream.common import AvroRowDeserializationSchema
    >>> fields = '[{"name": "fruit", "type": "string"}, {"name": "number", "type": "int"}]'
    >>> schema = AvroRowDeserializationSchema(avro_schema_string=f'{{"type": "record", "name": "Sale", "fields": {fields}}}')
    >>> schema.deserialize(bytes.fromhex("0a 7065617273 06"))
    Row(fruit='pears', number=3)
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._codec = _Codec(type(self).__name__, record_class, avro_schema_string)

    def deserialize(self, message: bytes) -> Any:
        """See :meth:`DeserializationSchema.deserialize`."""
        return self._codec.read(message)

    def get_produced_type(self) -> TypeInformation:
        """See :meth:`DeserializationSchema.get_produced_type`."""
        return self._codec.row_type


class AvroRowSerializationSchema(SerializationSchema):
    """A schema that converts rows to Avro records in binary form.

    :param record_class: name of a Java class, which is not loaded
    :param avro_schema_string: the schema of a record as JSON
    :raises ValueError: if the schema is missing or invalid
    :raises AvroNotAvailableError: if ``fastavro`` is not installed

    >>> from airflow_pipelines.datastream.common import AvroRowSerializationSchema, Row
    >>> fields = '[{"name": "fruit", "type": "string"}, {"name": "number", "type": "int"}]'
    >>> schema = AvroRowSerializationSchema(avro_schema_string=f'{{"type": "record", "name": "Sale", "fields": {fields}}}')
    >>> schema.serialize(Row(fruit="pears", number=3)).hex()
    '0a706561727306'
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._codec = _Codec(type(self).__name__, record_class, avro_schema_string)

    def serialize(self, element: Any) -> bytes:
        """See :meth:`SerializationSchema.serialize`."""
        return self._codec.write(element)


class _Codec:
    """A reader and writer of the records of a schema.

    :param name: the name of the class that uses it, for messages
    :param record_class: name of a Java class
    :param text: the schema as JSON
    """

    def __init__(self, name: str, record_class: str | None, text: str | None) -> None:
        if text is None:
            given = "nothing was given"
            if record_class:
                given = f"record_class={record_class!r} is a class of the JVM, which is not loaded"
            raise ValueError(f"{name} needs avro_schema_string, the schema as JSON: {given}")
        self._name, self._text = name, text
        self._make()

    def _make(self) -> None:
        try:
            from fastavro import parse_schema
            from fastavro.schema import SchemaParseException, UnknownType
        except ImportError as error:
            raise AvroNotAvailableError(f"{self._name} needs fastavro: pip install 'airflow-pipelines[avro]'") from error
        try:
            self._schema = parse_schema(json.loads(self._text))
            self._type: AvroType = avro_type(self._schema)
            self.row_type = row_type(self._type)
        except json.JSONDecodeError as error:
            raise ValueError(f"The avro_schema_string of {self._name} is no JSON: {error}") from None
        except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"The avro_schema_string of {self._name} is no schema that can be used: {error!s}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {"_name": self._name, "_text": self._text}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make()

    def read(self, message: bytes) -> Any:
        from fastavro import schemaless_reader

        stream = io.BytesIO(message)
        try:
            record = self._type.read(schemaless_reader(stream, self._schema, None))
        except Exception as error:  # noqa: BLE001 (fastavro has no common class for what is wrong with a message)
            raise self._make_unreadable_error(message, str(error) or type(error).__name__) from None
        if left := len(message) - stream.tell():
            raise self._make_unreadable_error(message, f"{left} bytes are left: it was written with another schema")
        return self.row_type.convert(record)

    def _make_unreadable_error(self, message: bytes, reason: str) -> SerializationError:
        hint = _FRAMED if message[:1] == b"\0" else ""
        return SerializationError(f"The Avro message {message!r:.200} cannot be read: {reason}.{hint}")

    def write(self, element: Any) -> bytes:
        from fastavro import schemaless_writer

        out = io.BytesIO()
        try:
            schemaless_writer(out, self._schema, self._type.write(self.row_type.convert(element)))
        except TypeConversionError as error:
            raise SerializationError(f"{element!r:.200} cannot be written as Avro: {error}") from None
        except Exception as error:  # noqa: BLE001 (fastavro has no common class for what does not fit a schema)
            raise SerializationError(f"{element!r:.200} cannot be written as Avro: {error or type(error).__name__}") from None
        return out.getvalue()
