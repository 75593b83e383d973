"""The columns of a relation that a program makes, declared by types, by a mapping, or by SQL text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.composite_types import (
    ArrayKind,
    ArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.type_information import Converter, TypeInformation
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.values import ATOMIC

_SQL_TYPES: Mapping[BasicType, str] = {
    BasicType.STRING: "VARCHAR",
    BasicType.BYTE: "TINYINT",
    BasicType.BOOLEAN: "BOOLEAN",
    BasicType.SHORT: "SMALLINT",
    BasicType.INT: "INTEGER",
    BasicType.LONG: "BIGINT",
    BasicType.FLOAT: "REAL",
    BasicType.DOUBLE: "DOUBLE",
    BasicType.CHAR: "VARCHAR",
    BasicType.BIG_INT: "DECIMAL(38, 0)",
    BasicType.BIG_DEC: "DECIMAL(38, 18)",
    BasicType.SQL_DATE: "DATE",
    BasicType.SQL_TIME: "TIME",
    BasicType.SQL_TIMESTAMP: "TIMESTAMP",
    BasicType.INSTANT: "TIMESTAMP WITH TIME ZONE",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPENING, _CLOSING, _QUOTES = "([<", ")]>", "\"`'"


@dataclass(frozen=True)
class RelationColumn:
    """A column of a relation that a program makes.

    :param name: the name in SQL
    :param written: the name as the program wrote it
    :param sql_type: the SQL type
    :param convert: the function that coerces a value to the declared type; None for types that are given as text
    """

    name: str
    written: str
    sql_type: str
    convert: Converter | None = None


def relation_columns(schema: Any) -> tuple[RelationColumn, ...]:
    """Return the columns that a program declares.

    :param schema: ``Types.ROW_NAMED(...)``; names with types or with texts of SQL types; or a text such as
        ``id BIGINT, note VARCHAR``
    :returns: the columns in order
    :raises StreamProgramError: if it declares no columns, or an invalid type
    """
    columns = tuple(_columns(schema))
    if not columns:
        raise StreamProgramError(f"The relation has no columns: its schema is {schema!r}. {_FORMS}")
    names = [column.name for column in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StreamProgramError(f"The schema has two columns {twice!r}: names that are not quoted are the same in lower case.")
    return columns


_FORMS = (
    "A schema is Types.ROW_NAMED([names], [types]), a dict of names and types, or a text such as"
    " 'id BIGINT, note VARCHAR NOT NULL'."
)


def _columns(schema: Any) -> Iterator[RelationColumn]:
    if isinstance(schema, RowTypeInfo):
        yield from map(_column, schema.get_field_names(), schema.get_field_types())
    elif isinstance(schema, Mapping):
        yield from map(_column, schema.keys(), schema.values())
    elif isinstance(schema, str):
        for part in _split(schema):
            name, sql_type = _split_name(part)
            yield _column(name, sql_type)
    else:
        raise StreamProgramError(f"The schema of a relation cannot be {schema!r}. {_FORMS}")


def _column(name: Any, declared: Any) -> RelationColumn:
    if not isinstance(name, str) or not name.strip():
        raise StreamProgramError(f"A column cannot have the name {name!r}: it must be a text that is not empty.")
    if isinstance(declared, TypeInformation):
        return RelationColumn(canonical_name(name), unquote(name), sql_type_of(declared), _make_sql_converter(declared))
    if isinstance(declared, str) and declared.strip():
        return RelationColumn(canonical_name(name), unquote(name), declared.strip())
    raise StreamProgramError(f"The type of column {name!r} cannot be {declared!r}: it is a text such as 'BIGINT', or one of Types.")


def canonical_name(name: str) -> str:
    """Return the canonical SQL name of a relation or column: in lower case unless it is quoted.

    :param name: the name as it is written
    :returns: the canonical name
    """
    if _is_quoted(name):
        return unquote(name)
    lowered = name.lower()
    if len(lowered) == len(name):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in name)


def unquote(name: str) -> str:
    """Return a name without its quotes.

    :param name: the name as it is written
    :returns: the unquoted name
    """
    return name[1:-1].replace(name[0] * 2, name[0]) if _is_quoted(name) else name


def _is_quoted(name: str) -> bool:
    return len(name) >= 2 and name[0] == name[-1] and name[0] in '"`'


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a list of columns, split at commas outside brackets and quotes."""
    depth, quote, start = 0, "", 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def _split_name(part: str) -> tuple[str, str]:
    if part[:1] in ('"', "`"):
        end = 1
        while end < len(part) and (part[end] != part[0] or part[end : end + 2] == part[0] * 2):
            end += 2 if part[end] == part[0] else 1
        name, rest = part[: end + 1], part[end + 1 :]
    else:
        name, rest = [*part.split(maxsplit=1), "", ""][:2]
    if not name or not rest.strip():
        raise StreamProgramError(f"The column {part!r} of the schema is no name with a type. {_FORMS}")
    return name, rest


