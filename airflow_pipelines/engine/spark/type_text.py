"""Spark's types as DDL."""

from __future__ import annotations

import re
from functools import lru_cache

from pyspark.sql.types import ArrayType, DataType, MapType, StructType
from sqlglot import exp
from sqlglot.errors import ParseError

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.syntax.dialect import DIALECT

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_text(kind: DataType) -> str:
    """A type as DDL that Spark and the parser can read, whatever the names of its fields."""
    match kind:
        case StructType():
            return f"struct<{','.join(f'{_name(field.name)}:{type_text(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case MapType():
            return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
        case _:
            return str(kind.simpleString())


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and _is_read(name) else quote(name)


def _is_read(name: str) -> bool:
    """Whether the parser reads a word as the name of a field; some keywords it does not."""
    try:
        kind = exp.DataType.build(f"struct<{name}:int>", dialect=DIALECT)
    except ParseError:
        return False
    return [part.name for part in kind.expressions] == [name]
