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

import re
from functools import lru_cache

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.syntax.dialect import DIALECT

_VARIED = re.compile(r"\b(float|double|variant)\b|\bmap<", re.IGNORECASE)
_VISIBLE = re.compile(r"\b(float|double)\b|\bmap<", re.IGNORECASE)
_PARAMETER = "`__v{}`"


def has_several_forms(kind: str) -> bool:
    """Return True if a type has values with more than one representation.

    :param kind: a Spark type as DDL
    """
    return _VARIED.search(kind) is not None


def has_visible_forms(kind: str) -> bool:
    """Return True if functions can distinguish representations of one value of a type. A VARIANT's encoding is not visible to them.

    :param kind: a Spark type as DDL
    """
    return _VISIBLE.search(kind) is not None


def in_canonical_form(text: str, kind: str) -> str:
    """Return the expression that brings the value of another one into canonical form.

    :param text: a Spark SQL expression
    :param kind: its type as Spark DDL, which is also the type of the result
    :returns: ``text`` itself if its type has one form only
    """
    return _form(text, _parse_type(kind), 0) if has_several_forms(kind) else text


@lru_cache(maxsize=1024)
def _parse_type(kind: str) -> exp.DataType:
    return exp.DataType.build(kind, dialect=DIALECT)


def _form(text: str, kind: exp.DataType, depth: int) -> str:
    """Return the canonical form of an expression's value.

    :param depth: the number of lambda parameters around the expression, whose names must differ
    """
    match kind.this:
        case exp.DataType.Type.DOUBLE | exp.DataType.Type.FLOAT:
            name = "DOUBLE" if kind.this is exp.DataType.Type.DOUBLE else "FLOAT"
            # Adding zero turns -0.0 into 0.0.
            return f"NANVL({text} + CAST(0 AS {name}), CAST('NaN' AS {name}))"
        case exp.DataType.Type.VARIANT:
            return f"VARIANT_GET({text}, '$', 'variant')"
        case exp.DataType.Type.ARRAY:
            return _array(text, kind.expressions[0], depth)
        case exp.DataType.Type.MAP:
            return _map(text, kind.expressions[0], kind.expressions[1], depth)
        case exp.DataType.Type.STRUCT:
            return _struct(text, kind, depth)
        case _:
            return text


def _is_varied(kind: exp.DataType) -> bool:
    return has_several_forms(kind.sql(dialect=DIALECT))


def _array(text: str, element: exp.DataType, depth: int) -> str:
    if not _is_varied(element):
        return text
    item = _PARAMETER.format(depth)
    return f"TRANSFORM({text}, {item} -> {_form(item, element, depth + 1)})"


def _map(text: str, key: exp.DataType, value: exp.DataType, depth: int) -> str:
    one, other = _PARAMETER.format(depth), _PARAMETER.format(depth + 1)
    entries = f"MAP_ENTRIES({text})"
    if _is_varied(key) or _is_varied(value):
        parts = f"'key', {_form(f'{one}.key', key, depth + 1)}, 'value', {_form(f'{one}.value', value, depth + 1)}"
        entries = f"TRANSFORM({entries}, {one} -> NAMED_STRUCT({parts}))"
    # Keys are unique, so that values, whose types may have no order, need no comparison.
    order = f"CASE WHEN {one}.key < {other}.key THEN -1 WHEN {one}.key > {other}.key THEN 1 ELSE 0 END"
    return f"MAP_FROM_ENTRIES(ARRAY_SORT({entries}, ({one}, {other}) -> {order}))"


def _struct(text: str, kind: exp.DataType, depth: int) -> str:
    fields = [(field.name, field.args["kind"]) for field in kind.expressions]
    if not any(_is_varied(inner) for _, inner in fields):
        return text
    whole = _PARAMETER.format(depth)
    parts = ", ".join(f"{_literal(name)}, {_form(f'{whole}.{quote(name)}', inner, depth + 1)}" for name, inner in fields)
    # As the parameter of a lambda the struct is evaluated once, however many fields it has.
    return f"TRANSFORM(ARRAY({text}), {whole} -> IF({whole} IS NULL, NULL, NAMED_STRUCT({parts})))[0]"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
