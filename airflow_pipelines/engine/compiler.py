"""Program text -> everything that running it needs: schemas, plans, the REST description and the fingerprints."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from airflow_pipelines.engine.analysis import AUTOMATIC, Analysis, Analyzed, QueryRefused
from airflow_pipelines.engine.analyzer import SparkAnalyzer
from airflow_pipelines.engine.schema import RelationSchema, column_from_spark_json
from airflow_pipelines.engine.sessions import SparkSessions
from airflow_pipelines.sql.compare import Fingerprints, fingerprint
from airflow_pipelines.sql.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.errors import COMPILATION_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.sql.identifiers import INTERNAL_PREFIX, display
from airflow_pipelines.sql.info import program_info
from airflow_pipelines.sql.parser import parse_program
from airflow_pipelines.sql.plan.averages import keep_decimal_scale
from airflow_pipelines.sql.plan.nodes import ColumnTypes, ViewPlan
from airflow_pipelines.sql.plan.planner import plan_view
from airflow_pipelines.sql.program import Column, Connector, Program, Span, Table, View, ViewKind
from airflow_pipelines.sql.safety import unsafe_part, unsteady_parts
from airflow_pipelines.sql.source import Source

ConnectorCheck = Callable[[Connector, RelationSchema], None]
"""Raises ValueError when a connector's declaration is wrong, with a message for the user that names the connector.

Where the error has an attribute ``word``, that is the string of the declaration that is wrong."""


@dataclass(frozen=True)
class CompiledProgram:
    """A program that can run.

    ``schemas``: of all tables and views, by canonical name. ``view_columns``: the views' columns. ``plans``: how each view is
    maintained. ``info``: the ``program_info`` of the REST contract. ``fingerprints``: for comparing programs.
    """

    program: Program
    schemas: Mapping[str, RelationSchema]
    view_columns: Mapping[str, tuple[Column, ...]]
    plans: Mapping[str, ViewPlan]
    info: Mapping[str, Any]
    fingerprints: Fingerprints


def compile_program(text: str, sessions: SparkSessions, check_connector: ConnectorCheck | None = None) -> CompiledProgram:
    """Compile a program. Runs no Spark job and may be called from several threads at once.

    :param text: the program's SQL
    :param sessions: any sessions of the application whose analyzer is asked
    :param check_connector: called for each declared connector with its relation's schema
    :raises ProgramErrors: with all errors found and their places; when the text itself cannot be read, only those of the text
    """
    known = _recent.get(text)
    if known is not None:
        messages = _connector_messages(known.program, known.schemas, check_connector)
        if messages:
            raise ProgramErrors(messages)
        return known
    program = parse_program(text)
    compiler = _Compiler(program, SparkAnalyzer(sessions.small))
    for table in program.tables.values():
        compiler.add_table(table)
    for view in program.views.values():
        compiler.add_view(view)
    messages = [*compiler.messages, *_connector_messages(program, compiler.schemas, check_connector)]
    if messages:
        raise ProgramErrors(messages)
    view_columns = {name: compiler.schemas[name].columns for name in program.views}
    compiled = CompiledProgram(
        program=program,
        schemas=compiler.schemas,
        view_columns=view_columns,
        plans=compiler.plans,
        info=program_info(program, view_columns),
        fingerprints=fingerprint(program, view_columns),
    )
    _recent.put(text, compiled)
    return compiled


class _RecentPrograms:
    """Programs compiled lately, by their text: a host compiles most texts twice, to check them and to run them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._programs: OrderedDict[str, CompiledProgram] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str) -> CompiledProgram | None:
        with self._lock:
            if text in self._programs:
                self._programs.move_to_end(text)
            return self._programs.get(text)

    def put(self, text: str, compiled: CompiledProgram) -> None:
        with self._lock:
            self._programs[text] = compiled
            while len(self._programs) > self._size:
                self._programs.popitem(last=False)


_recent = _RecentPrograms(64)


def _connector_messages(
    program: Program, schemas: Mapping[str, RelationSchema], check: ConnectorCheck | None
) -> list[ProgramMessage]:
    source, messages = Source(program.text), []
    for connector in program.connectors() if check is not None else ():
        schema = schemas.get(connector.relation)
        # Without a schema the relation itself is wrong, which is said already.
        if check is not None and schema is not None:
            try:
                check(connector, schema)
            except ValueError as failure:
                text = str(failure)
                span = _place_of(source, connector.span, getattr(failure, "word", None))
                messages.append(_message(source, span, text[:1].upper() + text[1:]))
    return messages


def _place_of(source: Source, span: Span | None, word: str | None) -> Span | None:
    """The place of a JSON string within a declaration; the whole declaration when it is not there, or more than once."""
    if span is None or word is None:
        return span
    written, declaration = json.dumps(word, ensure_ascii=False), source.slice(span)
    if declaration.count(written) != 1:
        return span
    start = source.offset(span.start_line, span.start_column) + declaration.index(written)
    return source.span(start, start + len(written))


def _message(source: Source, span: Span | None, message: str) -> ProgramMessage:
    if span is None:
        return ProgramMessage(None, COMPILATION_ERROR, message)
    return source.message(span, COMPILATION_ERROR, message)


