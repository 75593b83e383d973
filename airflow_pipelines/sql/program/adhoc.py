"""Ad-hoc requests: queries of relations, and inserts into and deletes from tables. Names are folded, not resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.messages import COMPILATION_ERROR, NOT_SUPPORTED, SYNTAX_ERROR, ProgramErrors
from airflow_pipelines.program.names import quote
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.prepared import PreparedStatements
from airflow_pipelines.sql.program.safety import unsafe_part
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.cursor import Cursor, StatementError
from airflow_pipelines.sql.syntax.dialect import QUERY_STARTS, SyntaxFailure, parse_tokens, tokenise
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.syntax.relation_names import references
from airflow_pipelines.sql.syntax.tokens import FoldedText, fold_text, split_statements

_DDL = frozenset({"create", "drop", "alter", "truncate", "declare", "grant", "revoke", "comment", "analyze", "refresh"})
_CHANGES = frozenset({"update", "merge", "replace", "load", "copy"})


class AdhocKind(Enum):
    """The kind of an ad-hoc statement."""

    SELECT = "select"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ExecuteStatement:
    """A prepared statement.

    :param text: the statement, with values for its parameters
    :param place: the position of EXECUTE in the request
    """

    text: str
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class AdhocStatement:
    """One statement of an ad-hoc request.

    :param query: the query to evaluate, as translated Spark SQL with folded names: the query itself, INSERT's query (VALUES
     included), or for DELETE the query for the rows to delete
    :param reads: the relations that the query names, in order; without DELETE's own table unless a subquery reads it
    :param offset: the offset in the request of the text that the query was first written as
    :param target: the table of INSERT and DELETE
    :param columns: INSERT's column list, None for all columns in order
    """

    kind: AdhocKind
    query: Edited
    reads: tuple[str, ...]
    offset: int
    target: str | None = None
    columns: tuple[str, ...] | None = None
    executed: ExecuteStatement | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the position in the request of characters ``start`` to ``end`` (exclusive) of the query as first written."""
        return self.executed.place if self.executed is not None else (self.offset + start, self.offset + end)

    def find_written(self, request: str, start: int, end: int) -> str:
        """Return the characters ``start`` to ``end`` (exclusive) of the query as first written.

        :param request: the text of the request
        :param start: the first character
        :param end: the end
        """
        text = self.executed.text if self.executed is not None else request
        return text[self.offset + start : self.offset + end]


def parse_adhoc(text: str, definitions: Definitions | None = None) -> list[AdhocStatement]:
    """Read an ad-hoc request: ``;``-separated statements of which only the last may be a query.

    A statement that EXECUTE names is returned as if it had been written in its place; PREPARE is no statement of its own.

    :param text: the request
    :param definitions: the types and functions that the request may use; None if there are none
    :raises ProgramErrors: if there are errors, with the positions of all: syntax, statements that are not allowed, an empty request
    """
    folded = fold_text(text)
    statements: list[AdhocStatement] = []
    messages = []
    prepared = PreparedStatements()
    known = definitions or Definitions()
    parts = split_statements(folded.tokens)
    for at, tokens in enumerate(parts):
        cursor = Cursor(folded, tokens, known.types)
        try:
            if cursor.at("prepare"):
                prepared.prepare(cursor)
                continue
            statement = _execute(cursor, prepared, known) if cursor.at("execute") else _read(cursor, known)
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


def _execute(cursor: Cursor, prepared: PreparedStatements, definitions: Definitions) -> AdhocStatement:
    text = prepared.read_execute(cursor)
    first, last = cursor.tokens[0].start, cursor.tokens[-1].end + 1
    folded = fold_text(text)
    try:
        statement = _read(Cursor(folded, folded.tokens, definitions.types), definitions)
    except StatementError as failure:
        raise cursor.failure_at(cursor.span(first, last), failure.message.message, failure.message.error_type) from failure
    return replace(statement, executed=ExecuteStatement(text, (first, last)))


