"""Rows as JSON objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.json_schema import row_type_of
from airflow_pipelines.datastream.common.json_values import json_reader, json_writer
from airflow_pipelines.datastream.common.serialization import DeserializationSchema, SerializationError, SerializationSchema
from airflow_pipelines.datastream.common.type_information import TypeConversionError, TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo

_decoded = json.JSONDecoder(parse_float=Decimal).decode


class JsonRowDeserializationSchema(DeserializationSchema):
    """A schema that converts JSON objects to rows. Use :meth:`builder` to make one.

    :param row_type: the type of the rows
    :param fail_on_missing_field: True to raise an error for a field that an object lacks; otherwise it is None
    :param ignore_parse_errors: True to skip a message that cannot be read
    """

    class Builder:
        """A builder of schemas."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None
            self._fail_on_missing_field = False
            self._ignore_parse_errors = False

        def type_info(self, type_info: RowTypeInfo) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows.

            :param type_info: the type, from ``Types.ROW_NAMED``
            :returns: this object
            """
            self._row_type = _row_type("type_info", type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows by a JSON schema.

            :param json_schema: text of the schema of an object
            :returns: this object
            """
            self._row_type = row_type_of(checks.text("json_schema", json_schema))
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Raise an error for a field that an object lacks.

            :returns: this object
            """
            self._fail_on_missing_field = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skip messages that cannot be read.

            :returns: this object
            """
            self._ignore_parse_errors = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Make the schema.

            :returns: the schema
            :raises ValueError: if no type was set, or if both :meth:`fail_on_missing_field` and :meth:`ignore_parse_errors` were
                called
            """
            if self._row_type is None:
                raise ValueError("The schema needs a type: call type_info(Types.ROW_NAMED(...)) or json_schema(...) before build()")
            if self._fail_on_missing_field and self._ignore_parse_errors:
                raise ValueError("fail_on_missing_field() and ignore_parse_errors() exclude each other: call one of them")
            return JsonRowDeserializationSchema(self._row_type, self._fail_on_missing_field, self._ignore_parse_errors)

    def __init__(self, row_type: RowTypeInfo, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False) -> None:
        self._row_type = row_type
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._read: Callable[[Any], Any] | None = None

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Return a builder for a schema.

        :returns: the builder
        """
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes) -> Any:
        """See :meth:`DeserializationSchema.deserialize`."""
        if self._read is None:
            self._read = json_reader(self._row_type, self._fail_on_missing_field)
        try:
            return self._read(_parse_message(message))
        except (ValueError, TypeConversionError) as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(f"The JSON message {message!r:.200} cannot be read: {error}") from None

    def get_produced_type(self) -> TypeInformation:
        """See :meth:`DeserializationSchema.get_produced_type`."""
        return self._row_type

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None}


class JsonRowSerializationSchema(SerializationSchema):
    """A schema that converts rows to JSON objects. Use :meth:`builder` to make one.

    :param row_type: the type of the rows
    """

    class Builder:
        """A builder of schemas."""

        def __init__(self) -> None:
            self._row_type: RowTypeInfo | None = None

        def with_type_info(self, type_info: RowTypeInfo) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows.

            :param type_info: the type, from ``Types.ROW_NAMED``
            :returns: this object
            """
            self._row_type = _row_type("type_info", type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Make the schema.

            :returns: the schema
            :raises ValueError: if no type was set
            """
            if self._row_type is None:
                raise ValueError("The schema needs a type: call with_type_info(Types.ROW_NAMED(...)) before build()")
            return JsonRowSerializationSchema(self._row_type)

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type
        self._write: Callable[[Any], str] | None = None

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Return a builder for a schema.

        :returns: the builder
        """
        return JsonRowSerializationSchema.Builder()

    def serialize(self, element: Any) -> bytes:
        """See :meth:`SerializationSchema.serialize`."""
        if self._write is None:
            self._write = json_writer(self._row_type)
        try:
            return self._write(self._row_type.convert(element)).encode()
        except (ValueError, TypeConversionError) as error:
            raise SerializationError(f"{element!r:.200} cannot be written as JSON: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_write": None}


def _parse_message(message: bytes) -> Any:
    """Parse a JSON message in UTF-8, UTF-16 or UTF-32, with ``Decimal`` for fractions."""
    if message[:1] == b"{" and message[1:2] > b"\0":
        # In the other encodings, one of the first two bytes of this character is 0.
        return _decoded(message.decode("utf-8", "surrogatepass"))
    return json.loads(message, parse_float=Decimal)


def _row_type(parameter: str, value: RowTypeInfo) -> RowTypeInfo:
    return checks.instance(parameter, value, RowTypeInfo, "use Types.ROW_NAMED([names], [types])")
