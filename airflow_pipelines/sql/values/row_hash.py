"""A hash of rows in canonical form, as SQL.

Equal rows have equal hashes. Spark's hash function takes neither a MAP nor a VARIANT. For a MAP it gets the entries, whose order
the canonical form fixes, and for a VARIANT the JSON text, which different VARIANTs may share.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType

_PARAMETER = "`__h{}`"


def row_hash(columns: Mapping[str, str]) -> str:
    """Return a bigint expression that has the same value for rows that are equal in some columns.

    :param columns: the columns' types as Spark DDL, by the SQL text of each; at least one
    """
    return f"XXHASH64({', '.join(_form(text, spark_type(kind), 0) for text, kind in columns.items())})"


def _is_hashed(kind: ColumnType) -> bool:
    """Return True if Spark hashes values of a type."""
    return not any(part.is_map or part.is_variant for part in kind.walk())


def _form(text: str, kind: ColumnType, depth: int) -> str:
    """Return an expression that Spark hashes, and that has the same value for equal values of another one.

    :param depth: the number of lambda parameters around the expression, whose names must differ
    """
    if _is_hashed(kind):
        return text
    item = _PARAMETER.format(depth)
    if kind.component is not None:
        return f"TRANSFORM({text}, {item} -> {_form(item, kind.component, depth + 1)})"
    if kind.key is not None and kind.value is not None:
        entries = f"MAP_ENTRIES({text})"
        if _is_hashed(kind.key) and _is_hashed(kind.value):
            return entries
        parts = f"{_form(f'{item}.key', kind.key, depth + 1)}, {_form(f'{item}.value', kind.value, depth + 1)}"
        return f"TRANSFORM({entries}, {item} -> STRUCT({parts}))"
    if kind.fields is not None:
        return f"STRUCT({', '.join(_form(f'({text}).{quote(name)}', field, depth) for name, field in kind.fields)})"
    return f"TO_JSON({text})"
