"""The canonical form of values, as SQL: every value that is stored or passed between relations has it.

Rows are the same if no function can distinguish them. Some types have several representations of one value, as Spark groups and
compares it: the zeros and the NaNs of floating-point numbers, the order of a map's entries, the encodings of a VARIANT. Only one
of these is ever stored, so that two rows are equal exactly if all their values have the same bits:

- FLOAT, DOUBLE: 0.0 (never -0.0), and one NaN.
- MAP: the entries in the order of their keys, as Spark compares them.
- VARIANT: the encoding of Spark's own builder: the keys in order, and no unused name in the dictionary.
- ARRAY, STRUCT, MAP: the values in them likewise.

Every other type has one representation by nature: integers, booleans, decimals (Arrow and Spark keep them with the scale of their
type), strings and binary (byte by byte; a stored column has no collation), dates, times, timestamps (microseconds, in UTC if they
have a time zone), intervals (months, or microseconds).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType

_PARAMETER = "`__v{}`"


@lru_cache(maxsize=4096)
def has_several_forms(kind: str) -> bool:
    """Return True if a type has values with more than one representation.

    :param kind: a Spark type as DDL
    """
    return _is_varied(spark_type(kind))


@lru_cache(maxsize=4096)
def has_visible_forms(kind: str) -> bool:
    """Return True if functions can distinguish representations of one value of a type. A VARIANT's encoding is not visible to them.

    :param kind: a Spark type as DDL
    """
    return any(part.is_floating or part.is_map for part in spark_type(kind).walk())


def in_canonical_form(text: str, kind: str) -> str:
    """Return the expression that brings the value of another one into canonical form.

    :param text: a Spark SQL expression
    :param kind: its type as Spark DDL, which is also the type of the result
    :returns: ``text`` itself if its type has one form only
    """
    return _form(text, spark_type(kind), 0)


def _is_varied(kind: ColumnType) -> bool:
    return any(part.is_floating or part.is_map or part.is_variant for part in kind.walk())


def _form(text: str, kind: ColumnType, depth: int) -> str:
    """Return the canonical form of an expression's value.

    :param depth: the number of lambda parameters around the expression, whose names must differ
    """
    if kind.is_floating:
        name = kind.spark_ddl()
        # Adding zero turns -0.0 into 0.0.
        return f"NANVL({text} + CAST(0 AS {name}), CAST('NaN' AS {name}))"
    if kind.is_variant:
        return f"VARIANT_GET({text}, '$', 'variant')"
    if kind.component is not None:
        return _array(text, kind.component, depth)
    if kind.key is not None and kind.value is not None:
        return _map(text, kind.key, kind.value, depth)
    if kind.fields is not None:
        return _struct(text, kind.fields, depth)
    return text


def _array(text: str, element: ColumnType, depth: int) -> str:
    if not _is_varied(element):
        return text
    item = _PARAMETER.format(depth)
    return f"TRANSFORM({text}, {item} -> {_form(item, element, depth + 1)})"


def _map(text: str, key: ColumnType, value: ColumnType, depth: int) -> str:
    one, other = _PARAMETER.format(depth), _PARAMETER.format(depth + 1)
    entries = f"MAP_ENTRIES({text})"
    if _is_varied(key) or _is_varied(value):
        parts = f"'key', {_form(f'{one}.key', key, depth + 1)}, 'value', {_form(f'{one}.value', value, depth + 1)}"
        entries = f"TRANSFORM({entries}, {one} -> NAMED_STRUCT({parts}))"
    # Keys are unique, so that values, whose types may have no order, need no comparison.
    order = f"CASE WHEN {one}.key < {other}.key THEN -1 WHEN {one}.key > {other}.key THEN 1 ELSE 0 END"
    return f"MAP_FROM_ENTRIES(ARRAY_SORT({entries}, ({one}, {other}) -> {order}))"


def _struct(text: str, fields: Sequence[tuple[str, ColumnType]], depth: int) -> str:
    if not any(_is_varied(inner) for _, inner in fields):
        return text
    whole = _PARAMETER.format(depth)
    parts = ", ".join(f"{_literal(name)}, {_form(f'{whole}.{quote(name)}', inner, depth + 1)}" for name, inner in fields)
    # As the parameter of a lambda the struct is evaluated once, however many fields it has.
    return f"TRANSFORM(ARRAY({text}), {whole} -> IF({whole} IS NULL, NULL, NAMED_STRUCT({parts})))[0]"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
