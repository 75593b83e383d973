"""A hash of rows in canonical form, as SQL.

Equal rows have equal hashes. Spark's hash function takes neither a MAP nor a VARIANT. For a MAP it gets the entries, whose order
the canonical form fixes, and for a VARIANT the JSON text, which different VARIANTs may share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.syntax.dialect import DIALECT

_NOT_HASHED = re.compile(r"\bvariant\b|\bmap<", re.IGNORECASE)
_PARAMETER = "`__h{}`"


def row_hash(columns: Mapping[str, str]) -> str:
    """Return a bigint expression that has the same value for rows that are equal in some columns.

    :param columns: the columns' types as Spark DDL, by the SQL text of each; at least one
    """
    return f"XXHASH64({', '.join(_form(text, _parse_unhashed(kind), 0) for text, kind in columns.items())})"


@lru_cache(maxsize=1024)
def _parse_unhashed(kind: str) -> exp.DataType | None:
    """Return the type of an expression if Spark does not hash it, or None for any other."""
    return exp.DataType.build(kind, dialect=DIALECT) if _NOT_HASHED.search(kind) else None


def _form(text: str, kind: exp.DataType | None, depth: int) -> str:
    """Return an expression that Spark hashes, and that has the same value for equal values of another one.

    :param depth: the number of lambda parameters around the expression, whose names must differ
    """
    if kind is None:
        return text
    item = _PARAMETER.format(depth)
    match kind.this:
        case exp.DataType.Type.VARIANT:
            return f"TO_JSON({text})"
        case exp.DataType.Type.ARRAY:
            return f"TRANSFORM({text}, {item} -> {_form(item, _part(kind.expressions[0]), depth + 1)})"
        case exp.DataType.Type.MAP:
            key, value = map(_part, kind.expressions)
            parts = f"{_form(f'{item}.key', key, depth + 1)}, {_form(f'{item}.value', value, depth + 1)}"
            entries = f"MAP_ENTRIES({text})"
            return entries if key is None and value is None else f"TRANSFORM({entries}, {item} -> STRUCT({parts}))"
        case _:
            fields = [_form(f"({text}).{quote(field.name)}", _part(field.args["kind"]), depth) for field in kind.expressions]
            return f"STRUCT({', '.join(fields)})"


def _part(kind: exp.DataType) -> exp.DataType | None:
    return _parse_unhashed(kind.sql(dialect=DIALECT))
