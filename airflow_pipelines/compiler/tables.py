"""Compiles tables: their schemas, their lateness, and the constants of DEFAULT."""

from __future__ import annotations

import re

from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.spark.analysis import QueryRefused, is_unknown_name
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import Column, Table
from airflow_pipelines.sql.syntax.hints import string_hint


def add_table(compilation: Compilation, table: Table) -> None:
    """Add a table to a program, and note what is wrong with its columns."""
    schema = RelationSchema(table.name, table.columns, tuple(table.primary_key or ()))
    compilation.add_schema(schema)
    compilation.time.add_table(table, schema)
    defaults = [column for column in table.columns if column.default is not None]
    if defaults:
        _check_defaults(compilation, defaults)


def _check_defaults(compilation: Compilation, columns: list[Column]) -> None:
    casts = [f"CAST({column.default} AS {column.type.spark_ddl()})" for column in columns]
    try:
        compilation.analysis.evaluate_constants(f"SELECT {', '.join(casts)}")
    except QueryRefused:
        # All defaults are checked with one query, and each alone only when that query fails.
        for column, cast in zip(columns, casts, strict=True):
            try:
                compilation.analysis.evaluate_constants(f"SELECT {cast}")
            except QueryRefused as refused:
                # A DEFAULT cannot read columns, so a quoted name in it is probably meant as a string.
                name = re.search(r"`([^`]*)`", column.default or "")
                hint = string_hint(f'"{name[1]}"') if name is not None and is_unknown_name(refused) else ""
                compilation.note(column.span, f"The DEFAULT of column {display(column.name)} is wrong: {refused.message}{hint}")
