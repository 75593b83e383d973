"""The columns of views: their names and types from the analyzed query, and the comparison with a declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.engine.spark.analysis import AUTOMATIC, Analyzed
from airflow_pipelines.engine.spark.schemas import column_from_spark_json
from airflow_pipelines.program.names import INTERNAL_PREFIX, deduplicate, display
from airflow_pipelines.program.relations import span_of
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.spark_types import CALENDAR_INTERVAL
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.program.declarations import ViewDeclaration


def view_columns(compilation: Compilation, view: ViewDeclaration, analyzed: Analyzed) -> tuple[Column, ...] | None:
    """Return the columns of a view, with the names of its column list.

    :param compilation: collects the errors
    :param view: the view
    :param analyzed: the result of Spark's analysis of its query
    :returns: the columns, or None if there is an error
    """
    names = deduplicate(_find_names(analyzed))
    count = len(compilation.messages)
    if view.column_names is not None:
        if len(view.column_names) != len(names):
            compilation.note(
                view.span,
                f"View {display(view.name)} lists {len(view.column_names)} columns and its query gives {len(names)}: "
                f"{', '.join(map(display, names))}",
            )
            return None
        names = list(view.column_names)
    columns: list[Column] = []
    for name, field in zip(names, analyzed.fields, strict=True):
        column = _make_column(compilation, view, name, field)
        if column is not None:
            columns.append(column)
    return tuple(columns) if len(compilation.messages) == count else None


def fits_declaration(compilation: Compilation, view: ViewDeclaration, analyzed: Analyzed) -> bool:
    """Return True if the query of a recursive view matches its declaration.

    :param compilation: collects the errors
    :param view: the view
    :param analyzed: the result of Spark's analysis of its query
    :returns: True if it matches
    """
    columns, declared = view_columns(compilation, view, analyzed), view.declared or ()
    if columns is None:
        return False
    given, wanted = [column.name for column in columns], [column.name for column in declared]
    if given != wanted:
        compilation.note(
            view.span,
            f"View {display(view.name)} is declared with the columns {', '.join(map(display, wanted))} and its query gives "
            f"{', '.join(map(display, given))}",
        )
        return False
    count = len(compilation.messages)
    for column, other in zip(columns, declared, strict=True):
        title = f"Column {display(column.name)} of view {display(view.name)}"
        if column.type.spark_ddl() != other.type.spark_ddl():
            compilation.note(
                span_of(other),
                f"{title} is declared {other.type.spark_ddl()} and its query gives {column.type.spark_ddl()}: "
                f"declare that, or write CAST(... AS {other.type.spark_ddl()}) in the query",
            )
        elif column.type.nullable and not other.type.nullable:
            compilation.note(span_of(other), f"{title} is declared NOT NULL and its query may give NULL")
        elif not _is_comparable(other.type):
            message = f"{title} holds a MAP or VARIANT, but a recursive view is a set, whose rows can be compared"
            compilation.note(span_of(other), message)
    return len(compilation.messages) == count


def _make_column(compilation: Compilation, view: ViewDeclaration, name: str, field: Mapping[str, Any]) -> Column | None:
    title = f"Column {display(name)} of view {display(view.name)}"
    if name.startswith(INTERNAL_PREFIX):
        message = f"{title} has a reserved name: names that start with '{INTERNAL_PREFIX}' are the engine's"
        compilation.note(view.span, message)
        return None
    try:
        column = column_from_spark_json({**field, "name": name})
    except ValueError as failure:
        compilation.note(view.span, f"{title} is {failure}" if str(failure) == CALENDAR_INTERVAL else f"{title}: {failure}")
        return None
    if "__COLLATIONS" in field.get("metadata", {}):
        # Stored strings are compared byte by byte, and Arrow has no collations.
        message = f"{title} has a collation, which views cannot keep: CAST(... AS STRING COLLATE UTF8_BINARY)"
        compilation.note(view.span, message)
        return None
    if column.type.is_null:
        compilation.note(view.span, f"{title} is always NULL and has no type: write CAST(NULL AS <type>)")
        return None
    if _has_untyped_map(column.type):
        compilation.note(view.span, f"{title} has a MAP without types: write CAST(MAP() AS MAP<key, value>)")
        return None
    return replace(column, case_sensitive=name != name.lower())


def _has_untyped_map(kind: ColumnType) -> bool:
    return (kind.is_map and any(part.is_null for part in kind.parts)) or any(map(_has_untyped_map, kind.parts))


def _find_names(analyzed: Analyzed) -> list[str]:
    """Return the columns' names. A column that the query does not name is ``EXPR$<n>`` with its position from 0."""
    return [f"EXPR${at}" if AUTOMATIC in field.get("metadata", {}) else field["name"] for at, field in enumerate(analyzed.fields)]


def _is_comparable(kind: ColumnType) -> bool:
    return not (kind.is_map or kind.is_variant) and all(map(_is_comparable, kind.parts))
