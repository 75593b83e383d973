"""Spark's schemas of relations, and relations' columns from the schemas of analyzed queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from pyspark.sql.types import StructType

from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.spark_types import from_spark_json
from airflow_pipelines.rows.types import SPARK_NAMES, ColumnType

TYPE_HINT: Final = "airflow_pipelines.type"
"""The key of a Spark field's metadata that keeps what Spark's type cannot express, such as a STRING that holds UUIDs."""
_HINT: Final = re.compile(r"^(?P<name>[A-Z]+)(\((?P<size>\d+)\))?$")


@lru_cache(1_000)
def spark_schema(schema: RelationSchema) -> StructType:
    """Return the Spark schema of a relation, which must not be changed.

    :param schema: the relation's columns
    """
    return StructType.fromJson(_schema_json(schema))


def hinted_schema_json(schema: RelationSchema) -> dict[str, Any]:
    """Return Spark's schema JSON of a relation, with :data:`TYPE_HINT` on each column whose type Spark cannot express in full.

    :param schema: the relation's columns
    """
    plain = _schema_json(schema)
    fields = [{**field, "metadata": _hint(c.type)} for field, c in zip(plain["fields"], schema.columns, strict=True)]
    return {**plain, "fields": fields}


def column_from_spark_json(field: Mapping[str, Any]) -> Column:
    """Return the column for a field of an analyzed query's Spark schema.

    A hint in the field's metadata (:data:`TYPE_HINT`) restores what Spark's type dropped, such as UUID or CHAR(3).

    :param field: one element of ``fields`` in Spark's schema JSON
    :raises ValueError: if the field's type has no counterpart
    """
    name = field["name"]
    kind = from_spark_json(field["type"], field["nullable"])
    hint = _HINT.match(field.get("metadata", {}).get(TYPE_HINT, ""))
    # A hint follows a column through a query. Where an expression has changed the type, the hint no longer holds.
    if hint and SPARK_NAMES.get(hint["name"]) == kind.spark_ddl():
        kind = ColumnType(hint["name"], kind.nullable, precision=int(hint["size"]) if hint["size"] else None)
    return Column(name, kind, case_sensitive=name != name.lower())


def _schema_json(schema: RelationSchema) -> dict[str, Any]:
    fields = [{"name": c.name, "type": c.type.spark_json(), "nullable": c.type.nullable, "metadata": {}} for c in schema.columns]
    return {"type": "struct", "fields": fields}


def _hint(kind: ColumnType) -> dict[str, Any]:
    is_sized = kind.precision is not None and not kind.is_decimal
    if kind.is_uuid or kind.is_padded or kind.is_unsigned_integer or is_sized:
        return {TYPE_HINT: kind.name if kind.precision is None else f"{kind.name}({kind.precision})"}
    return {}
