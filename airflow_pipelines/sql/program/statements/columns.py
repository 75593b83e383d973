"""A reader of the columns of tables and declared views."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.program.messages import NOT_SUPPORTED
from airflow_pipelines.program.names import INTERNAL_PREFIX, display
from airflow_pipelines.program.relations import DeclaredColumn
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.statements.parts import StatementParts
from airflow_pipelines.sql.syntax.column_types import parse_type
from airflow_pipelines.sql.syntax.cursor import Cursor, Name
from airflow_pipelines.sql.syntax.storage_clauses import take_collation, take_comment, take_key_hints

_COLUMN_CONSTRAINTS = frozenset({"primary key", "foreign key", "references", "not", "null"})


def read_column(parts: StatementParts) -> tuple[DeclaredColumn, Span | None]:
    """Read one column, and the position of its PRIMARY KEY clause, if it has one.

    :param parts: the statement, at the column's name
    :raises StatementError: if it cannot be read
    """
    cursor = parts.cursor
    name = cursor.name("a column's name")
    column = DeclaredColumn(name.text, parse_type(cursor), name.quoted, span=name.span)
    key: Span | None = None
    while cursor.current is not None and cursor.peek() not in {",", ")"}:
        first = cursor.current
        if cursor.take("not", "null"):
            column = replace(column, type=column.type.with_nullable(False))
        elif cursor.take("null"):
            continue
        elif cursor.at("constraint") and cursor.peek(2) in _COLUMN_CONSTRAINTS:
            cursor.index += 2
        elif cursor.take("primary key"):
            key = cursor.span(first.start, cursor.tokens[cursor.index - 1].end + 1)
            take_key_hints(cursor)
        elif cursor.take("default"):
            column = replace(column, default=parts.expression("DEFAULT"))
        elif cursor.take("lateness"):
            column = replace(column, lateness=parts.expression("LATENESS"))
        elif cursor.at("watermark"):
            raise cursor.failure("WATERMARK is not supported yet: LATENESS bounds how late rows may be", NOT_SUPPORTED)
        elif cursor.at("references") or cursor.take("foreign key"):
            skip_references(cursor)
        elif cursor.at("generated"):
            raise cursor.failure("A table holds what comes in: compute the column in a view, or give it a DEFAULT", NOT_SUPPORTED)
        elif not (take_comment(cursor) or take_collation(cursor)):
            raise cursor.failure("Expected NOT NULL, DEFAULT, PRIMARY KEY, LATENESS, ',' or ')'")
    return column, key


def add_column(parts: StatementParts, columns: dict[str, DeclaredColumn], column: DeclaredColumn, relation: Name) -> None:
    """Add a column to a relation, or report it if the relation has one of that name.

    :param parts: the statement
    :param columns: the relation's columns so far, by name
    :param column: the column to add
    :param relation: the relation
    """
    other = columns.get(column.name)
    if other is not None:
        parts.note(
            column.span,
            f"Column {display(column.name)} of {display(relation.text)} is declared twice: {twice(other.span, column.span)}",
        )
        return
    if column.name.startswith(INTERNAL_PREFIX):
        parts.note(
            column.span,
            f"The column name {display(column.name)} is reserved: names that start with '{INTERNAL_PREFIX}' are the engine's",
        )
    columns[column.name] = column


def skip_references(cursor: Cursor) -> None:
    """Skip the REFERENCES clause of a foreign key, which has no effect.

    :param cursor: the cursor at REFERENCES
    :raises StatementError: if there is another text
    """
    cursor.expect("references")
    cursor.name("a table's name")
    if cursor.at("("):
        cursor.skip_parenthesis()
    take_key_hints(cursor)