def _read(cursor: Cursor, definitions: Definitions) -> AdhocStatement:
    word = cursor.peek()
    if word == "insert":
        return _read_insert(cursor, definitions)
    if word == "delete":
        return _read_delete(cursor, definitions)
    if word in _DDL:
        message = "Ad-hoc requests cannot create or change tables and views: change the pipeline's program instead"
        raise cursor.failure(message, COMPILATION_ERROR)
    if word in _CHANGES:
        message = f"{word.upper()} is not allowed in an ad-hoc request: only SELECT, INSERT and DELETE are"
        raise cursor.failure(message, COMPILATION_ERROR)
    if word not in QUERY_STARTS:
        raise cursor.failure("Expected SELECT, INSERT, DELETE, PREPARE or EXECUTE")
    part = _parse(cursor, cursor.tokens, definitions)
    if not isinstance(part.tree, exp.Query):
        raise cursor.failure("Expected SELECT, INSERT, DELETE, PREPARE or EXECUTE")
    return AdhocStatement(AdhocKind.SELECT, part.edits, _reads(cursor, part), part.offset)


def _read_insert(cursor: Cursor, definitions: Definitions) -> AdhocStatement:
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
    part = _parse(cursor, tokens, definitions)
    if not isinstance(part.tree, exp.Query):
        raise cursor.failure("Expected VALUES or a query")
    return AdhocStatement(AdhocKind.INSERT, part.edits, _reads(cursor, part), part.offset, target, columns)


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


def _read_delete(cursor: Cursor, definitions: Definitions) -> AdhocStatement:
    cursor.expect("delete", "from")
    target = _target(cursor)
    whole, rows = _text(cursor.folded, cursor.tokens), f"SELECT * FROM {quote(target)}"
    start = cursor.tokens[0].start
    if cursor.current is None:
        return AdhocStatement(AdhocKind.DELETE, Edited(whole).edit([Edit(0, len(whole), rows)]), (), start, target)
    cursor.expect("where")
    tokens = cursor.tokens[cursor.index :]
    if not tokens:
        raise cursor.failure("Expected a condition after WHERE")
    part = _parse(cursor, tokens, definitions)
    if isinstance(part.tree, (exp.Query, exp.DDL, exp.Command)):
        raise cursor.failure("Expected a condition after WHERE")
    around = [Edit(0, part.offset - start, f"{rows} WHERE ("), Edit(len(whole), len(whole), ")")]
    query = translate(Edited(whole).edit(around), definitions)
    return AdhocStatement(AdhocKind.DELETE, query, _reads(cursor, part), start, target)


def _target(cursor: Cursor) -> str:
    name = cursor.name("a table's name")
    if cursor.at("."):
        raise cursor.failure("The name of a table has one part", COMPILATION_ERROR)
    return name.text


@dataclass(frozen=True, slots=True)
class _Part:
    """A query or condition: its tree, its text as Spark is to read it, and its offset in the request."""

    tree: exp.Expr
    edits: Edited
    offset: int

    def span(self, cursor: Cursor, start: int, end: int) -> Span:
        """Return the position in the request of a piece of the text."""
        first, last = self.edits.origin(start, end)
        return cursor.span(self.offset + first, self.offset + last)


def _reads(cursor: Cursor, part: _Part) -> tuple[str, ...]:
    unsafe = unsafe_part(part.tree, part.edits.text)
    if unsafe is not None:
        raise cursor.failure_at(part.span(cursor, unsafe.start, unsafe.end), unsafe.message, COMPILATION_ERROR)
    return tuple(dict.fromkeys(reference.name for reference in references(part.tree)))


def _parse(cursor: Cursor, tokens: Sequence[Token], definitions: Definitions) -> _Part:
    offset = tokens[0].start
    try:
        edits = translate(Edited(_text(cursor.folded, tokens)), definitions)
    except CallRefused as refused:
        span = cursor.span(offset + refused.start, offset + refused.end)
        raise cursor.failure_at(span, refused.message, COMPILATION_ERROR) from refused
    try:
        return _Part(parse_tokens(tokenise(edits.text), edits.text), edits, offset)
    except SyntaxFailure as failure:
        start, end = edits.origin(failure.start, failure.end)
        raise cursor.failure_at(cursor.span(offset + start, offset + end), failure.message) from failure
    except RecursionError as failure:
        raise cursor.failure("This statement nests too deep") from failure


def _text(folded: FoldedText, tokens: Sequence[Token]) -> str:
    return folded.text[tokens[0].start : tokens[-1].end + 1]
