"""A reader of the statements of a program: tables, views and declarations of views; it refuses all others with their positions."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from airflow_pipelines.program.messages import NOT_SUPPORTED
from airflow_pipelines.program.names import RESERVED_PREFIX
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.sql.program.declarations import IndexDeclaration, Lateness
from airflow_pipelines.sql.program.statements.declared import Statements
from airflow_pipelines.sql.program.statements.parts import StatementParts
from airflow_pipelines.sql.program.statements.tables import read_table
from airflow_pipelines.sql.program.statements.views import read_declaration, read_view
from airflow_pipelines.sql.syntax.cursor import Cursor, Name, StatementError
from airflow_pipelines.sql.syntax.refused_statements import REFUSALS
from airflow_pipelines.sql.syntax.storage_clauses import take_head
from airflow_pipelines.sql.syntax.tokens import FoldedText


def read_statement(folded: FoldedText, tokens: list[Token], into: Statements) -> None:
    """Read one statement and add its declaration, or its errors, to ``into``, with a warning for each clause without effect.

    :param folded: the program's text
    :param tokens: the statement's tokens
    :param into: the collection of declarations
    """
    cursor = Cursor(folded, tokens, into.definitions.types)
    try:
        _read_declared(StatementParts(cursor, into))
    except StatementError as failure:
        into.messages.append(failure.message)
        return
    into.warnings += cursor.ignored.warnings(cursor.source)


def _read_declared(parts: StatementParts) -> None:
    cursor = parts.cursor
    if cursor.at("set") and cursor.peek(1).startswith(RESERVED_PREFIX):
        cursor.ignored.note("SET", parts.head_span(2))
        return
    for words, message in REFUSALS:
        if cursor.at(*words):
            raise cursor.failure_at(parts.head_span(len(words)), message, NOT_SUPPORTED)
    if cursor.at("create", "recursive", "view"):
        raise cursor.failure_at(
            parts.head_span(3),
            "A recursive view is declared first, DECLARE RECURSIVE VIEW name(columns), then created: CREATE VIEW",
        )
    if cursor.take("declare", "recursive", "view"):
        parts.into.declarations.append(read_declaration(parts))
        return
    if cursor.take("lateness"):
        parts.into.lateness.append(_read_lateness(parts))
        return
    if cursor.take("create", "index"):
        parts.into.indexes.append(_read_index(parts))
        return
    if not cursor.take("create"):
        raise cursor.failure("Expected CREATE TABLE, VIEW, INDEX, TYPE or FUNCTION")
    take_head(cursor, "or", "replace")
    take_head(cursor, "external")
    if cursor.take("table"):
        take_head(cursor, "if", "not", "exists")
        parts.into.tables.append(read_table(parts))
        return
    kind = _take_kind(cursor)
    if not cursor.take("view"):
        raise cursor.failure("Expected TABLE, VIEW, LOCAL VIEW, MATERIALIZED VIEW, INDEX, TYPE or FUNCTION after CREATE")
    take_head(cursor, "if", "not", "exists")
    parts.into.views.append(read_view(parts, kind))


def _take_kind(cursor: Cursor) -> ViewKind:
    """Read the words before VIEW. A temporary view is LOCAL: in Spark it exists only for the queries of its session."""
    take_head(cursor, "global")
    if cursor.take("temporary") or cursor.take("temp") or cursor.take("local"):
        return ViewKind.LOCAL
    return ViewKind.MATERIALIZED if cursor.take("materialized") else ViewKind.PLAIN


def _read_index(parts: StatementParts) -> IndexDeclaration:
    cursor = parts.cursor
    name = cursor.name("the index's name")
    cursor.expect("on")
    index = IndexDeclaration(name, cursor.name("a view's name"), tuple(parts.names("a column's name")))
    if cursor.current is not None:
        raise cursor.failure("Expected the end of the statement")
    return index


def _read_lateness(parts: StatementParts) -> tuple[Name, Lateness]:
    cursor = parts.cursor
    view = cursor.name("a view's name")
    cursor.expect(".")
    column = cursor.name("a column's name")
    bound = parts.expression("LATENESS")
    if cursor.current is not None:
        raise cursor.failure("Expected the end of the statement")
    return view, Lateness(column.text, bound, column.span)
