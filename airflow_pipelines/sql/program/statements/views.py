"""A reader of CREATE VIEW and DECLARE RECURSIVE VIEW."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import DeclaredColumn, ViewKind
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.declarations import ViewDeclaration
from airflow_pipelines.sql.program.statements.columns import add_column, read_column
from airflow_pipelines.sql.program.statements.declared import ParsedView, RecursiveDeclaration
from airflow_pipelines.sql.program.statements.parts import StatementParts
from airflow_pipelines.sql.program.statements.properties import Properties, read_properties
from airflow_pipelines.sql.syntax.cursor import Name
from airflow_pipelines.sql.syntax.dialect import QUERY_STARTS
from airflow_pipelines.sql.syntax.storage_clauses import take_clause, take_comment


def read_declaration(parts: StatementParts) -> RecursiveDeclaration:
    """Read the statement after DECLARE RECURSIVE VIEW.

    :param parts: the statement, at the view's name
    :raises StatementError: if it cannot be read
    """
    cursor = parts.cursor
    name = parts.relation_name()
    cursor.expect("(")
    columns: dict[str, DeclaredColumn] = {}
    while True:
        column, key = read_column(parts)
        if key is not None or column.default is not None or column.lateness is not None:
            parts.note(
                column.span,
                f"Column {display(column.name)} of view {display(name.text)} may have a type and NOT NULL, nothing else",
            )
        add_column(parts, columns, column, name)
        if not cursor.take(","):
            break
    cursor.expect(")")
    if cursor.current is not None:
        raise cursor.failure("Expected the end of the statement; the query follows in CREATE VIEW")
    return RecursiveDeclaration(name.text, tuple(columns.values()), name.span)


def read_view(parts: StatementParts, kind: ViewKind) -> ParsedView:
    """Read the statement after CREATE VIEW.

    :param parts: the statement, at the view's name
    :param kind: the kind given by the words before VIEW
    :raises StatementError: if it cannot be read
    """
    cursor = parts.cursor
    name = parts.relation_name()
    parts.into.attempted.add(name.text)
    column_names = _column_names(parts, name) if cursor.at("(") else None
    properties = _read_clauses(parts, name)
    connectors = properties.connectors
    if kind is ViewKind.LOCAL and connectors and connectors[0].span is not None:
        parts.note(connectors[0].span, f"View {display(name.text)} is LOCAL, so it cannot have output connectors")
    if not cursor.take("as"):
        advice = "; rows that are kept elsewhere come through the connector of a table" if cursor.at("using") else ""
        raise cursor.failure(f"Expected AS and the view's query{advice}")
    tokens = cursor.tokens[cursor.index :]
    if not tokens or cursor.peek() not in QUERY_STARTS:
        raise cursor.failure("Expected a query after AS")
    start, end = tokens[0].start, tokens[-1].end + 1
    edits = parts.translate_part(start, end)
    tree = parts.parse_part(edits, start)
    if not isinstance(tree, exp.Query):
        raise cursor.failure("Expected a query after AS")
    view = ViewDeclaration(
        name.text,
        kind,
        edits.text,
        start,
        (),
        name.quoted,
        column_names,
        properties.texts,
        tuple(connectors),
        name.span,
        edits=edits,
    )
    return ParsedView(view, tree)


def _read_clauses(parts: StatementParts, view: Name) -> Properties:
    """Read the clauses after a view's columns, in any order: its properties, and clauses of Spark that have no effect."""
    cursor = parts.cursor
    properties = Properties()
    while True:
        if cursor.at("with", "("):
            properties = read_properties(parts, properties, view, ConnectorDirection.OUTPUT)
        elif cursor.at("using") or not take_clause(cursor):
            return properties


def _column_names(parts: StatementParts, view: Name) -> tuple[str, ...]:
    cursor = parts.cursor
    seen: dict[str, Span] = {}
    cursor.expect("(")
    while True:
        name = cursor.name("a column's name")
        take_comment(cursor)
        first = seen.get(name.text)
        if first is not None:
            parts.note(
                name.span,
                f"Column {display(name.text)} of view {display(view.text)} is declared twice: {twice(first, name.span)}",
            )
        seen.setdefault(name.text, name.span)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(seen)
