"""Parses the statements of a program: tables, views and declarations of views. Refuses everything else with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.messages import COMPILATION_ERROR, NOT_SUPPORTED, SYNTAX_ERROR, ProgramMessage
from airflow_pipelines.program.names import INTERNAL_PREFIX, RESERVED_PREFIX, SYSTEM_VIEW, display
from airflow_pipelines.program.places import Span
from airflow_pipelines.program.relations import Column, Table, ViewKind
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.streams import is_hidden
from airflow_pipelines.sql.program.declarations import IndexDeclaration, Lateness, PropertyText, ViewDeclaration
from airflow_pipelines.sql.program.safety import unsafe_part
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.column_types import parse_type
from airflow_pipelines.sql.syntax.connectors import PropertyString, parse_connectors
from airflow_pipelines.sql.syntax.cursor import Cursor, Name, StatementError
from airflow_pipelines.sql.syntax.dialect import QUERY_STARTS, SyntaxFailure, parse_tokens, tokenise
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import literal_hint
from airflow_pipelines.sql.syntax.refused_statements import REFUSALS
from airflow_pipelines.sql.syntax.storage_clauses import take_clause, take_collation, take_comment, take_head, take_key_hints
from airflow_pipelines.sql.syntax.tokens import FoldedText

TABLE_PROPERTIES = frozenset({"append_only", "connectors", "expected_size", "materialized", "skip_unused_columns"})
"""Properties a table may have."""
VIEW_PROPERTIES = frozenset({"connectors", "emit_final", "expected_size"})
"""Properties a view may have."""
_BOOLEAN_PROPERTIES = frozenset({"append_only", "materialized", "skip_unused_columns"})
_COLUMN_STOPS = frozenset(
    {
        "collate",
        "comment",
        "default",
        "lateness",
        "watermark",
        "primary key",
        "foreign key",
        "references",
        "unique",
        "check",
        "constraint",
        "generated",
    }
)
_COLUMN_CONSTRAINTS = frozenset({"primary key", "foreign key", "references", "not", "null"})
_UNKEYABLE = frozenset({"MAP", "VARIANT"})


@dataclass(slots=True)
class ParsedView:
    """A view and the tree of its query; names in the tree carry their offsets in :attr:`ViewDeclaration.query`."""

    view: ViewDeclaration
    tree: exp.Query


@dataclass(frozen=True, slots=True)
class Declaration:
    """``DECLARE RECURSIVE VIEW``: the canonical name, the columns, and the place of the name."""

    name: str
    columns: tuple[Column, ...]
    span: Span


@dataclass(slots=True)
class Statements:
    """What the statements of a program declare, before names are resolved, and all errors found."""

    tables: list[Table] = field(default_factory=list)
    table_properties: dict[str, Mapping[str, PropertyText]] = field(default_factory=dict)
    """The properties in the WITH clause of each table."""
    views: list[ParsedView] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    attempted: set[str] = field(default_factory=set)
    """The names of all CREATE VIEW statements, also of those that could not be read."""
    indexes: list[IndexDeclaration] = field(default_factory=list)
    lateness: list[tuple[Name, Lateness]] = field(default_factory=list)
    """LATENESS statements: the view's name and what they say about its column."""
    messages: list[ProgramMessage] = field(default_factory=list)
    warnings: list[ProgramMessage] = field(default_factory=list)
    definitions: Definitions = field(default_factory=Definitions)
    """The program's own types and functions, all of which are read before any other statement."""
    names: set[str] = field(default_factory=set)
    """Every declared name, also of statements that could not be read, so that reading it is not reported as another error."""


def parse_statement(folded: FoldedText, tokens: list[Token], into: Statements) -> None:
    """Read one statement and add what it declares, or its errors, to ``into``.

    :param folded: the program's text
    :param tokens: the statement's tokens
    :param into: gets the declaration
    """
    cursor = Cursor(folded, tokens, into.definitions.types)
    try:
        _StatementReader(cursor, into).read()
    except StatementError as failure:
        into.messages.append(failure.message)


