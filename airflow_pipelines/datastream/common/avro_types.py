"""Avro schemas as types: the type of the rows of a record, and conversion of values from and to the library for Avro."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo, Types

Change = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class AvroType:
    """An Avro type.

    :param type_info: the type of the values
    :param read: the function that converts a value of the library to one that ``type_info`` accepts
    :param write: the function that converts a value of ``type_info`` to one that the library accepts
    """

    type_info: TypeInformation
    read: Change = _same
    write: Change = _same


def avro_type(schema: Any) -> AvroType:
    """Return the type of a schema.

    :param schema: the schema as the library parses it, with full names
    :returns: the type
    :raises ValueError: if a record contains itself, which no type can express
    """
    return _Walk().type_of(schema)


def row_type(of: AvroType) -> RowTypeInfo:
    """Return the type of the rows of a record.

    :param of: the type
    :returns: the type of the rows
    :raises ValueError: if it is not a record
    """
    if not isinstance(of.type_info, RowTypeInfo):
        raise ValueError(f"it must be that of a record, and its values are {of.type_info}")  # noqa: TRY004 (a text is wrong)
    return of.type_info


def _aware(value: Any) -> Any:
    """Return a datetime with UTC as its time zone. The library takes a naive one as local time, and rows mean UTC."""
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is None else value


_TIMESTAMP: Final = AvroType(Types.SQL_TIMESTAMP(), lambda value: value.replace(tzinfo=None), _aware)
_LOCAL_TIMESTAMP: Final = AvroType(Types.SQL_TIMESTAMP())
_BYTES: Final = AvroType(Types.PRIMITIVE_ARRAY(Types.BYTE()))
_ANY: Final = AvroType(Types.PICKLED_BYTE_ARRAY())
_PLAIN: Final[Mapping[str, AvroType]] = {
    "null": _ANY,
    "boolean": AvroType(Types.BOOLEAN()),
    "int": AvroType(Types.INT()),
    "long": AvroType(Types.LONG()),
    "float": AvroType(Types.FLOAT()),
    "double": AvroType(Types.DOUBLE()),
    "bytes": _BYTES,
    "fixed": _BYTES,
    "string": AvroType(Types.STRING()),
    "enum": AvroType(Types.STRING()),
}
_LOGICAL: Final[Mapping[str, AvroType]] = {
    "date": AvroType(Types.SQL_DATE()),
    "time-millis": AvroType(Types.SQL_TIME()),
    "time-micros": AvroType(Types.SQL_TIME()),
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "local-timestamp-millis": _LOCAL_TIMESTAMP,
    "local-timestamp-micros": _LOCAL_TIMESTAMP,
    "decimal": AvroType(Types.BIG_DEC()),
    "uuid": AvroType(Types.STRING(), str),
}


class _Walk:
    """A traversal of a schema, in which names can refer to types that were defined before."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}

    def type_of(self, schema: Any) -> AvroType:
        if isinstance(schema, list):
            return self._union([each for each in schema if each != "null"])
        if isinstance(schema, str):
            return _PLAIN[schema] if schema in _PLAIN else self._resolve_name(schema)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "array":
            return self._array(self.type_of(schema["items"]))
        if kind == "map":
            return self._map(self.type_of(schema["values"]))
        resolved = _LOGICAL.get(schema.get("logicalType", "")) or self.type_of(kind)
        if "name" in schema:
            self._named[schema["name"]] = resolved
        return resolved

    def _resolve_name(self, name: str) -> AvroType:
        resolved = self._named[name]
        if resolved is None:
            raise ValueError(f"the record {name} contains itself, and no type of rows does")
        return resolved

    def _union(self, branches: list[Any]) -> AvroType:
        types = [self.type_of(branch) for branch in branches]
        # Only the value determines which of several types it has, so it stays as the library returns it.
        return _or_none(types[0]) if len(types) == 1 else _ANY

    def _record(self, schema: Mapping[str, Any]) -> AvroType:
        self._named[schema["name"]] = None
        fields = {field["name"]: self.type_of(field["type"]) for field in schema["fields"]}
        record = AvroType(
            Types.ROW_NAMED(list(fields), [each.type_info for each in fields.values()]),
            lambda value: {name: each.read(value[name]) for name, each in fields.items()},
            lambda row: {name: each.write(item) for (name, each), item in zip(fields.items(), row, strict=True)},
        )
        self._named[schema["name"]] = record
        return record

    @staticmethod
    def _array(items: AvroType) -> AvroType:
        return AvroType(
            Types.OBJECT_ARRAY(items.type_info),
            lambda value: [items.read(each) for each in value],
            lambda value: [items.write(each) for each in value],
        )

    @staticmethod
    def _map(values: AvroType) -> AvroType:
        return AvroType(
            Types.MAP(Types.STRING(), values.type_info),
            lambda value: {key: values.read(each) for key, each in value.items()},
            lambda value: {key: values.write(each) for key, each in value.items()},
        )


def _or_none(of: AvroType) -> AvroType:
    return AvroType(
        of.type_info,
        lambda value: None if value is None else of.read(value),
        lambda value: None if value is None else of.write(value),
    )
