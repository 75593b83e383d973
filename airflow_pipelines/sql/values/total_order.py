"""Total orders for types that Spark does not order (MAPs and VARIANTs), and lists sorted by several keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.types import has_calendar_interval
from airflow_pipelines.sql.syntax.dialect import DIALECT

_PARAMETER = "__e{}"
"""The names of lambda parameters, by nesting depth."""


def has_order(kind: str) -> bool:
    """Return True if Spark orders values of a type, given by its name."""
    name = kind.lower()
    return not ("map<" in name or "variant" in name or has_calendar_interval(kind))


def sortable(text: str, kind: str) -> str:
    """Return an expression that sorts by ``text``, of Spark type ``kind``, in a total order.

    A MAP is sorted by its entries in the order of their keys, a VARIANT by its JSON text and then by the types in it.

    :param text: Spark SQL of one expression
    :param kind: its type
    """
    if has_order(kind):
        return text
    try:
        tree = exp.DataType.build(kind, dialect=DIALECT)
    except (SqlglotError, ValueError):
        return _json(text)
    return _form(text, tree, 0)


def _json(text: str) -> str:
    return f"TO_JSON(NAMED_STRUCT('v', {text}))"


def _form(text: str, kind: exp.DataType, depth: int) -> str:
    if not _is_nested_or_varied(kind):
        return text
    item = _PARAMETER.format(depth)
    match kind.this:
        case exp.DataType.Type.VARIANT:
            types = f"TRANSFORM(TRY_CAST({text} AS ARRAY<VARIANT>), {item} -> SCHEMA_OF_VARIANT({item}))"
            return f"STRUCT(TO_JSON({text}), SCHEMA_OF_VARIANT({text}), {types})"
        case exp.DataType.Type.ARRAY if len(kind.expressions) == 1:
            return f"TRANSFORM({text}, {item} -> {_form(item, kind.expressions[0], depth + 1)})"
        case exp.DataType.Type.MAP if len(kind.expressions) == 2:
            key, value = kind.expressions
            if not _is_nested_or_varied(value):
                return f"SORT_ARRAY(MAP_ENTRIES({text}))"
            parts = f"{_form(f'{item}.key', key, depth + 1)}, {_form(f'{item}.value', value, depth + 1)}"
            return f"SORT_ARRAY(TRANSFORM(MAP_ENTRIES({text}), {item} -> STRUCT({parts})))"
        case exp.DataType.Type.STRUCT if kind.expressions:
            fields = [(field.name, field.args.get("kind")) for field in kind.expressions]
            if any(not name or inner is None for name, inner in fields):
                return _json(text)
            parts = ", ".join(_form(f"({text}).{quote(name)}", inner, depth) for name, inner in fields)
            return f"STRUCT(({text}) IS NOT NULL, {parts})"
        case _:
            return _json(text)


def _is_nested_or_varied(kind: exp.DataType) -> bool:
    """Return True if a type is or contains one that Spark does not order."""
    unordered = {exp.DataType.Type.MAP, exp.DataType.Type.VARIANT, exp.DataType.Type.INTERVAL}
    return any(part.this in unordered for part in kind.find_all(exp.DataType))


@dataclass(frozen=True, slots=True)
class ListKey:
    """A field of a list's structs to sort the list by."""

    field: str
    descending: bool = False
    nulls_first: bool = True


def sorted_list(text: str, keys: Sequence[ListKey]) -> str:
    """Return an array of structs sorted by some of their fields.

    :param text: Spark SQL of the array
    :param keys: the fields to sort by, in order
    """
    comparisons = "".join(f" WHEN NOT (__l.{key.field} <=> __r.{key.field}) THEN {_comparison(key)}" for key in keys)
    return f"ARRAY_SORT({text}, (__l, __r) -> CASE{comparisons} ELSE 0 END)"


def _comparison(key: ListKey) -> str:
    null, less = (-1 if key.nulls_first else 1), (1 if key.descending else -1)
    left, right = f"__l.{key.field}", f"__r.{key.field}"
    nulls = f"WHEN {left} IS NULL THEN {null} WHEN {right} IS NULL THEN {-null}"
    return f"CASE {nulls} WHEN {left} < {right} THEN {less} ELSE {-less} END"
