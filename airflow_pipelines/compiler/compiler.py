"""Program text -> everything that running it needs: schemas, plans, the REST description and the fingerprints."""

from __future__ import annotations

import json
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

from airflow_pipelines.compiler.query_meaning import Understood, understood
from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.compiler.time_compiler import TimeCompiler
from airflow_pipelines.compiler.variants import analyze_variants
from airflow_pipelines.engine.functions.python_functions import check_functions, register_functions
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.schema import RelationSchema, column_from_spark_json
from airflow_pipelines.engine.spark.analysis import AUTOMATIC, Analysis, Analyzed, QueryRefused, is_unknown_name
from airflow_pipelines.engine.spark.failures import spark_complaint
from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.time.lateness import ERROR_VIEW
from airflow_pipelines.program.column_types import CALENDAR_INTERVAL, ColumnType
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.program.names import INTERNAL_PREFIX, SYSTEM_VIEW, apart, display, quote
from airflow_pipelines.program.places import Span
from airflow_pipelines.program.relations import Column, Table, View
from airflow_pipelines.program.source import Source
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.plan.properties.append_only import append_only_relations
from airflow_pipelines.sql.plan.recursion import Member, plan_query, plan_recursive_views
from airflow_pipelines.sql.program.declarations import ParsedProgram, ViewDeclaration
from airflow_pipelines.sql.program.describe import program_info
from airflow_pipelines.sql.program.fingerprint import fingerprint
from airflow_pipelines.sql.program.function_bodies import FunctionBody
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.program.provided_functions import is_provided
from airflow_pipelines.sql.program.safety import nondeterministic_parts, unsafe_part
from airflow_pipelines.sql.rewrite.casts import spark_type
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import spell_for_spark
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import string_hint

ConnectorCheck = Callable[[Connector, RelationSchema], None]
"""Raises ValueError when a connector's declaration is wrong, with a message for the user that names the connector.

Where the error has an attribute ``word``, that is the string of the declaration that is wrong."""


def compile_program(
    text: str,
    sessions: SparkSessions,
    check_connector: ConnectorCheck | None = None,
    udf_python: str = "",
    limit_s: float = math.inf,
) -> Program:
    """Compile a program. Runs no Spark job and may be called from several threads at once.

    :param text: the program's SQL
    :param sessions: any sessions of the application whose analyzer is asked
    :param check_connector: called for each declared connector with its relation's schema
    :param udf_python: the text of the Python module with the functions that the program declares without a body
    :param limit_s: no further view is begun after so many seconds
    :raises ProgramErrors: with all errors found and their places; when the text itself cannot be read, only those of the text
    """
    started = time.monotonic()
    known = _recent.get((text, udf_python))
    if known is not None:
        messages = _connector_messages(text, known.connectors, known.schemas, check_connector)
        if messages:
            raise ProgramErrors(messages)
        return known
    program = parse_program(text, udf_python)
    functions = [function for function in program.definitions.python_functions if not is_provided(function)]
    wrong = check_functions(Source(text), functions, udf_python)
    if wrong:
        raise ProgramErrors(wrong)
    compiler = _Compiler(program, SparkAnalyzer(sessions.small))
    compiler.add_functions()
    for table in program.tables.values():
        compiler.add_table(table)
    for number, view in enumerate(program.views.values(), 1):
        if time.monotonic() - started > limit_s:
            place = f"it has come to view {display(view.name)}, number {number} of {len(program.views)}"
            message = f"Compiling this program takes more than {limit_s:.0f} s: {place}. Divide it into several pipelines"
            raise ProgramErrors([_message(Source(text), view.span, message)])
        compiler.add_view(view)
    compiler.add_circles()
    messages = [*compiler.messages, *_connector_messages(text, program.connectors(), compiler.schemas, check_connector)]
    if messages:
        raise ProgramErrors(messages)
    view_columns = {name: compiler.schemas[name].columns for name in program.views}
    compiled = Program(
        tables=program.tables,
        views={name: _view(view, view_columns[name]) for name, view in program.views.items()},
        definitions=program.definitions,
        schemas={**compiler.schemas, SYSTEM_VIEW: ERROR_VIEW},
        plans=compiler.plans,
        info=program_info(program, view_columns),
        fingerprints=fingerprint(program, view_columns),
        waterlines=compiler.time.waterlines,
        late_columns=tuple(compiler.time.late_columns),
        markers=compiler.time.markers,
        append_only=frozenset(compiler.append_only),
        warnings=program.warnings,
    )
    _recent.put((text, udf_python), compiled)
    return compiled


