"""A reader of CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.program.messages import COMPILATION_ERROR, NOT_SUPPORTED
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import DeclaredColumn, Table
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.statements.columns import add_column, read_column, skip_references
from airflow_pipelines.sql.program.statements.parts import StatementParts
from airflow_pipelines.sql.program.statements.properties import Properties, read_properties
from airflow_pipelines.sql.syntax.cursor import Name
from airflow_pipelines.sql.syntax.storage_clauses import take_clause, take_key_hints

_UNKEYABLE = frozenset({"MAP", "VARIANT"})


def read_table(parts: StatementParts) -> Table:
    """Read the statement after CREATE TABLE.

    :param parts: the statement, at the table's name
    :raises StatementError: if it cannot be read
    """
    cursor = parts.cursor
    name = parts.relation_name()
    _refuse_query(parts)
    cursor.expect("(")
    columns: dict[str, DeclaredColumn] = {}
    keys: list[tuple[Span, list[Name]]] = []
    while True:
        if not _take_constraint(parts, keys):
            column, key = read_column(parts)
            add_column(parts, columns, column, name)
            if key is not None:
                keys.append((key, [Name(column.name, column.case_sensitive, key)]))
        if not cursor.take(","):
            break
    cursor.expect(")")
    properties = _read_clauses(parts, columns, name)
    if not columns:
        parts.note(name.span, f"Table {display(name.text)} has no columns")
    primary_key = _resolve_key(parts, columns, keys, name)
    _refuse_query(parts)
    if cursor.current is not None:
        raise cursor.failure("Expected the end of the statement")
    parts.into.table_properties[name.text] = properties.texts
    bounded = any(columns[column].lateness for column in primary_key or ())
    return Table(
        name.text,
        tuple(columns.values()),
        name.quoted,
        primary_key,
        # A primary key has to find any row, unless LATENESS of its columns lets old rows be dropped.
        materialized=properties.is_set("materialized") or (primary_key is not None and not bounded),
        append_only=properties.is_set("append_only"),
        skip_unused_columns=properties.is_set("skip_unused_columns"),
        connectors=tuple(properties.connectors),
        span=name.span,
    )


def _refuse_query(parts: StatementParts) -> None:
    if parts.cursor.peek() in {"as", "like"}:
        raise parts.cursor.failure(
            "A table is filled by connectors and requests; for the rows of a query write CREATE MATERIALIZED VIEW name AS",
            COMPILATION_ERROR,
        )


def _take_constraint(parts: StatementParts, keys: list[tuple[Span, list[Name]]]) -> bool:
    cursor = parts.cursor
    start = cursor.index
    if cursor.at("constraint") and cursor.peek(2) in {"primary key", "foreign key", "unique", "check"}:
        cursor.index += 2
    if cursor.at("primary key", "("):
        first = cursor.tokens[cursor.index]
        cursor.index += 1
        names = parts.names("a column's name")
        keys.append((cursor.span(first.start, cursor.tokens[cursor.index - 1].end + 1), names))
        take_key_hints(cursor)
        return True
    if cursor.at("foreign key", "("):
        cursor.index += 1
        cursor.skip_parenthesis()
        skip_references(cursor)
        return True
    if cursor.peek() in {"unique", "check"} and cursor.peek(1) == "(":
        advice = "leave it out, and let a view show the rows that break it"
        raise cursor.failure(f"{cursor.peek().upper()} constraints are not supported yet: {advice}", NOT_SUPPORTED)
    cursor.index = start
    return False


def _resolve_key(
    parts: StatementParts, columns: dict[str, DeclaredColumn], keys: list[tuple[Span, list[Name]]], table: Name
) -> tuple[str, ...] | None:
    if not keys:
        return None
    for span, _ in keys[1:]:
        parts.note(
            span,
            f"Table {display(table.text)} has two primary keys: {twice(keys[0][0], span)}; "
            "a key of several columns is written PRIMARY KEY (a, b)",
        )
    names: list[str] = []
    for name in keys[0][1]:
        column = columns.get(name.text)
        if column is None:
            parts.note(
                name.span,
                f"The primary key names the column {display(name.text)}, which table {display(table.text)} does not have",
            )
        elif name.text in names:
            parts.note(name.span, f"The primary key names the column {display(name.text)} twice")
        elif column.type.name in _UNKEYABLE:
            parts.note(name.span, f"A {column.type.name} cannot be part of a primary key")
        else:
            columns[name.text] = replace(column, type=column.type.with_nullable(False))
            names.append(name.text)
    return tuple(names)


def _read_clauses(parts: StatementParts, columns: dict[str, DeclaredColumn], table: Name) -> Properties:
    """Read the clauses after a table's columns, in any order: its properties, and clauses of Spark that have no effect."""
    cursor = parts.cursor
    properties = Properties()
    while True:
        if cursor.at("with", "("):
            properties = read_properties(parts, properties, table, ConnectorDirection.INPUT)
        elif cursor.at("partitioned by", "("):
            _read_partitioning(parts, columns, table)
        elif not take_clause(cursor):
            return properties


def _read_partitioning(parts: StatementParts, columns: dict[str, DeclaredColumn], table: Name) -> None:
    """Read PARTITIONED BY of a table, which has no effect, except that a column with a type is declared here, as in Hive."""
    cursor = parts.cursor
    start = cursor.index
    cursor.expect("partitioned by", "(")
    while True:
        if cursor.peek(1) in {",", ")"}:
            cursor.name("a column's name")
        elif cursor.peek(1) == "(":
            cursor.name("a transform's name")
            cursor.skip_parenthesis()
        else:
            add_column(parts, columns, read_column(parts)[0], table)
        if not cursor.take(","):
            break
    cursor.expect(")")
    cursor.ignored.note("PARTITIONED BY", cursor.span(cursor.tokens[start].start, cursor.tokens[cursor.index - 1].end + 1))
