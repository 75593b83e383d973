"""Column types: one value per SQL type, printable as Spark DDL and as the wire's column type object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MAX_DECIMAL_PRECISION = 38
"""The most digits a DECIMAL can have."""

SPARK_NAMES: Mapping[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "BINARY": "BINARY",
    "VARBINARY": "BINARY",
    "DATE": "DATE",
    "TIME": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_TZ": "TIMESTAMP",
    "UUID": "STRING",
    "VARIANT": "VARIANT",
    "NULL": "VOID",
    # Spark has no unsigned integers: the next wider type holds their values, which are checked wherever they come in.
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
}
"""Wire names of the types without parameters in Spark, with Spark's own names for them."""

UNSIGNED_MAXIMA: Mapping[str, int] = {
    "UTINYINT": 2**8 - 1,
    "USMALLINT": 2**16 - 1,
    "UINTEGER": 2**32 - 1,
    "UBIGINT": 2**64 - 1,
}
"""The largest value of each unsigned integer type."""

_UNSIGNED_NAMES: Mapping[str, str] = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINTEGER": "INTEGER UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
}
_WIRE_NAMES: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "VARBINARY",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_TZ",
    "variant": "VARIANT",
    "void": "NULL",
    "null": "NULL",
}
_SPARK_JSON_NAMES: Mapping[str, str] = {
    **{wire: spark for spark, wire in _WIRE_NAMES.items() if spark != "null"},
    "CHAR": "string",
    "UUID": "string",
    "BINARY": "binary",
    "TIME": "time(6)",
    "UTINYINT": "short",
    "USMALLINT": "integer",
    "UINTEGER": "long",
    "UBIGINT": "decimal(20,0)",
}
INTERVAL_UNITS = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
"""The units of year-month and of day-time intervals, which never mix: a month has no fixed number of days."""
CALENDAR_INTERVAL = (
    "an interval that mixes months with days or times, which has no fixed length and cannot be stored: "
    "write make_ym_interval(years, months) or make_dt_interval(days, hours, minutes, seconds) instead"
)
"""The message about Spark's legacy interval type."""

