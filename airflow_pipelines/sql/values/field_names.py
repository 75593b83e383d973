"""Names of struct fields as DDL, which both Spark and the parser read."""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import ParseError

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.syntax.dialect import DIALECT

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@lru_cache(maxsize=1024)
def field_name(name: str) -> str:
    """Return the name of a struct's field as in DDL, in back quotes only if it needs them.

    :param name: the field's name
    :returns: SQL text
    """
    return name if _PLAIN.fullmatch(name) and _is_read(name) else quote(name)


def _is_read(name: str) -> bool:
    """Return True if the parser reads a word as the name of a field, which some keywords are not."""
    try:
        kind = exp.DataType.build(f"struct<{name}:int>", dialect=DIALECT)
    except ParseError:
        return False
    return [part.name for part in kind.expressions] == [name]
