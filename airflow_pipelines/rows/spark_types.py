"""Spark's names of types, as the analyzer, plans and Spark's schemas have them, read as column types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from airflow_pipelines.rows.types import ColumnType, decimal

CALENDAR_INTERVAL: Final = (
    "an interval that mixes months with days or times, which has no fixed length and cannot be stored: "
    "write make_ym_interval(years, months) or make_dt_interval(days, hours, minutes, seconds) instead"
)
"""The message about Spark's legacy interval type."""

UNKNOWN: Final = "UNKNOWN"
"""The name of a type that no column can have here, and of one that Spark cannot tell."""
_NAMES: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "byte": "TINYINT",
    "smallint": "SMALLINT",
    "short": "SMALLINT",
    "int": "INTEGER",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "VARBINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_TZ",
    "timestamp_ntz": "TIMESTAMP",
    "variant": "VARIANT",
    "void": "NULL",
    "null": "NULL",
}
"""The types without parameters: SQL has the first name, the JSON of a schema sometimes the second one."""
_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|\w+|[<>(),:])")
"""A name in back quotes, a word or a number, or a sign."""
_PARAMETRIC: Final = frozenset({"decimal", "char", "varchar", "time"})
_UNITS: Final = frozenset({"year", "month", "day", "hour", "minute", "second", "to"})


@lru_cache(maxsize=4096)
def spark_type(text: str) -> ColumnType:
    """Return the type that Spark SQL writes in this way.

    >>> spark_type("decimal(5,2)").is_decimal, str(spark_type("array<int>")), spark_type("struct<`a b`:double>").fields[0][0]
    (True, 'INTEGER ARRAY', 'a b')

    :param text: a name such as ``decimal(5,2)`` or ``struct<a:int,b:array<string>>``, in any case; fields' names that are not words
        are in back quotes
    :returns: the type. A string with a collation is a string, Spark's legacy interval is called INTERVAL, and a type without a
        counterpart here, such as one that a user has defined, UNKNOWN
    :raises ValueError: if it is not the name of a type
    """
    try:
        return _Reader(text).read_whole()
    except (KeyError, ValueError) as error:
        raise ValueError(f"{text!r} is not the name of a type of Spark") from error


def from_spark_json(kind: str | Mapping[str, Any], nullable: bool = True) -> ColumnType:
    """Return the column type of a type in Spark's schema JSON.

    :param kind: the value of ``type`` in Spark's schema JSON: a name such as ``decimal(5,2)``, or an object for nested types
    :param nullable: True if the column (or field, element, value) may be NULL
    :raises ValueError: when Spark's type has no counterpart here (a user-defined or calendar interval type)
    """
    if isinstance(kind, str):
        if kind == "interval":
            raise ValueError(CALENDAR_INTERVAL)
        result = spark_type(kind)
        if result.name == UNKNOWN:
            raise ValueError(f"Spark's type {kind!r} cannot be a column's type here")
        return result.with_nullable(nullable)
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


@lru_cache(maxsize=4096)
def has_floating(kind: str) -> bool:
    """Return True if a type is FLOAT or DOUBLE, or has a part that is.

    >>> has_floating("struct<price:double>"), has_floating("struct<double:int>")
    (True, False)

    :param kind: Spark's name of the type, and so in the other functions
    """
    return any(part.is_floating for part in spark_type(kind).walk())


@lru_cache(maxsize=4096)
def has_map(kind: str) -> bool:
    """Return True if a type is a MAP, or has a part that is."""
    return any(part.is_map for part in spark_type(kind).walk())


@lru_cache(maxsize=4096)
def has_variant(kind: str) -> bool:
    """Return True if a type is VARIANT, or has a part that is."""
    return any(part.is_variant for part in spark_type(kind).walk())


@lru_cache(maxsize=4096)
def has_calendar_interval(kind: str) -> bool:
    """Return True if a type is Spark's legacy interval, which can be neither stored nor compared, or has a part that is."""
    return any(part.is_calendar_interval for part in spark_type(kind).walk())


class _Reader:
    """A reader of the name of a type, from left to right. It raises KeyError at the first token that is not expected."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ""]
        self._at = 0

    def read_whole(self) -> ColumnType:
        """Read a type and the end of the text."""
        kind = self._read()
        self._expect("")
        return kind

    def _read(self) -> ColumnType:
        name = self._take().lower()
        match name:
            case "array":
                self._expect("<")
                component = self._read()
                self._expect(">")
                return ColumnType("ARRAY", component=component)
            case "map":
                self._expect("<")
                key = self._read()
                self._expect(",")
                value = self._read()
                self._expect(">")
                return ColumnType("MAP", key=key.with_nullable(False), value=value)
            case "struct":
                return ColumnType("STRUCT", fields=tuple(self._fields()))
            case "interval":
                units = ["INTERVAL"]
                while self._peek() in _UNITS:
                    units.append(self._take())
                return ColumnType("_".join(units).upper())
            case "string" if self._peek() == "collate":
                self._take()
                self._take()
        return self._named(name, self._parameters() if self._peek() == "(" else [])

    def _named(self, name: str, parameters: list[str]) -> ColumnType:
        match name, parameters:
            case "decimal", []:
                return decimal(10, 0)
            case "decimal", [precision]:
                return decimal(int(precision), 0)
            case "decimal", [precision, scale]:
                return decimal(int(precision), int(scale))
            case "char" | "varchar", [length]:
                return ColumnType(name.upper(), precision=int(length))
            case "time", [_]:
                return ColumnType("TIME")
        if name in _PARAMETRIC or not name.isidentifier():
            raise KeyError(name)
        return ColumnType(_NAMES.get(name, UNKNOWN))

    def _fields(self) -> Iterator[tuple[str, ColumnType]]:
        sign = self._expect("<")
        if self._peek() == ">":
            sign = self._take()
        while sign != ">":
            name = self._take()
            self._expect(":")
            kind = self._read()
            if self._peek() == "not":
                self._take()
                self._expect("null")
                kind = kind.with_nullable(False)
            yield name[1:-1].replace("``", "`") if name.startswith("`") else name, kind
            sign = self._expect(",", ">")

    def _parameters(self) -> list[str]:
        sign, parameters = self._expect("("), []
        while sign != ")":
            parameters.append(self._take())
            sign = self._expect(",", ")")
        return parameters

    def _peek(self) -> str:
        return self._tokens[self._at].lower()

    def _take(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, *tokens: str) -> str:
        token = self._take().lower()
        if token not in tokens:
            raise KeyError(token)
        return token


def _tokens(text: str) -> Iterator[str]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise KeyError(text[at])
        yield match[1]
        at = match.end()
