"""Compiles tables: their schemas, their lateness, and the constants of DEFAULT."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.engine.schema import RelationSchema, arrow_type
from airflow_pipelines.engine.spark.analysis import QueryRefused, is_unknown_name
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.program.relations import Column, Table
from airflow_pipelines.sql.rewrite.bare_clock_calls import bare_clock_edits
from airflow_pipelines.sql.rewrite.clock_calls import clock_edits
from airflow_pipelines.sql.rewrite.connector_metadata import without_metadata
from airflow_pipelines.sql.syntax.dialect import DIALECT
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import string_hint

_OF_TEXTS = frozenset({"DATE", "TIME", "TIMESTAMP"})
"""Types whose literals are texts with the type in front."""


def add_table(compilation: Compilation, table: Table) -> None:
    """Add a table to a program, and note what is wrong with its columns."""
    defaults = [column for column in table.columns if column.default is not None]
    values = _evaluated_defaults(compilation, defaults) if defaults else {}
    schema = RelationSchema(table.name, table.columns, tuple(table.primary_key or ()), values)
    compilation.add_schema(schema)
    compilation.time.add_table(table, schema)


def _evaluated_defaults(compilation: Compilation, columns: Sequence[Column]) -> Mapping[str, Any]:
    """Check the DEFAULTs of a table.

    :param columns: the columns that have one
    :returns: the values of those that are constants, but no literals, which inputs read themselves
    """
    casts = {column.name: f"CAST({_called(column.default or '')} AS {column.type.spark_ddl()})" for column in columns}
    try:
        compilation.analysis.evaluate_constants(f"SELECT {', '.join(casts.values())}")
    except QueryRefused:
        # All defaults are checked with one query, and each alone only when that query fails.
        for column in columns:
            _check_default(compilation, column, casts[column.name])
        return {}
    known = [column for column in columns if not _is_literal(column) and _is_constant(compilation, casts[column.name])]
    if not known:
        return {}
    query = ", ".join(f"{casts[column.name]} AS {quote(column.name)}" for column in known)
    types = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in known])
    return compilation.analysis.constants(f"SELECT {query}", types)


def _called(default: str) -> str:
    """A DEFAULT as Spark can evaluate it when the program is compiled."""
    expression = without_metadata(default)
    return Edited(expression).edit(bare_clock_edits(expression)).text


def _check_default(compilation: Compilation, column: Column, cast: str) -> None:
    try:
        compilation.analysis.evaluate_constants(f"SELECT {cast}")
    except QueryRefused as refused:
        # A DEFAULT cannot read columns, so a quoted name in it is probably meant as a string.
        name = re.search(r"`([^`]*)`", column.default or "")
        hint = string_hint(f'"{name[1]}"') if name is not None and is_unknown_name(refused) else ""
        compilation.note(column.span, f"The DEFAULT of column {display(column.name)} is wrong: {refused.message}{hint}")


def _is_literal(column: Column) -> bool:
    """Whether a DEFAULT is what readers of inputs find out by themselves."""
    if column.type.is_interval:
        return True
    tree = sqlglot.parse_one(column.default or "", read=DIALECT)
    if isinstance(tree, exp.Neg) or (isinstance(tree, exp.Cast) and tree.this.is_string and column.type.name in _OF_TEXTS):
        tree = tree.this
    return isinstance(tree, (exp.Literal, exp.Null, exp.Boolean))


def _is_constant(compilation: Compilation, cast: str) -> bool:
    """Whether an expression is the same each time; one that reads the clock is not."""
    return not clock_edits(cast, ()) and compilation.analysis.analyze(f"SELECT {cast}").deterministic
