"""Schemas and helpers that the connector tests share."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.compiler.literal_defaults import is_literal, literal_value
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType


def col(
    name: str, kind: str | ColumnType, *, null: bool = True, default: str | None = None, quoted: bool = False, **parts: Any
) -> Column:
    """A column, its type given by name and parts or as a whole."""
    if isinstance(kind, str):
        kind = ColumnType(kind, null, **parts)
    return Column(name, kind, case_sensitive=quoted, default=default)


def relation(*columns: Column, name: str = "t") -> RelationSchema:
    """A table's schema, with the DEFAULTs that are literals."""
    defaults = {each.name: literal_value(each) for each in columns if each.default is not None and is_literal(each)}
    return RelationSchema(name, tuple(columns), defaults=defaults)


GRADES = relation(
    col("student_id", "BIGINT", null=False),
    col("class", "VARCHAR"),
    col("grade", "DECIMAL", precision=5, scale=2),
    col("class_date", "DATE"),
    name="grades",
)

SCALARS = relation(
    col("b", "BOOLEAN"),
    col("i8", "TINYINT"),
    col("i16", "SMALLINT"),
    col("i32", "INTEGER"),
    col("i64", "BIGINT", null=False),
    col("r", "REAL"),
    col("f", "DOUBLE"),
    col("dec", "DECIMAL", precision=12, scale=3),
    col("s", "VARCHAR"),
    col("s3", "VARCHAR", precision=3),
    col("d", "DATE"),
    col("t", "TIME"),
    col("ts", "TIMESTAMP"),
    col("tz", "TIMESTAMP_TZ"),
    col("u", "UUID"),
)

NESTED = relation(
    col("bin", "VARBINARY"),
    col("arr", "ARRAY", component=ColumnType("INTEGER")),
    col("m", "MAP", key=ColumnType("BIGINT", False), value=ColumnType("DECIMAL", precision=5, scale=2)),
    col("st", "STRUCT", fields=(("x", ColumnType("DATE")), ("y", ColumnType("ARRAY", component=ColumnType("VARCHAR"))))),
    col("v", "VARIANT"),
)


def rows(parsed: Parsed) -> list[dict[str, Any]]:
    """The rows of parsed changes, operations included."""
    return [] if parsed.changes is None else parsed.changes.rows.to_pylist()


class NoColumns:
    """Stands in for the readers of whole columns, so that everything is read row by row."""

    def read(self, *_: Any) -> None:
        """Nothing is plain enough."""
