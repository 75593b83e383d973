"""Types as a program writes them: ``decimal(5,2)``, ``map<varchar, int>``, ``int array``, ``row(a int)``."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.program.messages import COMPILATION_ERROR
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import INTERVAL_UNITS, MAX_DECIMAL_PRECISION, ColumnType, decimal
from airflow_pipelines.sql.syntax.cursor import Cursor, StatementError
from airflow_pipelines.sql.syntax.storage_clauses import take_comment

_SIMPLE: Mapping[str, str] = {
    "boolean": "BOOLEAN",
    "bool": "BOOLEAN",
    "tinyint": "TINYINT",
    "byte": "TINYINT",
    "smallint": "SMALLINT",
    "short": "SMALLINT",
    "int2": "SMALLINT",
    "int": "INTEGER",
    "integer": "INTEGER",
    "int4": "INTEGER",
    "signed": "INTEGER",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "int8": "BIGINT",
    "int64": "BIGINT",
    "real": "REAL",
    "float": "REAL",
    "float4": "REAL",
    "float32": "REAL",
    "double": "DOUBLE",
    "double precision": "DOUBLE",
    "float8": "DOUBLE",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "text": "VARCHAR",
    "bytea": "VARBINARY",
    "date": "DATE",
    "time": "TIME",
    "datetime": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp_ltz": "TIMESTAMP_TZ",
    "timestamptz": "TIMESTAMP_TZ",
    "uuid": "UUID",
    "variant": "VARIANT",
}
_SIZED: Mapping[str, str] = {
    "varchar": "VARCHAR",
    "char": "CHAR",
    "character": "CHAR",
    "char varying": "VARCHAR",
    "character varying": "VARCHAR",
    "binary": "BINARY",
    "varbinary": "VARBINARY",
}
_LONG_NAMES = frozenset(name for name in [*_SIMPLE, *_SIZED] if " " in name)
_DECIMAL = frozenset({"decimal", "dec", "numeric", "number"})
_NESTED = frozenset({"array", "map", "row", "struct"})
_UNSIGNED: Mapping[str, str] = {"TINYINT": "UTINYINT", "SMALLINT": "USMALLINT", "INTEGER": "UINTEGER", "BIGINT": "UBIGINT"}
RESERVED_TYPES = frozenset({*_SIMPLE, *_SIZED, *_DECIMAL, *_NESTED, "interval", "unsigned"})
"""Words that mean a type of SQL if they are not quoted, so that a program's type cannot have such a name."""
MAX_NESTING = 64
"""The maximum nesting depth of types: deeper ones are a mistake and would exhaust Spark's own parser."""

KNOWN_TYPES = (
    "ARRAY, BIGINT, BINARY(n), BOOLEAN, CHAR(n), DATE, DECIMAL(p,s), DOUBLE, INTEGER, INTERVAL unit [TO unit], MAP<k,v>, REAL, "
    "ROW(name type, ...), SMALLINT, STRING, STRUCT<name: type, ...>, TEXT, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, TINYINT, "
    "UUID, VARBINARY, VARCHAR(n), VARIANT"
)
"""The types that a column can have, for messages."""


def parse_type(cursor: Cursor, depth: int = 0) -> ColumnType:
    """Take a type; the result is nullable (the caller handles NOT NULL).

    :param cursor: the cursor at the type's first token
    :param depth: the nesting depth of the type in another one
    :raises StatementError: if the type is unknown, cannot be stored or has bad parameters; it has the type's position
    """
    if depth > MAX_NESTING:
        raise _too_deep(cursor)
    kind = _parse_prefix(cursor, depth)
    levels = kind.depth
    while cursor.take("array"):
        kind = ColumnType("ARRAY", component=kind)
        levels += 1
        if levels > MAX_NESTING:
            raise _too_deep(cursor)
    # A named type counts with all levels within it.
    if levels > MAX_NESTING:
        raise _too_deep(cursor)
    return kind


def _too_deep(cursor: Cursor) -> StatementError:
    return cursor.failure(f"Types cannot nest deeper than {MAX_NESTING}", COMPILATION_ERROR)


def _parse_prefix(cursor: Cursor, depth: int) -> ColumnType:
    start = cursor.index
    if cursor.peek() in _LONG_NAMES:
        return _parse_known(cursor, cursor.peek(), cursor.span(cursor.tokens[start].start, cursor.advance().end + 1), start, depth)
    name = cursor.name("a type")
    word = name.text
    own = cursor.types.get(word)
    if own is not None and (name.quoted or word not in RESERVED_TYPES):
        return own
    if name.quoted:
        raise cursor.failure_at(name.span, f"Unknown type {word!r}. Known types: {KNOWN_TYPES}", COMPILATION_ERROR)
    return _parse_known(cursor, word, name.span, start, depth)


def _parse_known(cursor: Cursor, word: str, span: Span, start: int, depth: int) -> ColumnType:
    if word in _NESTED:
        return _parse_nested(cursor, word, depth)
    if word in _DECIMAL:
        return _parse_decimal(cursor, start)
    if word in _SIZED:
        return _parse_sized(cursor, word)
    if word == "timestamp":
        return _parse_timestamp(cursor)
    if word == "interval":
        return _parse_interval(cursor, span)
    if word in _SIMPLE:
        return _parse_simple(cursor, word)
    raise cursor.failure_at(span, f"Unknown type {word!r}. Known types: {KNOWN_TYPES}", COMPILATION_ERROR)


