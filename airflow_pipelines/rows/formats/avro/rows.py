"""The conversion of Avro records to rows of Arrow: the Arrow type of each type, and the values that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from airflow_pipelines.rows.formats.avro.unions import (
    JSON_TEXT,
    Member,
    decoded_class,
    text_of_list,
    text_of_map,
    text_of_one,
    text_of_record,
)
from airflow_pipelines.rows.formats.parsed import RecordProblem

Schema = Any
"""An Avro schema as parsed JSON: a name, a list (union) or an object."""
_Plain = Callable[[Any], Any]

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("string", "uuid"): pa.string(),
}
_DEBEZIUM: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "Date"): pa.date32(),
    ("int", "Time"): pa.time32("ms"),
    ("long", "MicroTime"): pa.time64("us"),
    ("long", "NanoTime"): pa.time64("ns"),
    ("long", "Timestamp"): pa.timestamp("ms"),
    ("long", "MicroTimestamp"): pa.timestamp("us"),
    ("long", "NanoTimestamp"): pa.timestamp("ns"),
}
"""Debezium's dates and times: numbers whose meaning is a name (``connect.name``) after :data:`_TIMES`."""
_TIMES: Final = "io.debezium.time."
_WIDER: Final = ("int", "long", "float", "double")
"""The types of numbers, each of which accepts the values of those before it."""
_MOST_DIGITS: Final = 38


class AvroRows:
    """A conversion of decoded records of one schema to Arrow tables."""

    def __init__(self, schema: Schema) -> None:
        """Analyse a schema.

        :param schema: the schema of a record
        :raises RecordProblem: when its values have no counterpart in tables
        """
        self._types = _Types()
        kind, self._plain = self._types.of_root(schema)
        if not pa.types.is_struct(kind):
            raise RecordProblem("the schema is none of a record, and a row has columns")
        self.schema = pa.schema(list(kind))

    def table(self, records: Sequence[Any]) -> pa.Table:
        """Convert records to rows.

        :param records: the records that fastavro decoded
        """
        plain = self._plain
        return pa.Table.from_pylist(list(records) if plain is None else [plain(record) for record in records], self.schema)


class _Types:
    """The types of one schema. Named types may be used again by their name."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[pa.DataType, _Plain | None]] = {}
        self._decoded: dict[str, type] = {}
        self._open: set[str] = set()

    def of_root(self, schema: Schema) -> tuple[pa.DataType, _Plain | None]:
        """Return the type of a record whose fields are columns, as :meth:`of` does."""
        is_record = isinstance(schema, dict) and schema.get("type") in ("record", "error")
        return self._record(schema, "the record", is_root=True) if is_record else self.of(schema, "the record")

    def of(self, schema: Schema, where: str) -> tuple[pa.DataType, _Plain | None]:
        """Return the Arrow type of a schema, and the conversion of its values for Arrow (None if they need none)."""
        if isinstance(schema, list):
            return self._union(schema, where)
        if isinstance(schema, str):
            return self._by_name(schema, where)
        name = schema["type"]
        if isinstance(name, dict | list):
            return self.of(name, where)
        match name:
            case "record" | "error":
                return self._record(schema, where)
            case "array":
                kind, plain = self.of(schema["items"], where)
                if kind == JSON_TEXT:
                    return JSON_TEXT, text_of_list(kind, plain)
                return pa.list_(kind), _plain_list(plain)
            case "map":
                kind, plain = self.of(schema["values"], where)
                if kind == JSON_TEXT:
                    return JSON_TEXT, text_of_map(kind, plain)
                return pa.map_(pa.string(), kind), _plain_map(plain)
            case "enum":
                return self._keep(schema, (pa.string(), None))
            case "fixed":
                return self._keep(schema, (_decimal(schema) or pa.binary(schema["size"]), None))
        return self._primitive(schema, where)

    def _primitive(self, schema: Schema, where: str) -> tuple[pa.DataType, _Plain | None]:
        name = schema["type"]
        if schema.get("logicalType") == "uuid" and name == "string":
            return pa.string(), str
        if name == "bytes":
            return _decimal(schema) or pa.binary(), None
        meaning = str(schema.get("connect.name", ""))
        of_debezium = _DEBEZIUM.get((name, meaning.removeprefix(_TIMES))) if meaning.startswith(_TIMES) else None
        return _LOGICAL.get((name, schema.get("logicalType"))) or of_debezium or self._by_name(name, where)[0], None

    def _by_name(self, name: str, where: str) -> tuple[pa.DataType, _Plain | None]:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name], None
        if name in self._open:
            raise RecordProblem(f"{where} contains itself ({name!r}), and no column type does")
        if name not in self._named:
            raise RecordProblem(f"{where} has the unknown type {name!r}")
        return self._named[name]

    def _record(self, schema: Schema, where: str, *, is_root: bool = False) -> tuple[pa.DataType, _Plain | None]:
        self._open.add(schema["name"])
        fields, plains = [], {}
        for field in schema["fields"]:
            kind, plain = self.of(field["type"], f"field {field['name']!r}")
            fields.append(pa.field(field["name"], kind))
            if plain is not None:
                plains[field["name"]] = plain
        self._open.discard(schema["name"])
        if not fields:
            raise RecordProblem(f"{where} has no fields")

        if not is_root and any(each.type == JSON_TEXT for each in fields):
            return self._keep(schema, (JSON_TEXT, text_of_record(fields, plains)))

        def plain_record(record: dict[str, Any]) -> dict[str, Any]:
            changed = {name: plain(record[name]) for name, plain in plains.items() if record[name] is not None}
            return {**record, **changed}

        return self._keep(schema, (pa.struct(fields), plain_record if plains else None))

    def _union(self, members: list[Schema], where: str) -> tuple[pa.DataType, _Plain | None]:
        others = [member for member in members if member != "null"]
        if not others:
            return pa.null(), None
        if len(others) == 1:
            return self.of(others[0], where)
        if all(isinstance(member, str) and member in _WIDER for member in others):
            return _PRIMITIVES[max(others, key=_WIDER.index)], None
        return JSON_TEXT, text_of_one([self._member(member, where) for member in others], where)

    def _member(self, schema: Schema, where: str) -> Member:
        """Return one of several types."""
        kind, plain = self.of(schema, where)
        if isinstance(schema, str):
            # The class of a primitive type, or of a named type.
            return Member(schema, self._decoded.get(schema) or decoded_class(schema, None), kind, plain)
        name = schema["type"]
        return Member(name, decoded_class(name, schema.get("logicalType")), kind, plain)

    def _keep(self, schema: Schema, made: tuple[pa.DataType, _Plain | None]) -> tuple[pa.DataType, _Plain | None]:
        name = schema["name"]
        self._named[name] = made
        self._decoded[name] = decoded_class(schema["type"], schema.get("logicalType"))
        return made


def _plain_list(plain: _Plain | None) -> _Plain | None:
    if plain is None:
        return None
    return lambda values: [None if value is None else plain(value) for value in values]


def _plain_map(plain: _Plain | None) -> _Plain:
    """Return the conversion of a map to pairs, which Arrow accepts."""
    if plain is None:
        return lambda values: list(values.items())
    return lambda values: [(key, None if value is None else plain(value)) for key, value in values.items()]


def _decimal(schema: Schema) -> pa.DataType | None:
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema["precision"], schema.get("scale", 0)
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else pa.decimal256(precision, scale)