class _StatementReader:
    """Reads one statement; errors that leave the rest readable are noted, others raised."""

    def __init__(self, cursor: Cursor, into: Statements) -> None:
        self._cursor = cursor
        self._into = into

    def read(self) -> None:
        """Read the statement, with a warning for each clause of it that has no effect."""
        self._read_statement()
        self._into.warnings += self._cursor.ignored.warnings(self._cursor.source)

    def _read_statement(self) -> None:
        cursor = self._cursor
        if cursor.at("set") and cursor.peek(1).startswith(RESERVED_PREFIX):
            cursor.ignored.note("SET", self._head_span(2))
            return
        for words, message in REFUSALS:
            if cursor.at(*words):
                raise cursor.failure_at(self._head_span(len(words)), message, NOT_SUPPORTED)
        if cursor.at("create", "recursive", "view"):
            raise cursor.failure_at(
                self._head_span(3),
                "A recursive view is declared first, DECLARE RECURSIVE VIEW name(columns), then created: CREATE VIEW",
            )
        if cursor.take("declare", "recursive", "view"):
            self._into.declarations.append(self._read_declaration())
            return
        if cursor.take("lateness"):
            self._into.lateness.append(self._read_lateness())
            return
        if cursor.take("create", "index"):
            self._into.indexes.append(self._read_index())
            return
        if not cursor.take("create"):
            raise cursor.failure("Expected CREATE TABLE, VIEW, INDEX, TYPE or FUNCTION")
        take_head(cursor, "or", "replace")
        take_head(cursor, "external")
        if cursor.take("table"):
            take_head(cursor, "if", "not", "exists")
            self._into.tables.append(self._read_table())
            return
        kind = self._read_kind()
        if not cursor.take("view"):
            raise cursor.failure("Expected TABLE, VIEW, LOCAL VIEW, MATERIALIZED VIEW, INDEX, TYPE or FUNCTION after CREATE")
        take_head(cursor, "if", "not", "exists")
        self._into.views.append(self._read_view(kind))

    def _read_kind(self) -> ViewKind:
        """What stands before VIEW; a temporary view of Spark's is only there for the queries of its session, as a LOCAL one."""
        cursor = self._cursor
        take_head(cursor, "global")
        if cursor.take("temporary") or cursor.take("temp") or cursor.take("local"):
            return ViewKind.LOCAL
        return ViewKind.MATERIALIZED if cursor.take("materialized") else ViewKind.PLAIN

    def _read_index(self) -> IndexDeclaration:
        cursor = self._cursor
        name = cursor.name("the index's name")
        cursor.expect("on")
        index = IndexDeclaration(name, cursor.name("a view's name"), tuple(self._read_names("a column's name")))
        if cursor.current is not None:
            raise cursor.failure("Expected the end of the statement")
        return index

    def _read_lateness(self) -> tuple[Name, Lateness]:
        cursor = self._cursor
        view = cursor.name("a view's name")
        cursor.expect(".")
        column = cursor.name("a column's name")
        bound = self._read_expression("LATENESS")
        if cursor.current is not None:
            raise cursor.failure("Expected the end of the statement")
        return view, Lateness(column.text, bound, column.span)

    def _head_span(self, words: int) -> Span:
        tokens = self._cursor.tokens
        return self._cursor.span(tokens[0].start, tokens[words - 1].end + 1)

    def _note(self, span: Span, message: str) -> None:
        self._into.messages.append(self._cursor.source.message(span, COMPILATION_ERROR, message))

    def _relation_name(self) -> Name:
        cursor = self._cursor
        name = cursor.name("a name")
        self._into.names.add(name.text)
        if cursor.at("."):
            raise cursor.failure("The name of a table or view has one part", COMPILATION_ERROR)
        if name.text.lower().startswith(RESERVED_PREFIX):
            self._note(
                name.span,
                f"The name {display(name.text)} is reserved: names that start with '{RESERVED_PREFIX}' belong to the system",
            )
        elif name.text == SYSTEM_VIEW:
            self._note(name.span, f"The name {name.text} is reserved: every program has a system view of that name")
        elif is_hidden(name.text):
            self._note(name.span, f"The name {display(name.text)} is reserved: it belongs to stream programs")
        return name

    # Tables

    def _read_table(self) -> Table:
        cursor = self._cursor
        name = self._relation_name()
        self._refuse_query_of_table()
        cursor.expect("(")
        columns: dict[str, Column] = {}
        keys: list[tuple[Span, list[Name]]] = []
        while True:
            if not self._read_table_constraint(keys):
                column, key = self._read_column()
                self._add_column(columns, column, name)
                if key is not None:
                    keys.append((key, [Name(column.name, column.case_sensitive, key)]))
            if not cursor.take(","):
                break
        cursor.expect(")")
        properties, connectors = self._read_clauses(
            name, ConnectorDirection.INPUT, lambda column: self._add_column(columns, column, name)
        )
        if not columns:
            self._note(name.span, f"Table {display(name.text)} has no columns")
        primary_key = self._resolve_key(columns, keys, name)
        self._refuse_query_of_table()
        if cursor.current is not None:
            raise cursor.failure("Expected the end of the statement")
        self._into.table_properties[name.text] = properties
        bounded = any(columns[column].lateness for column in primary_key or ())
        return Table(
            name.text,
            tuple(columns.values()),
            name.quoted,
            primary_key,
            # A key finds any row, unless it is forgotten some day.
            materialized=_is_set(properties, "materialized") or (primary_key is not None and not bounded),
            append_only=_is_set(properties, "append_only"),
            skip_unused_columns=_is_set(properties, "skip_unused_columns"),
            connectors=tuple(connectors),
            span=name.span,
        )

    def _refuse_query_of_table(self) -> None:
        if self._cursor.peek() in {"as", "like"}:
            raise self._cursor.failure(
                "A table is filled by connectors and requests; for the rows of a query write CREATE MATERIALIZED VIEW name AS",
                COMPILATION_ERROR,
            )

    def _add_column(self, columns: dict[str, Column], column: Column, table: Name) -> None:
        span = column.span
        if span is None:
            raise AssertionError("a parsed column has a place")
        other = columns.get(column.name)
        if other is not None and other.span is not None:
            self._note(
                span,
                f"Column {display(column.name)} of {display(table.text)} is declared twice: {twice(other.span, span)}",
            )
            return
        if column.name.startswith(INTERNAL_PREFIX):
            self._note(
                span,
                f"The column name {display(column.name)} is reserved: names that start with '{INTERNAL_PREFIX}' are the engine's",
            )
        columns[column.name] = column

    def _read_table_constraint(self, keys: list[tuple[Span, list[Name]]]) -> bool:
        cursor = self._cursor
        start = cursor.index
        if cursor.at("constraint") and cursor.peek(2) in {"primary key", "foreign key", "unique", "check"}:
            cursor.index += 2
        if cursor.at("primary key", "("):
            first = cursor.tokens[cursor.index]
            cursor.index += 1
            names = self._read_names("a column's name")
            keys.append((cursor.span(first.start, cursor.tokens[cursor.index - 1].end + 1), names))
            take_key_hints(cursor)
            return True
        if cursor.at("foreign key", "("):
            cursor.index += 1
            cursor.skip_parenthesis()
            self._skip_references()
            return True
        if cursor.peek() in {"unique", "check"} and cursor.peek(1) == "(":
            advice = "leave it out, and let a view show the rows that break it"
            raise cursor.failure(f"{cursor.peek().upper()} constraints are not supported yet: {advice}", NOT_SUPPORTED)
        cursor.index = start
        return False

    def _skip_references(self) -> None:
        cursor = self._cursor
        cursor.expect("references")
        cursor.name("a table's name")
        if cursor.at("("):
            cursor.skip_parenthesis()
        take_key_hints(cursor)

    def _read_names(self, what: str) -> list[Name]:
        cursor = self._cursor
        cursor.expect("(")
        names = [cursor.name(what)]
        while cursor.take(","):
            names.append(cursor.name(what))
        cursor.expect(")")
        return names

    def _read_column(self) -> tuple[Column, Span | None]:
        cursor = self._cursor
        name = cursor.name("a column's name")
        column = Column(name.text, parse_type(cursor), name.quoted, span=name.span)
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
                column = replace(column, default=self._read_expression("DEFAULT"))
            elif cursor.take("lateness"):
                column = replace(column, lateness=self._read_expression("LATENESS"))
            elif cursor.at("watermark"):
                raise cursor.failure("WATERMARK is not supported yet: LATENESS bounds how late rows may be", NOT_SUPPORTED)
            elif cursor.at("references") or cursor.take("foreign key"):
                self._skip_references()
            elif cursor.at("generated"):
                raise cursor.failure(
                    "A table holds what comes in: compute the column in a view, or give it a DEFAULT", NOT_SUPPORTED
                )
            elif not (take_comment(cursor) or take_collation(cursor)):
                raise cursor.failure("Expected NOT NULL, DEFAULT, PRIMARY KEY, LATENESS, ',' or ')'")
        return column, key

    def _read_expression(self, what: str) -> str:
        cursor = self._cursor
        end = cursor.expression_end(_COLUMN_STOPS)
        tokens = cursor.tokens[cursor.index : end]
        if not tokens:
            raise cursor.failure(f"Expected an expression after {what}")
        edits = self._translated(tokens[0].start, tokens[-1].end + 1)
        tree = self._parse(edits, tokens[0].start)
        if tree.find(exp.Query) is not None:
            span = cursor.span(tokens[0].start, tokens[-1].end + 1)
            raise cursor.failure_at(span, f"{what} is one expression of constants and cannot have a query", COMPILATION_ERROR)
        if isinstance(tree, (exp.DDL, exp.Command)):
            raise cursor.failure(f"Expected an expression after {what}")
        unsafe = unsafe_part(tree, edits.text)
        if unsafe is not None:
            first, last = (tokens[0].start + place for place in edits.origin(unsafe.start, unsafe.end))
            raise cursor.failure_at(cursor.span(first, last), unsafe.message, COMPILATION_ERROR)
        cursor.index = end
        return edits.text

    def _resolve_key(self, columns: dict[str, Column], keys: list[tuple[Span, list[Name]]], table: Name) -> tuple[str, ...] | None:
        if not keys:
            return None
        for span, _ in keys[1:]:
            self._note(
                span,
                f"Table {display(table.text)} has two primary keys: {twice(keys[0][0], span)}; "
                "a key of several columns is written PRIMARY KEY (a, b)",
            )
        names: list[str] = []
        for name in keys[0][1]:
            column = columns.get(name.text)
            if column is None:
                self._note(
                    name.span,
                    f"The primary key names the column {display(name.text)}, which table {display(table.text)} does not have",
                )
            elif name.text in names:
                self._note(name.span, f"The primary key names the column {display(name.text)} twice")
            elif column.type.name in _UNKEYABLE:
                self._note(name.span, f"A {column.type.name} cannot be part of a primary key")
            else:
                columns[name.text] = replace(column, type=column.type.with_nullable(False))
                names.append(name.text)
        return tuple(names)

    # Views

    def _read_declaration(self) -> Declaration:
        cursor = self._cursor
        name = self._relation_name()
        cursor.expect("(")
        columns: dict[str, Column] = {}
        while True:
            column, key = self._read_column()
            if key is not None or column.default is not None or column.lateness is not None:
                span = column.span or name.span
                self._note(
                    span, f"Column {display(column.name)} of view {display(name.text)} may have a type and NOT NULL, nothing else"
                )
            self._add_column(columns, column, name)
            if not cursor.take(","):
                break
        cursor.expect(")")
        if cursor.current is not None:
            raise cursor.failure("Expected the end of the statement; the query follows in CREATE VIEW")
        return Declaration(name.text, tuple(columns.values()), name.span)

    def _read_view(self, kind: ViewKind) -> ParsedView:
        cursor = self._cursor
        name = self._relation_name()
        self._into.attempted.add(name.text)
        column_names = self._read_column_names(name) if cursor.at("(") else None
        properties, connectors = self._read_clauses(name, ConnectorDirection.OUTPUT)
        if kind is ViewKind.LOCAL and connectors and connectors[0].span is not None:
            self._note(connectors[0].span, f"View {display(name.text)} is LOCAL, so it cannot have output connectors")
        if not cursor.take("as"):
            advice = "; rows that are kept elsewhere come through the connector of a table" if cursor.at("using") else ""
            raise cursor.failure(f"Expected AS and the view's query{advice}")
        tokens = cursor.tokens[cursor.index :]
        if not tokens or cursor.peek() not in QUERY_STARTS:
            raise cursor.failure("Expected a query after AS")
        start, end = tokens[0].start, tokens[-1].end + 1
        edits = self._translated(start, end)
        tree = self._parse(edits, start)
        if not isinstance(tree, exp.Query):
            raise cursor.failure("Expected a query after AS")
        view = ViewDeclaration(
            name.text, kind, edits.text, start, (), name.quoted, column_names, properties, tuple(connectors), name.span, edits=edits
        )
        return ParsedView(view, tree)

    def _read_column_names(self, view: Name) -> tuple[str, ...]:
        cursor = self._cursor
        seen: dict[str, Span] = {}
        cursor.expect("(")
        while True:
            name = cursor.name("a column's name")
            take_comment(cursor)
            first = seen.get(name.text)
            if first is not None:
                self._note(
                    name.span,
                    f"Column {display(name.text)} of view {display(view.text)} is declared twice: {twice(first, name.span)}",
                )
            seen.setdefault(name.text, name.span)
            if not cursor.take(","):
                break
        cursor.expect(")")
        return tuple(seen)

    def _translated(self, start: int, end: int) -> Edited:
        """A query or expression of the program as Spark is to read it."""
        cursor = self._cursor
        try:
            return translate(Edited(cursor.folded.text[start:end]), self._into.definitions)
        except CallRefused as refused:
            span = cursor.span(start + refused.start, start + refused.end)
            raise cursor.failure_at(span, refused.message, COMPILATION_ERROR) from refused

    def _parse(self, edits: Edited, offset: int) -> exp.Expr:
        cursor = self._cursor
        try:
            return parse_tokens(tokenise(edits.text), edits.text)
        except SyntaxFailure as failure:
            start, end = edits.origin(failure.start, failure.end)
            span = cursor.span(offset + start, offset + end)
            hint = literal_hint(cursor.source.text[offset : offset + start])
            raise cursor.failure_at(span, failure.message + hint, SYNTAX_ERROR) from failure
        except RecursionError as failure:
            raise cursor.failure_at(cursor.span(offset, offset + 1), "This expression nests too deep", SYNTAX_ERROR) from failure

    # Clauses behind the columns

    def _read_clauses(
        self, relation: Name, direction: ConnectorDirection, add_column: Callable[[Column], None] | None = None
    ) -> tuple[dict[str, PropertyText], list[Connector]]:
        """The clauses after a relation's columns, in any order: its properties, and clauses of Spark that have no effect.

        :param add_column: takes the columns that PARTITIONED BY declares; None where it may only name columns
        """
        cursor = self._cursor
        properties: dict[str, PropertyText] = {}
        connectors: list[Connector] = []
        while True:
            if cursor.at("with", "("):
                if properties:
                    raise cursor.failure("All properties stand in one WITH (...)", COMPILATION_ERROR)
                properties, connectors = self._read_properties(relation, direction)
            elif add_column is not None and cursor.at("partitioned by", "("):
                self._read_partitioning(add_column)
            elif (add_column is None and cursor.at("using")) or not take_clause(cursor):
                return properties, connectors

    def _read_partitioning(self, add_column: Callable[[Column], None]) -> None:
        """PARTITIONED BY of a table: what it names has no effect, but a column with its type is declared here, as in Hive."""
        cursor = self._cursor
        start = cursor.index
        cursor.expect("partitioned by", "(")
        while True:
            if cursor.peek(1) in {",", ")"}:
                cursor.name("a column's name")
            elif cursor.peek(1) == "(":
                cursor.name("a transform's name")
                cursor.skip_parenthesis()
            else:
                add_column(self._read_column()[0])
            if not cursor.take(","):
                break
        cursor.expect(")")
        cursor.ignored.note("PARTITIONED BY", cursor.span(cursor.tokens[start].start, cursor.tokens[cursor.index - 1].end + 1))

    # Properties

    def _read_properties(self, relation: Name, direction: ConnectorDirection) -> tuple[dict[str, PropertyText], list[Connector]]:
        cursor = self._cursor
        properties: dict[str, PropertyText] = {}
        connectors: list[Connector] = []
        cursor.expect("with", "(")
        while True:
            key = cursor.string("a property's name")
            cursor.expect("=")
            value = cursor.string("a property's value")
            key_span, value_span = cursor.span(key.start, key.end + 1), cursor.span(value.start, value.end + 1)
            if key.text in properties:
                first = properties[key.text].key_span
                self._note(
                    key_span,
                    f"Property '{key.text}' of {display(relation.text)} is given twice: {twice(first, key_span)}",
                )
            else:
                text = PropertyString(cursor, value).text
                properties[key.text] = PropertyText(text, key_span, value_span)
                self._check_property(key.text, text, key_span, value_span, direction)
                if key.text == "connectors":
                    connectors, messages = parse_connectors(cursor, value, relation.text, direction)
                    self._into.messages.extend(messages)
            if not cursor.take(","):
                break
        cursor.expect(")")
        return properties, connectors

    def _check_property(self, key: str, value: str, key_span: Span, value_span: Span, direction: ConnectorDirection) -> None:
        known = TABLE_PROPERTIES if direction is ConnectorDirection.INPUT else VIEW_PROPERTIES
        if key not in known:
            self._note(key_span, f"Unknown property '{key}'. Known properties: {', '.join(sorted(known))}")
        elif key in _BOOLEAN_PROPERTIES and value.strip().lower() not in {"true", "false"}:
            self._note(value_span, f"Property '{key}' must be 'true' or 'false', not '{value}'")


def _is_set(properties: Mapping[str, PropertyText], key: str) -> bool:
    return key in properties and properties[key].value.strip().lower() == "true"