def sql_type_of(declared: TypeInformation) -> str:
    """Return the SQL type for the values of a type.

    :param declared: the type
    :returns: SQL text
    :raises StreamProgramError: if SQL has none
    """
    if isinstance(declared, BasicTypeInfo):
        return _SQL_TYPES[declared.basic_type]
    if isinstance(declared, ListTypeInfo):
        return f"ARRAY<{sql_type_of(declared.element_type)}>"
    if isinstance(declared, ArrayTypeInfo):
        return "VARBINARY" if _is_bytes(declared) else f"ARRAY<{sql_type_of(declared.element_type)}>"
    if isinstance(declared, MapTypeInfo):
        return f"MAP<{sql_type_of(declared.key_type)}, {sql_type_of(declared.value_type)}>"
    if isinstance(declared, RowTypeInfo | TupleTypeInfo):
        fields = zip(declared.get_field_names(), declared.get_field_types(), strict=True)
        return f"STRUCT<{', '.join(f'{_quote(canonical_name(name))}: {sql_type_of(kind)}' for name, kind in fields)}>"
    raise StreamProgramError(f"SQL has no type for {declared}: declare what the values consist of, such as Types.STRING().")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_bytes(declared: ArrayTypeInfo) -> bool:
    return declared.kind is ArrayKind.PRIMITIVE_ARRAY and declared.element_type == BasicTypeInfo(BasicType.BYTE)


def _make_sql_converter(declared: TypeInformation) -> Converter:
    """Return a function that coerces a value to a type, and converts it to a value for a column of the corresponding SQL type."""
    return _Converted(declared.converter(), _plain(declared))


@dataclass(frozen=True)
class _Converted:
    first: Converter
    second: Converter

    def __call__(self, value: Any) -> Any:
        coerced = self.first(value)
        return coerced if coerced.__class__ in ATOMIC else self.second(coerced)


def _plain(declared: TypeInformation) -> Converter:
    if isinstance(declared, RowTypeInfo | TupleTypeInfo):
        names = tuple(map(canonical_name, declared.get_field_names()))
        return _Fields(names, tuple(map(_plain, declared.get_field_types())))
    if isinstance(declared, MapTypeInfo):
        return _Items(_plain(declared.key_type), _plain(declared.value_type))
    if isinstance(declared, ListTypeInfo) or (isinstance(declared, ArrayTypeInfo) and not _is_bytes(declared)):
        return _Elements(_plain(declared.element_type))
    return plain_value


@dataclass(frozen=True)
class _Fields:
    names: tuple[str, ...]
    convert: tuple[Converter, ...]

    def __call__(self, value: Any) -> Any:
        if value is None:
            return None
        return {name: convert(each) for name, convert, each in zip(self.names, self.convert, value, strict=True)}


@dataclass(frozen=True)
class _Items:
    keys: Converter
    values: Converter

    def __call__(self, value: Any) -> Any:
        return None if value is None else {self.keys(key): self.values(each) for key, each in value.items()}


@dataclass(frozen=True)
class _Elements:
    convert: Converter

    def __call__(self, value: Any) -> Any:
        return None if value is None else list(map(self.convert, value))


def plain_value(value: Any) -> Any:
    """Convert a value of classes of this package to plain Python: rows with field names to dicts, instants to datetimes in UTC.

    :param value: any value
    :returns: the converted value
    """
    plain: Callable[[Any], Any] = plain_value
    if isinstance(value, Instant):
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    if isinstance(value, Row):
        names = value.get_field_names()
        return dict(zip(names, map(plain, value), strict=True)) if names else tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items()}
    return value
