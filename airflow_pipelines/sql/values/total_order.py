"""Total orders for types that Spark does not order (MAPs and VARIANTs), and lists sorted by several keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType

_PARAMETER = "__e{}"
"""The names of lambda parameters, by nesting depth."""


@lru_cache(maxsize=4096)
def has_order(kind: str) -> bool:
    """Return True if Spark orders values of a type, given by its name."""
    return _has_order(spark_type(kind))


def sortable(text: str, kind: str) -> str:
    """Return an expression that sorts by ``text``, of Spark type ``kind``, in a total order.

    A MAP is sorted by its entries in the order of their keys, a VARIANT by its JSON text and then by the types in it.

    :param text: Spark SQL of one expression
    :param kind: its type
    """
    try:
        parsed = spark_type(kind)
    except ValueError:
        # Errors of Spark cut the names of types with many fields.
        return _json(text)
    return _form(text, parsed, 0)


def _json(text: str) -> str:
    return f"TO_JSON(NAMED_STRUCT('v', {text}))"


def _has_order(kind: ColumnType) -> bool:
    return not any(part.is_map or part.is_variant or part.is_calendar_interval for part in kind.walk())


def _form(text: str, kind: ColumnType, depth: int) -> str:
    if _has_order(kind):
        return text
    item = _PARAMETER.format(depth)
    if kind.is_variant:
        types = f"TRANSFORM(TRY_CAST({text} AS ARRAY<VARIANT>), {item} -> SCHEMA_OF_VARIANT({item}))"
        return f"STRUCT(TO_JSON({text}), SCHEMA_OF_VARIANT({text}), {types})"
    if kind.component is not None:
        return f"TRANSFORM({text}, {item} -> {_form(item, kind.component, depth + 1)})"
    if kind.key is not None and kind.value is not None:
        if _has_order(kind.value):
            return f"SORT_ARRAY(MAP_ENTRIES({text}))"
        parts = f"{_form(f'{item}.key', kind.key, depth + 1)}, {_form(f'{item}.value', kind.value, depth + 1)}"
        return f"SORT_ARRAY(TRANSFORM(MAP_ENTRIES({text}), {item} -> STRUCT({parts})))"
    if kind.fields is not None:
        parts = ", ".join(_form(f"({text}).{quote(name)}", inner, depth) for name, inner in kind.fields)
        return f"STRUCT(({text}) IS NOT NULL, {parts})"
    return _json(text)


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