class _Compiler:
    """Adds relation by relation; notes what is wrong and goes on with the rest."""

    def __init__(self, program: Program, analyzer: SparkAnalyzer) -> None:
        self._program = program
        self._source = Source(program.text)
        self._analyzer = analyzer
        self._analysis = Analysis(analyzer.session)
        self._types: dict[str, ColumnTypes] = {}
        self._declared: set[str] = set()
        self.schemas: dict[str, RelationSchema] = {}
        self.plans: dict[str, ViewPlan] = {}
        self.messages: list[ProgramMessage] = []

    def add_table(self, table: Table) -> None:
        self._add_schema(RelationSchema(table.name, table.columns))
        defaults = [column for column in table.columns if column.default is not None]
        if defaults:
            self._check_defaults(defaults)

    def add_view(self, view: View) -> None:
        if any(read not in self.schemas for read in view.reads):
            # What it reads is wrong already; errors that only follow from that would hide the cause.
            return
        try:
            tree = parse_query(view.query)
        except SyntaxFailure as failure:
            self._note_in(view, failure.start, failure.end, failure.message)
            return
        unsafe = unsafe_part(tree, view.query)
        if unsafe is not None:
            self._note_in(view, unsafe.start, unsafe.end, unsafe.message)
            return
        unsteady = list(unsteady_parts(tree, view.query))
        for part in unsteady:
            self._note_in(view, part.start, part.end, part.message)
        for read in view.reads:
            if read not in self._declared:
                self._declared.add(read)
                self._analysis.declare(self.schemas[read])
        query = view.query
        try:
            analyzed = self._analysis.analyze(query)
        except QueryRefused as refused:
            self._note_in(view, refused.start, refused.end, refused.message)
            return
        if not analyzed.deterministic and not unsteady:
            self._note(view.span, f"The query of {display(view.name)} gives another answer each time, so it cannot be maintained")
        # The places of errors are those of the text as written, so that it was analyzed first.
        kept = keep_decimal_scale(query, self._analyzer)
        if kept != query:
            query, analyzed = kept, self._analysis.analyze(kept)
        columns = self._view_columns(view, analyzed)
        if columns is None:
            return
        schema = RelationSchema(view.name, columns)
        self._add_schema(schema)
        if not self.messages:
            self.plans[view.name] = plan_view(
                view.name, query, self._read_types(view), self._types[view.name], view.reads, self._analyzer
            )

    def _add_schema(self, schema: RelationSchema) -> None:
        self.schemas[schema.name] = schema
        self._types[schema.name] = tuple((field.name, field.dataType.simpleString()) for field in schema.spark.fields)

    def _read_types(self, view: View) -> dict[str, ColumnTypes]:
        return {name: self._types[name] for name in view.reads}

    def _check_defaults(self, columns: list[Column]) -> None:
        casts = [f"CAST({column.default} AS {column.type.spark_ddl()})" for column in columns]
        try:
            self._analysis.analyze(f"SELECT {', '.join(casts)}")
        except QueryRefused:
            # One question for all is fast; only when the answer is no, each is asked alone.
            for column, cast in zip(columns, casts, strict=True):
                try:
                    self._analysis.analyze(f"SELECT {cast}")
                except QueryRefused as refused:
                    self._note(column.span, f"The DEFAULT of column {display(column.name)} is wrong: {refused.message}")

    def _view_columns(self, view: View, analyzed: Analyzed) -> tuple[Column, ...] | None:
        """The view's columns with the names of its column list; None when something about them is wrong."""
        names = _output_names(analyzed)
        count = len(self.messages)
        if view.column_names is not None:
            if len(view.column_names) != len(names):
                self._note(
                    view.span,
                    f"View {display(view.name)} lists {len(view.column_names)} columns and its query gives {len(names)}: "
                    f"{', '.join(map(display, names))}",
                )
                return None
            names = list(view.column_names)
        columns: list[Column] = []
        for name, field in zip(names, analyzed.fields, strict=True):
            if any(name == other.name for other in columns):
                self._note(view.span, f"View {display(view.name)} has two columns {display(name)}: name them apart with AS")
                continue
            column = self._output_column(view, name, field)
            if column is not None:
                columns.append(column)
        return tuple(columns) if len(self.messages) == count else None

    def _output_column(self, view: View, name: str, field: Mapping[str, Any]) -> Column | None:
        title = f"Column {display(name)} of view {display(view.name)}"
        if name.startswith(INTERNAL_PREFIX):
            self._note(view.span, f"{title} has a reserved name: names that start with '{INTERNAL_PREFIX}' are the engine's")
            return None
        try:
            column = column_from_spark_json({**field, "name": name})
        except ValueError as failure:
            self._note(view.span, f"{title}: {failure}")
            return None
        if "__COLLATIONS" in field.get("metadata", {}):
            # Stored rows are told apart letter by letter, and Arrow knows no collations.
            self._note(view.span, f"{title} has a collation, which views cannot keep: CAST(... AS STRING COLLATE UTF8_BINARY)")
            return None
        if column.type.name == "NULL":
            self._note(view.span, f"{title} is always NULL and has no type: write CAST(NULL AS <type>)")
            return None
        if column.type.is_interval and view.kind is not ViewKind.LOCAL:
            self._note(view.span, f"{title} is an INTERVAL, which only LOCAL views may have: convert it to a number")
            return None
        return replace(column, case_sensitive=name != name.lower())

    def _note_in(self, view: View, start: int, end: int, message: str) -> None:
        """Note an error at a place of a view's query."""
        self._note(self._source.span(view.query_offset + start, view.query_offset + end), message)

    def _note(self, span: Span | None, message: str) -> None:
        self.messages.append(_message(self._source, span, message))


def _output_names(analyzed: Analyzed) -> list[str]:
    """The columns' names; one that its query does not name is ``EXPR$<n>`` with its place from 0."""
    return [f"EXPR${at}" if AUTOMATIC in field.get("metadata", {}) else field["name"] for at, field in enumerate(analyzed.fields)]
