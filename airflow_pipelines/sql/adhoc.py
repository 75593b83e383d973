"""Ad-hoc requests: queries of relations, and inserts into and deletes from tables. Names are folded, nothing is resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_pipelines.sql.cursor import Cursor, StatementError
from airflow_pipelines.sql.dialect import QUERY_STARTS, SyntaxFailure, parse_tokens
from airflow_pipelines.sql.errors import COMPILATION_ERROR, NOT_SUPPORTED, SYNTAX_ERROR, ProgramErrors
from airflow_pipelines.sql.references import references
from airflow_pipelines.sql.safety import unsafe_part
from airflow_pipelines.sql.source import twice
from airflow_pipelines.sql.tokens import FoldedText, fold_text, split_statements

_DDL = frozenset({"create", "drop", "alter", "truncate", "declare", "grant", "revoke", "comment", "analyze", "refresh"})
_CHANGES = frozenset({"update", "merge", "replace", "load", "copy"})


class AdhocKind(Enum):
    """What an ad-hoc statement does."""

    SELECT = "select"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class AdhocStatement:
    """One statement of an ad-hoc request; all texts are Spark SQL with folded names.

    ``sql``: the whole statement. ``reads``: the relations that its queries name, in order; without DELETE's own table unless a
    subquery reads it. ``target``: the table of INSERT and DELETE. ``columns``: INSERT's column list, None for all columns in order.
    ``source``: INSERT's query (VALUES included). ``where``: DELETE's condition, None for all rows. ``offset``: where ``sql``
    starts in the request.
    """

    kind: AdhocKind
    sql: str
    reads: tuple[str, ...]
    target: str | None = None
    columns: tuple[str, ...] | None = None
    source: str | None = None
    where: str | None = None
    offset: int = 0


def parse_adhoc(text: str) -> list[AdhocStatement]:
    """Read an ad-hoc request: ``;``-separated statements of which only the last may be a query.

    :raises ProgramErrors: with the places of all that is wrong: syntax, statements that are not allowed, an empty request
    """
    folded = fold_text(text)
    statements: list[AdhocStatement] = []
    messages = []
    parts = split_statements(folded.tokens)
    for at, tokens in enumerate(parts):
        cursor = Cursor(folded, tokens)
        try:
            statement = _read(cursor)
            if statement.kind is AdhocKind.SELECT and at < len(parts) - 1:
                cursor.index = 0
                raise cursor.failure("Only the last statement of a request may be a query", COMPILATION_ERROR)
            statements.append(statement)
        except StatementError as failure:
            messages.append(failure.message)
    if not parts:
        messages.append(folded.source.message(folded.source.span(0, 0), SYNTAX_ERROR, "The request has no statement"))
    if messages:
        raise ProgramErrors(messages)
    return statements


def _read(cursor: Cursor) -> AdhocStatement:
    word = cursor.peek()
    if word == "insert":
        return _read_insert(cursor)
    if word == "delete":
        return _read_delete(cursor)
    if word in _DDL:
        message = "Ad-hoc requests cannot create or change tables and views: change the pipeline's program instead"
        raise cursor.failure(message, COMPILATION_ERROR)
    if word in _CHANGES:
        message = f"{word.upper()} is not allowed in an ad-hoc request: only SELECT, INSERT and DELETE are"
        raise cursor.failure(message, COMPILATION_ERROR)
    if word not in QUERY_STARTS:
        raise cursor.failure("Expected SELECT, INSERT or DELETE")
    tree = _parse(cursor, cursor.tokens)
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise cursor.failure("Expected SELECT, INSERT or DELETE")
    return AdhocStatement(
        AdhocKind.SELECT, _text(cursor.folded, cursor.tokens), _reads(cursor, tree), offset=cursor.tokens[0].start
    )


def _read_insert(cursor: Cursor) -> AdhocStatement:
    cursor.expect("insert")
    if cursor.at("overwrite"):
        raise cursor.failure("INSERT OVERWRITE is not supported yet", NOT_SUPPORTED)
    cursor.expect("into")
    cursor.take("table")
    target = _target(cursor)
    columns = None
    # "(" may open the column list or a query in parentheses.
    if cursor.at("(") and cursor.peek(1) not in {"select", "with", "values", "from", "table", "("}:
        columns = _read_columns(cursor)
    tokens = cursor.tokens[cursor.index :]
    if not tokens or cursor.peek() not in QUERY_STARTS:
        raise cursor.failure("Expected VALUES or a query")
    tree = _parse(cursor, tokens)
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise cursor.failure("Expected VALUES or a query")
    sql = _text(cursor.folded, cursor.tokens)
    source = _text(cursor.folded, tokens)
    return AdhocStatement(AdhocKind.INSERT, sql, _reads(cursor, tree), target, columns, source, offset=cursor.tokens[0].start)


def _read_columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names = [cursor.name("a column's name")]
    while cursor.take(","):
        name = cursor.name("a column's name")
        first = next((other for other in names if other.text == name.text), None)
        if first is not None:
            message = f"Column {name.text} is listed twice: {twice(first.span, name.span)}"
            raise cursor.failure_at(name.span, message, COMPILATION_ERROR)
        names.append(name)
    cursor.expect(")")
    return tuple(name.text for name in names)


def _read_delete(cursor: Cursor) -> AdhocStatement:
    cursor.expect("delete", "from")
    target = _target(cursor)
    sql = _text(cursor.folded, cursor.tokens)
    start = cursor.tokens[0].start
    if cursor.current is None:
        return AdhocStatement(AdhocKind.DELETE, sql, (), target, offset=start)
    cursor.expect("where")
    tokens = cursor.tokens[cursor.index :]
    if not tokens:
        raise cursor.failure("Expected a condition after WHERE")
    tree = _parse(cursor, tokens)
    if isinstance(tree, (exp.Query, exp.DDL, exp.Command)):
        raise cursor.failure("Expected a condition after WHERE")
    where = _text(cursor.folded, tokens)
    return AdhocStatement(AdhocKind.DELETE, sql, _reads(cursor, tree), target, where=where, offset=start)


def _target(cursor: Cursor) -> str:
    name = cursor.name("a table's name")
    if cursor.at("."):
        raise cursor.failure("The name of a table has one part", COMPILATION_ERROR)
    return name.text


def _reads(cursor: Cursor, tree: exp.Expr) -> tuple[str, ...]:
    unsafe = unsafe_part(tree, cursor.folded.text)
    if unsafe is not None:
        raise cursor.failure_at(cursor.span(unsafe.start, unsafe.end), unsafe.message, COMPILATION_ERROR)
    return tuple(dict.fromkeys(reference.name for reference in references(tree)))


def _parse(cursor: Cursor, tokens: Sequence[Token]) -> exp.Expr:
    try:
        return parse_tokens(tokens, cursor.folded.text)
    except SyntaxFailure as failure:
        raise cursor.failure_at(cursor.span(failure.start, failure.end), failure.message) from failure
    except RecursionError as failure:
        raise cursor.failure("This statement nests too deep") from failure


def _text(folded: FoldedText, tokens: Sequence[Token]) -> str:
    return folded.text[tokens[0].start : tokens[-1].end + 1]
