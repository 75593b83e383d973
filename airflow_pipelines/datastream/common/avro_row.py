"""Rows as Avro records: the classes exist, and say what is missing."""

from __future__ import annotations

import json
from typing import Any, ClassVar, NoReturn

from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeInformation

_MISSING = (
    "cannot be used yet: this release comes without a library that reads and writes Avro. "
    "Use {json} or {csv}, or a schema of your own that is derived from {base}."
)
_UNAVAILABLE = "this release has no library for Avro"


class AvroNotAvailableError(NotImplementedError):
    """A program reads or writes Avro, for which no library is there."""


class AvroRowDeserializationSchema(DeserializationSchema):
    """Would make rows from Avro records.

    :param record_class: name of a Java class, which is not loaded
    :param avro_schema_string: the schema as JSON
    :raises ValueError: when neither or no valid one is given
    """

    unavailable: ClassVar[str] = _UNAVAILABLE

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self.avro_schema = _schema(type(self).__name__, record_class, avro_schema_string)

    def deserialize(self, message: bytes) -> Any:
        """Refused.

        :param message: not read
        :raises AvroNotAvailableError: always
        """
        _refuse(self, message)

    def get_produced_type(self) -> TypeInformation:
        """Refused.

        :raises AvroNotAvailableError: always
        """
        _refuse(self, None)


class AvroRowSerializationSchema(SerializationSchema):
    """Would make Avro records from rows.

    :param record_class: name of a Java class, which is not loaded
    :param avro_schema_string: the schema as JSON
    :raises ValueError: when neither or no valid one is given
    """

    unavailable: ClassVar[str] = _UNAVAILABLE

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self.avro_schema = _schema(type(self).__name__, record_class, avro_schema_string)

    def serialize(self, element: Any) -> bytes:
        """Refused.

        :param element: not written
        :raises AvroNotAvailableError: always
        """
        _refuse(self, element)


def _schema(name: str, record_class: str | None, avro_schema_string: str | None) -> Any:
    if avro_schema_string is None:
        given = f"record_class={record_class!r} is a class of the JVM, which is not loaded" if record_class else "nothing was given"
        raise ValueError(f"{name} needs avro_schema_string, the schema as JSON: {given}")
    try:
        return json.loads(avro_schema_string)
    except ValueError as error:
        raise ValueError(f"The avro_schema_string of {name} is no JSON: {error}") from None


def _refuse(schema: AvroRowDeserializationSchema | AvroRowSerializationSchema, _: Any) -> NoReturn:
    kind = "Deserialization" if isinstance(schema, DeserializationSchema) else "Serialization"
    names = {"json": f"JsonRow{kind}Schema", "csv": f"CsvRow{kind}Schema", "base": f"{kind}Schema"}
    raise AvroNotAvailableError(f"{type(schema).__name__} {_MISSING.format(**names)}")