def _parse_simple(cursor: Cursor, word: str) -> ColumnType:
    kind = ColumnType(_SIMPLE[word])
    if kind.is_time and cursor.take("("):
        cursor.integer("the number of digits of a second's fraction")
        cursor.expect(")")
    if kind.name in _UNSIGNED and cursor.take("unsigned"):
        return ColumnType(_UNSIGNED[kind.name])
    return kind


def _parse_decimal(cursor: Cursor, start: int) -> ColumnType:
    precision, scale = MAX_DECIMAL_PRECISION, 0
    if cursor.take("("):
        precision = cursor.integer("a precision")
        if cursor.take(","):
            scale = cursor.integer("a scale")
        cursor.expect(")")
    if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
        span = cursor.span(cursor.tokens[start].start, cursor.tokens[cursor.index - 1].end + 1)
        message = (
            f"DECIMAL({precision},{scale}): the precision must be 1 to {MAX_DECIMAL_PRECISION} and the scale at most the precision"
        )
        raise cursor.failure_at(span, message, COMPILATION_ERROR)
    return decimal(precision, scale)


def _parse_sized(cursor: Cursor, word: str) -> ColumnType:
    name = _SIZED[word]
    if word == "binary" and cursor.take("varying"):
        name = "VARBINARY"
    size = None
    if cursor.take("("):
        size = cursor.integer("a length")
        cursor.expect(")")
    elif name == "CHAR":
        size = 1
    if size == 0:
        cursor.index -= 2
        raise cursor.failure("A length must be at least 1", COMPILATION_ERROR)
    return ColumnType(name, precision=size)


def _parse_timestamp(cursor: Cursor) -> ColumnType:
    if cursor.take("("):
        cursor.integer("the number of digits of a second's fraction")
        cursor.expect(")")
    if cursor.take("with"):
        cursor.take("local")
        cursor.expect("time", "zone")
        return ColumnType("TIMESTAMP_TZ")
    if cursor.at("without", "time", "zone"):
        cursor.index += 3
    return ColumnType("TIMESTAMP")


def _parse_interval(cursor: Cursor, span: Span) -> ColumnType:
    """Take the units of ``INTERVAL DAY``, ``INTERVAL YEARS TO MONTHS``: one unit, or the first and the last one."""
    first = cursor.peek().upper().removesuffix("S")
    units = next((units for units in INTERVAL_UNITS if first in units), None)
    if units is None:
        message = (
            "An INTERVAL needs its units: INTERVAL YEAR, MONTH or YEAR TO MONTH, or INTERVAL DAY, HOUR, MINUTE, SECOND or "
            "any two of them such as DAY TO SECOND"
        )
        raise cursor.failure_at(span, message, COMPILATION_ERROR)
    cursor.advance()
    _skip_digits(cursor)
    if not cursor.take("to"):
        return ColumnType(f"INTERVAL_{first}")
    last = cursor.peek().upper().removesuffix("S")
    if last not in units[units.index(first) + 1 :]:
        raise cursor.failure(f"An interval from {first} on ends with one of {', '.join(units[units.index(first) + 1 :]) or 'none'}")
    cursor.advance()
    _skip_digits(cursor)
    return ColumnType(f"INTERVAL_{first}_TO_{last}")


def _skip_digits(cursor: Cursor) -> None:
    """Skip the numbers of digits in ``DAY(2)`` and ``SECOND(2, 6)``; intervals always have the maximum precision."""
    if cursor.take("("):
        cursor.integer("a number of digits")
        if cursor.take(","):
            cursor.integer("a number of digits")
        cursor.expect(")")


def _parse_nested(cursor: Cursor, word: str, depth: int) -> ColumnType:
    if word == "array":
        cursor.expect("<")
        kind = ColumnType("ARRAY", component=_parse_member(cursor, depth))
        _close_angle(cursor)
        return kind
    if word == "map":
        cursor.expect("<")
        key = parse_type(cursor, depth + 1).with_nullable(False)
        cursor.expect(",")
        kind = ColumnType("MAP", key=key, value=_parse_member(cursor, depth))
        _close_angle(cursor)
        return kind
    return _parse_fields(cursor, word, depth)


def _parse_member(cursor: Cursor, depth: int) -> ColumnType:
    kind = parse_type(cursor, depth + 1)
    return kind.with_nullable(not _take_not_null(cursor))


def _parse_fields(cursor: Cursor, word: str, depth: int) -> ColumnType:
    in_row = cursor.at("(")
    cursor.expect("(" if in_row or word == "row" else "<")
    fields: list[tuple[str, ColumnType]] = []
    while True:
        name = cursor.name("a field's name")
        if any(name.text == other for other, _ in fields):
            raise cursor.failure_at(name.span, f"Field {name.text!r} is declared twice", COMPILATION_ERROR)
        cursor.take(":")
        kind = parse_type(cursor, depth + 1)
        # In ROW(...) a field is NOT NULL unless it says NULL; in STRUCT<...> it is nullable unless it says NOT NULL, as in Spark.
        required = _take_not_null(cursor) or (in_row and not cursor.take("null"))
        take_comment(cursor)
        fields.append((name.text, kind.with_nullable(not required)))
        if not cursor.take(","):
            break
    if in_row:
        cursor.expect(")")
    else:
        _close_angle(cursor)
    return ColumnType("STRUCT", fields=tuple(fields))


def _take_not_null(cursor: Cursor) -> bool:
    return cursor.take("not", "null")


def _close_angle(cursor: Cursor) -> None:
    cursor.expect(">")
