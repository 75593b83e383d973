"""Spark's types as DDL."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from airflow_pipelines.sql.values.field_names import field_name

WHOLE_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
"""The integer types."""


def type_text(kind: DataType) -> str:
    """Return a type as DDL that Spark and the parser can read, whatever the names of its fields."""
    match kind:
        case StructType():
            return f"struct<{','.join(f'{field_name(field.name)}:{type_text(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case MapType():
            return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
        case _:
            return str(kind.simpleString())
