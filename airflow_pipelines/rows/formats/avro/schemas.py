"""Avro schemas for the rows of a view, and the conversion of its values for records."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.formats.avro.rows import Schema
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType

Record: TypeAlias = Callable[[Any], Any]
"""A function that converts a Python value of Arrow for a record. It never gets None."""

_NAME: Final = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_SIMPLE: Final[dict[str, Schema]] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "UTINYINT": "int",
    "USMALLINT": "int",
    "UINTEGER": "long",
    "UBIGINT": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
    "REAL": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "CHAR": "string",
    "UUID": {"type": "string", "logicalType": "uuid"},
    "BINARY": "bytes",
    "VARBINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME": {"type": "long", "logicalType": "time-micros"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "TIMESTAMP_TZ": {"type": "long", "logicalType": "timestamp-micros"},
    "VARIANT": "string",
    "NULL": "null",
}


def record_schema(columns: Iterable[Column], name: str, namespace: str | None, more: Sequence[Schema] = ()) -> Schema:
    """Make the schema of a record of columns.

    :param columns: the columns
    :param name: the name of the record; characters that Avro's names cannot have become ``_``
    :param namespace: the namespace of the record, if it has one
    :param more: the fields after those of the columns
    :raises FormatFailure: when a column has no counterpart in Avro
    """
    written = re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name)
    fields = [_field(column.name, column.type, f"{written}_{column.name}", f"column {column.name!r}") for column in columns]
    schema = {"type": "record", "name": written, "fields": [*fields, *more]}
    return schema if namespace is None else {**schema, "namespace": namespace}


def as_record(kind: ColumnType) -> Record | None:
    """Return the conversion of values of a type for fastavro, or None if they need none.

    :param kind: the type
    """
    if kind.component is not None:
        inner = as_record(kind.component)
        return None if inner is None else lambda values: [None if each is None else inner(each) for each in values]
    if kind.value is not None:
        return _map(as_record(kind.value))
    if kind.fields is not None:
        return _struct([(name, as_record(inner)) for name, inner in kind.fields])
    if kind.is_timestamp and not kind.has_time_zone:
        # fastavro interprets a time without a zone in the machine's zone.
        return lambda moment: moment.replace(tzinfo=dt.UTC)
    return variant.to_json if kind.is_variant else None


def _field(name: str, kind: ColumnType, path: str, where: str) -> Schema:
    if not _NAME.match(name):
        raise FormatFailure(f"{where} has a name that Avro cannot have (letters, digits and '_'); give it another one in the view")
    written = _schema(kind, path, where)
    return (
        {"name": name, "type": ["null", written], "default": None}
        if kind.nullable and written != "null"
        else {
            "name": name,
            "type": written,
        }
    )


def _schema(kind: ColumnType, path: str, where: str) -> Schema:
    if kind.component is not None:
        return {"type": "array", "items": _member(kind.component, path, where)}
    if kind.key is not None and kind.value is not None:
        if not kind.key.is_text:
            raise FormatFailure(f"{where} is a map whose keys are no texts, as those of Avro are; make it an array in the view")
        return {"type": "map", "values": _member(kind.value, path, where)}
    if kind.fields is not None:
        fields = [_field(name, inner, f"{path}_{name}", f"{where}, field {name!r}") for name, inner in kind.fields]
        # A name may occur once in a schema, so it is made from the path.
        return {"type": "record", "name": path, "fields": fields}
    if kind.is_decimal:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision or 38, "scale": kind.scale or 0}
    # Intervals are encoded as texts.
    return "string" if kind.is_interval else _SIMPLE[kind.name]


def _member(kind: ColumnType, path: str, where: str) -> Schema:
    written = _schema(kind, f"{path}_item", where)
    return ["null", written] if kind.nullable and written != "null" else written


def _map(inner: Record | None) -> Record:
    if inner is None:
        return dict
    return lambda pairs: {key: None if value is None else inner(value) for key, value in pairs}


def _struct(members: Sequence[tuple[str, Record | None]]) -> Record | None:
    changed = [(name, inner) for name, inner in members if inner is not None]
    if not changed:
        return None

    def record(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, **{name: inner(values[name]) for name, inner in changed if values[name] is not None}}

    return record