def _view(view: ViewDeclaration, columns: tuple[Column, ...]) -> View:
    return View(view.name, view.kind, columns, view.reads, view.case_sensitive, view.connectors, view.span)


class _RecentPrograms:
    """Programs compiled lately, by their text and Python module: a host compiles most twice, to check them and to run them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._programs: OrderedDict[tuple[str, str], Program] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[str, str]) -> Program | None:
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)
            return self._programs.get(key)

    def put(self, key: tuple[str, str], compiled: Program) -> None:
        with self._lock:
            self._programs[key] = compiled
            while len(self._programs) > self._size:
                self._programs.popitem(last=False)


_recent = _RecentPrograms(64)


def _connector_messages(
    text: str, connectors: Iterable[Connector], schemas: Mapping[str, RelationSchema], check: ConnectorCheck | None
) -> list[ProgramMessage]:
    source, messages = Source(text), []
    for connector in connectors if check is not None else ():
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

    def __init__(self, program: ParsedProgram, analyzer: SparkAnalyzer) -> None:
        self._program = program
        self._source = Source(program.text)
        self._analyzer = analyzer
        self._analysis = Analysis(analyzer.session)
        self._types: dict[str, ColumnTypes] = {}
        self._declared: set[str] = set()
        self._members: dict[str, tuple[Member, dict[str, ColumnTypes]]] = {}
        self.time = TimeCompiler(analyzer, self._analysis, self._note)
        self.append_only = {table.name for table in program.tables.values() if table.append_only and table.primary_key is None}
        self.schemas: dict[str, RelationSchema] = {}
        self.plans: dict[str, ViewPlan] = {}
        self.messages: list[ProgramMessage] = []

    def add_functions(self) -> None:
        """Let queries call the Python functions, and check that each SQL function's expression gives its type."""
        definitions = self._program.definitions
        register_functions(self._analyzer.session, definitions.python_functions)
        for function in definitions.functions.values():
            if function.kind is FunctionKind.SQL:
                self._check_body(function, self._program.bodies[function.name])

    def _check_body(self, function: FunctionDefinition, body: FunctionBody) -> None:
        nulls = ", ".join(f"CAST(NULL AS {spark_type(item.type)}) AS {quote(item.name)}" for item in function.parameters)
        relation = f" FROM (SELECT {nulls})" if nulls else ""
        try:
            edits = spell_for_spark(body.edits, self._program.definitions)
        except CallRefused as refused:
            span = self._source.span(body.offset + refused.start, body.offset + refused.end)
            self._note(span, f"The expression of function {display(function.name)} is wrong: {refused.message}")
            return
        cast = f"SELECT CAST(({edits.text}) AS {spark_type(function.returns)})"
        start = len("SELECT CAST((")
        try:
            analyze_variants(Edited(f"{cast}{relation}"), self._analysis)
        except QueryRefused as refused:
            first = min(max(refused.start - start, 0), max(len(edits.text) - 1, 0))
            last = max(min(refused.end - start, len(edits.text)), first + 1)
            place, end = edits.origin(first, last)
            span = self._source.span(body.offset + place, body.offset + end)
            self._note(span, f"The expression of function {display(function.name)} is wrong: {refused.message}")

    def add_table(self, table: Table) -> None:
        schema = RelationSchema(table.name, table.columns, tuple(table.primary_key or ()))
        self._add_schema(schema)
        self.time.add_table(table, schema)
        defaults = [column for column in table.columns if column.default is not None]
        if defaults:
            self._check_defaults(defaults)

    def add_view(self, view: ViewDeclaration) -> None:
        """Add a view; one that is declared recursive only by its declaration, its query is for :meth:`add_circles`."""
        if view.declared is not None:
            schema = RelationSchema(view.name, view.declared)
            self._add_schema(schema)
            self.time.add_view(view, schema)
            return
        with self._refusing(view):
            prepared = self._prepared(view)
            columns = self._view_columns(view, prepared.analyzed) if prepared is not None else None
            if prepared is None or columns is None:
                return
            schema = RelationSchema(view.name, columns)
            self._add_schema(schema)
            self.time.add_view(view, schema)
            if not self.messages:
                self._plan(view, prepared)

    def _plan(self, view: ViewDeclaration, prepared: Understood) -> None:
        query, types = self._settled(view, prepared)
        self._members[view.name] = self._member(view, query, prepared), types
        plan = plan_query(view.name, query, types, self._types[view.name], tuple(types), self._analyzer, self.append_only)
        self.plans[view.name] = self.time.finish(view, plan)
        self.append_only |= append_only_relations(self.plans[view.name], self.append_only)

    def add_circles(self) -> None:
        """Check the queries of the views that are declared recursive against their declarations, and plan them."""
        declared = [view for view in self._program.views.values() if view.declared is not None]
        for circle in dict.fromkeys(view.cycle or (view.name,) for view in declared):
            views = [view for view in declared if view.name in circle]
            others = [name for name in self._program.views if name in circle and self._program.views[name].declared is None]
            for view in views:
                with self._refusing(view):
                    prepared = self._prepared(view)
                    if prepared is not None and self._fits_declaration(view, prepared.analyzed) and not self.messages:
                        query, types = self._settled(view, prepared)
                        self._members[view.name] = self._member(view, query, prepared), types
            if self.messages:
                continue
            members = {name: self._members[name] for name in (*(view.name for view in views), *others)}
            outside = {name: kinds for _, types in members.values() for name, kinds in types.items() if name not in circle}
            with self._refusing(views[0]):
                plans = plan_recursive_views(
                    [members[view.name][0] for view in views], [members[name][0] for name in others], outside, self._analyzer
                )
                self.plans |= {view.name: self.time.finish(view, plans[view.name]) for view in views}

    @contextmanager
    def _refusing(self, view: ViewDeclaration) -> Iterator[None]:
        """Note what is raised against a view's query where no pass has found its place."""
        try:
            yield
        except RecursionError:
            self._note(view.span, f"The query of {display(view.name)} nests too deep: move parts of it into views of their own")
        except (AnalysisFailed, *SPARK_ERRORS) as error:
            cause = str(error) if isinstance(error, AnalysisFailed) else spark_complaint(error)
            self._note(view.span, f"Spark cannot plan the query of {display(view.name)}: {cause}")

    def _fits_declaration(self, view: ViewDeclaration, analyzed: Analyzed) -> bool:
        """Whether a recursive view's query gives what its declaration says; notes it where not."""
        columns, declared = self._view_columns(view, analyzed), view.declared or ()
        if columns is None:
            return False
        given, wanted = [column.name for column in columns], [column.name for column in declared]
        if given != wanted:
            self._note(
                view.span,
                f"View {display(view.name)} is declared with the columns {', '.join(map(display, wanted))} and its query gives "
                f"{', '.join(map(display, given))}",
            )
            return False
        count = len(self.messages)
        for column, other in zip(columns, declared, strict=True):
            title = f"Column {display(column.name)} of view {display(view.name)}"
            if column.type.spark_ddl() != other.type.spark_ddl():
                self._note(
                    other.span,
                    f"{title} is declared {other.type.spark_ddl()} and its query gives {column.type.spark_ddl()}: "
                    f"declare that, or write CAST(... AS {other.type.spark_ddl()}) in the query",
                )
            elif column.type.nullable and not other.type.nullable:
                self._note(other.span, f"{title} is declared NOT NULL and its query may give NULL")
            elif not _comparable(other.type):
                self._note(other.span, f"{title} holds a MAP or VARIANT, but a recursive view is a set, whose rows can be compared")
        return len(self.messages) == count

    def _member(self, view: ViewDeclaration, query: str, prepared: Understood) -> Member:
        names = tuple(str(field["name"]) for field in prepared.analyzed.fields)
        return Member(view.name, query, names, self._types[view.name])

    def _settled(self, view: ViewDeclaration, prepared: Understood) -> tuple[str, dict[str, ColumnTypes]]:
        """The view's query for the planner, and the columns of all it reads."""
        query, types = prepared.query.text, self._read_types(view)
        if prepared.clocked:
            query, markers = self.time.settle(query)
            types |= {marker.relation: ((marker.column, marker.type),) for marker in markers}
        return query, types

    def _prepared(self, view: ViewDeclaration) -> Understood | None:
        """The view's query as both strategies are to understand it; None when something about it is wrong."""
        if any(read not in self.schemas for read in view.reads):
            # What it reads is wrong already; errors that only follow from that would hide the cause.
            return None
        try:
            tree = parse_query(view.query)
        except SyntaxFailure as failure:
            self._note_in(view, failure.start, failure.end, failure.message)
            return None
        unsafe = unsafe_part(tree, view.query)
        if unsafe is not None:
            self._note_in(view, unsafe.start, unsafe.end, unsafe.message)
            return None
        unsteady = list(nondeterministic_parts(tree, view.query))
        for part in unsteady:
            self._note_in(view, part.start, part.end, part.message)
        for read in view.reads:
            if read not in self._declared:
                self._declared.add(read)
                self._analysis.declare(self.schemas[read])
        columns = {name for read in view.reads for name in self.schemas[read].column_names}
        clock = partial(self.time.clock_edits, columns=columns)
        try:
            prepared = understood(Edited(view.query), self._analyzer, self._analysis, clock)
        except (QueryRefused, SyntaxFailure) as refused:
            self._note_refused(view, refused)
            return None
        if not prepared.analyzed.deterministic and not unsteady:
            self._note(view.span, f"The query of {display(view.name)} gives another answer each time, so it cannot be maintained")
        return prepared

    def _add_schema(self, schema: RelationSchema) -> None:
        self.schemas[schema.name] = schema
        self._types[schema.name] = tuple((field.name, type_text(field.dataType)) for field in schema.spark.fields)

    def _read_types(self, view: ViewDeclaration) -> dict[str, ColumnTypes]:
        return {name: self._types[name] for name in view.reads}

    def _check_defaults(self, columns: list[Column]) -> None:
        casts = [f"CAST({column.default} AS {column.type.spark_ddl()})" for column in columns]
        try:
            self._analysis.evaluate_constants(f"SELECT {', '.join(casts)}")
        except QueryRefused:
            # One question for all is fast; only when the answer is no, each is asked alone.
            for column, cast in zip(columns, casts, strict=True):
                try:
                    self._analysis.evaluate_constants(f"SELECT {cast}")
                except QueryRefused as refused:
                    # A DEFAULT has no columns to read: what looks like one in quotes is a string.
                    name = re.search(r"`([^`]*)`", column.default or "")
                    hint = string_hint(f'"{name[1]}"') if name is not None and is_unknown_name(refused) else ""
                    self._note(column.span, f"The DEFAULT of column {display(column.name)} is wrong: {refused.message}{hint}")

    def _view_columns(self, view: ViewDeclaration, analyzed: Analyzed) -> tuple[Column, ...] | None:
        """The view's columns with the names of its column list; None when something about them is wrong."""
        names = apart(_output_names(analyzed))
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
            column = self._output_column(view, name, field)
            if column is not None:
                columns.append(column)
        return tuple(columns) if len(self.messages) == count else None

    def _output_column(self, view: ViewDeclaration, name: str, field: Mapping[str, Any]) -> Column | None:
        title = f"Column {display(name)} of view {display(view.name)}"
        if name.startswith(INTERNAL_PREFIX):
            self._note(view.span, f"{title} has a reserved name: names that start with '{INTERNAL_PREFIX}' are the engine's")
            return None
        try:
            column = column_from_spark_json({**field, "name": name})
        except ValueError as failure:
            self._note(view.span, f"{title} is {failure}" if str(failure) == CALENDAR_INTERVAL else f"{title}: {failure}")
            return None
        if "__COLLATIONS" in field.get("metadata", {}):
            # Stored rows are told apart letter by letter, and Arrow knows no collations.
            self._note(view.span, f"{title} has a collation, which views cannot keep: CAST(... AS STRING COLLATE UTF8_BINARY)")
            return None
        if column.type.name == "NULL":
            self._note(view.span, f"{title} is always NULL and has no type: write CAST(NULL AS <type>)")
            return None
        return replace(column, case_sensitive=name != name.lower())

    def _note_in(self, view: ViewDeclaration, start: int, end: int, message: str) -> None:
        """Note an error at a place of a view's query."""
        self._note(self._source.span(*view.place(start, end)), message)

    def _note_refused(self, view: ViewDeclaration, refused: QueryRefused | SyntaxFailure) -> None:
        """Note what Spark, or a rewriting, has against a view's query."""
        span = self._source.span(*view.place(refused.start, refused.end))
        hint = string_hint(self._source.slice(span)) if is_unknown_name(refused) else ""
        self._note(span, refused.message + hint)

    def _note(self, span: Span | None, message: str) -> None:
        self.messages.append(_message(self._source, span, message))


def _comparable(kind: ColumnType) -> bool:
    inner = [kind.component, *(part for _, part in kind.fields or ())]
    return kind.name not in {"MAP", "VARIANT"} and all(_comparable(part) for part in inner if part is not None)


def _output_names(analyzed: Analyzed) -> list[str]:
    """The columns' names; one that its query does not name is ``EXPR$<n>`` with its place from 0."""
    return [f"EXPR${at}" if AUTOMATIC in field.get("metadata", {}) else field["name"] for at, field in enumerate(analyzed.fields)]
