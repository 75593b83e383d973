"""Avro files of stream programs. Their records are dicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.avro_row import (
    AvroNotAvailableError,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.serialization import SerializationError
from airflow_pipelines.datastream.common.type_information import Converter, TypeConversionError, TypeInformation
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, BulkWriter, BulkWriterFactory

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]


@dataclass(frozen=True)
class AvroSchema:
    """A schema of Avro records.

    :param text: the schema as JSON
    :raises ValueError: if it is no schema
    :raises AvroNotAvailableError: if ``fastavro`` is not installed

    >>> from airflow_pipelines.datastream.formats.avro import AvroSchema
    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "Sale", "fields": [{"name": "fruit", "type": "string"}]}')
    >>> schema.parsed["name"]
    'Sale'
    """

    text: str

    def __post_init__(self) -> None:
        self.parsed  # noqa: B018 (refuses what is no schema)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Read a schema.

        :param json_schema: the schema as JSON
        :returns: the schema
        """
        return AvroSchema(checks.text("json_schema", json_schema))

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Read a schema from a file.

        :param file_path: the path of a file with the schema as JSON
        :returns: the schema
        """
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    @property
    def parsed(self) -> Any:
        """The schema as the library for Avro takes it."""
        try:
            from fastavro import parse_schema
            from fastavro.schema import SchemaParseException, UnknownType
        except ImportError as error:
            raise AvroNotAvailableError("AvroSchema needs fastavro: pip install 'airflow-pipelines[avro]'") from error
        try:
            return parse_schema(json.loads(self.text))
        except json.JSONDecodeError as error:
            raise ValueError(f"The Avro schema is no JSON: {error}") from None
        except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"The Avro schema is no schema that can be used: {error!s}") from None


@dataclass(frozen=True)
class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of Avro records: dicts with the names of the schema. Rows with names are taken, too.

    :param schema: the schema of the records

    >>> from airflow_pipelines.datastream.common import Row
    >>> from airflow_pipelines.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "Sale", "fields": [{"name": "fruit", "type": "string"}]}')
    >>> GenericRecordAvroTypeInfo(schema).convert(Row(fruit="pears"))
    {'fruit': 'pears'}
    """

    schema: AvroSchema

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        return _convert_record

    def _text(self, value: Any) -> str:
        return json.dumps(value, default=str)


def _convert_record(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if value is None or isinstance(value, Mapping):
        return value
    raise TypeConversionError(f"{value!r:.80} is no Avro record: give a dict, or a Row with names")


@dataclass(frozen=True)
class AvroInputFormat(BulkFormat):
    """The format of Avro files that are read as records.

    :param path: the file or folder, for ``env.create_input``
    :param schema: the schema of the records, to which those of a file are resolved

    >>> import tempfile
    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.connectors import FileSink
    >>> from airflow_pipelines.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema
    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "Sale", "fields": [{"name": "fruit", "type": "string"}]}')
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink.for_bulk_format(folder, AvroBulkWriters.for_generic_record(schema)).build()
    ...     end = env.from_collection([{"fruit": "pears"}]).sink_to(sink)
    ...     result = env.execute("sales")
    ...     list(env.create_input(AvroInputFormat(folder, schema)).execute_and_collect())
    [{'fruit': 'pears'}]
    """

    path: str
    schema: AvroSchema

    def __post_init__(self) -> None:
        checks.instance("schema", self.schema, AvroSchema, "use AvroSchema.parse_string(...)")

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return GenericRecordAvroTypeInfo(self.schema)

    def records(self, path: str, stream: IO[bytes]) -> Iterator[Any]:
        """Yield the records of a file."""
        from fastavro import reader

        try:
            yield from reader(stream, reader_schema=self.schema.parsed)
        except Exception as error:  # fastavro has no common class for what is wrong with a file
            raise ValueError(f"The Avro file {path!r} cannot be read: {error or type(error).__name__}") from error


class AvroBulkWriters:
    """Factories of writers of Avro files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return a factory of writers for records.

        :param schema: the schema of the records
        :returns: the factory
        """
        return _AvroWriterFactory(checks.instance("schema", schema, AvroSchema, "use AvroSchema.parse_string(...)"))


@dataclass(frozen=True)
class _AvroWriterFactory(BulkWriterFactory):
    schema: AvroSchema

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _AvroWriter(self.schema, stream)


class _AvroWriter(BulkWriter):
    def __init__(self, schema: AvroSchema, stream: IO[bytes]) -> None:
        from fastavro.write import Writer

        self._writer = Writer(stream, schema.parsed)

    def add_element(self, element: Any) -> None:
        try:
            self._writer.write(_convert_record(element))
        except Exception as error:  # noqa: BLE001 (fastavro has no common class for what does not fit a schema)
            raise SerializationError(f"{element!r:.200} cannot be written as Avro: {error or type(error).__name__}") from None

    def finish(self) -> None:
        self._writer.flush()