_CALENDAR = re.compile(r"\binterval\b(?! (?:year|month|day|hour|minute|second))")
_PARAMETERS = re.compile(r"^(?P<name>decimal|char|varchar|time)\((?P<first>\d+)(?:,\s*(?P<second>-?\d+))?\)$")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A SQL type with its nullability.

    :param name: the wire name (BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, DECIMAL, VARCHAR, CHAR, BINARY,
        VARBINARY, DATE, TIME, TIMESTAMP, TIMESTAMP_TZ, INTERVAL_DAY ..., UUID, VARIANT, ARRAY, MAP, STRUCT, ROW is written STRUCT;
        an unsigned integer is written UTINYINT, USMALLINT, UINTEGER or UBIGINT)
    """

    name: str
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    component: ColumnType | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    key: ColumnType | None = None
    value: ColumnType | None = None

    @property
    def is_interval(self) -> bool:
        """Whether the type is a length of time."""
        return self.name.startswith("INTERVAL")

    @property
    def depth(self) -> int:
        """How deep types are nested; 0 for a type without components."""
        inner = [each for each in (self.component, self.key, self.value) if each is not None]
        inner += [each for _, each in self.fields or ()]
        return 1 + max(each.depth for each in inner) if inner else 0

    def with_nullable(self, nullable: bool) -> ColumnType:
        """The same type with the given nullability."""
        return replace(self, nullable=nullable)

    def spark_ddl(self) -> str:
        """The type as Spark SQL writes it, e.g. ``DECIMAL(5,2)`` or ``ARRAY<STRING>``."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "ARRAY" and self.component is not None:
            return f"ARRAY<{self.component.spark_ddl()}>"
        if self.name == "MAP" and self.key is not None and self.value is not None:
            return f"MAP<{self.key.spark_ddl()},{self.value.spark_ddl()}>"
        if self.name == "STRUCT" and self.fields is not None:
            inner = ",".join(
                f"`{name.replace('`', '``')}`: {kind.spark_ddl()}{'' if kind.nullable else ' NOT NULL'}"
                for name, kind in self.fields
            )
            return f"STRUCT<{inner}>"
        if self.is_interval:
            return self.name.replace("_", " ")
        return SPARK_NAMES[self.name]

    def spark_json(self) -> str | dict[str, Any]:
        """The type as Spark's schema JSON writes it: a name, or an object for nested types."""
        if self.name == "DECIMAL":
            return f"decimal({self.precision},{self.scale})"
        if self.component is not None:
            return {"type": "array", "elementType": self.component.spark_json(), "containsNull": self.component.nullable}
        if self.key is not None and self.value is not None:
            value, nullable = self.value.spark_json(), self.value.nullable
            return {"type": "map", "keyType": self.key.spark_json(), "valueType": value, "valueContainsNull": nullable}
        if self.fields is not None:
            fields = [{"name": n, "type": t.spark_json(), "nullable": t.nullable, "metadata": {}} for n, t in self.fields]
            return {"type": "struct", "fields": fields}
        if self.is_interval:
            return self.name.replace("_", " ").lower()
        return _SPARK_JSON_NAMES[self.name]

    def to_wire(self) -> dict[str, Any]:
        """The type as the REST contract writes it: always the same eight keys, null where one does not apply."""
        fields = None
        if self.fields is not None:
            fields = [
                {"name": name, "case_sensitive": name != name.lower(), "columntype": kind.to_wire()} for name, kind in self.fields
            ]
        return {
            # An interval of several units is named by the first and the last one.
            "type": self.name.replace("_TO_", "_") if self.is_interval else self.name,
            "nullable": self.nullable,
            "precision": self.precision,
            "scale": self.scale,
            "component": self.component.to_wire() if self.component else None,
            "fields": fields,
            "key": self.key.to_wire() if self.key else None,
            "value": self.value.to_wire() if self.value else None,
        }

    def __str__(self) -> str:
        """The type as a user writes it, for messages."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "ARRAY":
            return f"{self.component} ARRAY"
        if self.name == "MAP":
            return f"MAP<{self.key}, {self.value}>"
        if self.name == "STRUCT":
            return "ROW(" + ", ".join(f"{name} {kind}" for name, kind in self.fields or ()) + ")"
        if self.precision is not None and self.name in {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}:
            return f"{self.name}({self.precision})"
        return self.name.replace("_", " ") if self.is_interval else _UNSIGNED_NAMES.get(self.name, self.name)


def decimal(precision: int = MAX_DECIMAL_PRECISION, scale: int = 0, nullable: bool = True) -> ColumnType:
    """A DECIMAL with ``precision`` digits, ``scale`` of them after the point."""
    return ColumnType("DECIMAL", nullable, precision=precision, scale=scale)


def has_calendar_interval(kind: str) -> bool:
    """Whether a Spark type, as its name is written, holds Spark's legacy interval, which can be neither stored nor compared."""
    return _CALENDAR.search(kind) is not None


def from_spark_json(kind: str | Mapping[str, Any], nullable: bool = True) -> ColumnType:
    """The column type of a type in Spark's schema JSON.

    :param kind: the value of ``type`` in Spark's schema JSON: a name such as ``decimal(5,2)``, or an object for nested types
    :param nullable: whether the column (or field, element, value) may be NULL
    :raises ValueError: when Spark's type has no counterpart here (a user-defined or calendar interval type)
    """
    if isinstance(kind, str):
        return _from_spark_name(kind, nullable)
    match kind.get("type"):
        case "array":
            return ColumnType("ARRAY", nullable, component=from_spark_json(kind["elementType"], kind["containsNull"]))
        case "map":
            key = from_spark_json(kind["keyType"], False)
            return ColumnType("MAP", nullable, key=key, value=from_spark_json(kind["valueType"], kind["valueContainsNull"]))
        case "struct":
            fields = tuple((field["name"], from_spark_json(field["type"], field["nullable"])) for field in kind["fields"])
            return ColumnType("STRUCT", nullable, fields=fields)
        case other:
            raise ValueError(f"Spark's type {other!r} cannot be a column's type here")


def _from_spark_name(name: str, nullable: bool) -> ColumnType:
    if name in _WIRE_NAMES:
        return ColumnType(_WIRE_NAMES[name], nullable)
    if name == "interval":
        raise ValueError(CALENDAR_INTERVAL)
    if name.startswith("interval "):
        return ColumnType(name.upper().replace(" ", "_"), nullable)
    found = _PARAMETERS.match(name)
    if found is None:
        # Strings with a collation are written "string collate X"; the collation has no place on the wire.
        if name.startswith("string "):
            return ColumnType("VARCHAR", nullable)
        raise ValueError(f"Spark's type {name!r} cannot be a column's type here")
    first, second = int(found["first"]), found["second"]
    match found["name"]:
        case "decimal":
            return decimal(first, int(second or 0), nullable)
        case "time":
            return ColumnType("TIME", nullable)
        case text:
            return ColumnType(text.upper(), nullable, precision=first)
