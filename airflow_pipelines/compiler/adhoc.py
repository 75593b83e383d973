"""Ad-hoc SQL over one snapshot: queries of materialized relations, and INSERT and DELETE as changes of tables."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from airflow_pipelines.compiler.adhoc_sessions import adhoc_session
from airflow_pipelines.compiler.analyze_query import ClockEdits, analyze_query
from airflow_pipelines.compiler.spark_analyzer import SessionAnalyzer
from airflow_pipelines.engine.allowed_changes import NotATableError, changed_table, refused_operations
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.analysis import AUTOMATIC, Analysis, QueryRefused, is_unknown_name
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.queries import make_query_frame
from airflow_pipelines.engine.spark.schemas import hinted_schema_json
from airflow_pipelines.engine.spark.sessions import IN_TASKS_CONF, QUERY_CONF, SMALL_CONF
from airflow_pipelines.engine.values.canonical import canonical_frame
from airflow_pipelines.program.functions import FunctionDefinition
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramErrors
from airflow_pipelines.program.names import SYSTEM_VIEW, display, quote
from airflow_pipelines.program.relations import Table, ViewKind
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.required_parts import missing_part
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.sql.plan.ir.markers import CLOCK_TYPE
from airflow_pipelines.sql.program.adhoc import AdhocKind, AdhocStatement, parse_adhoc
from airflow_pipelines.sql.program.provided_functions import with_provided
from airflow_pipelines.sql.rewrite.bare_clock_calls import bare_clock_edits
from airflow_pipelines.sql.rewrite.casts import stored_text
from airflow_pipelines.sql.rewrite.clauses import Tokens, around, level, selects, split
from airflow_pipelines.sql.rewrite.clock_calls import clock_edits
from airflow_pipelines.sql.rewrite.connector_metadata import without_metadata
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import string_hint

_GROWING = re.compile(r"(?i)\b(?:repeat|space|[lr]pad|sequence|array_repeat|format_string|printf)\s*\(")
"""The functions whose result can be far larger than their arguments.

Spark evaluates calls with constant arguments in its driver, where the limits of tasks do not apply.
"""


class AdhocError(ValueError):
    """The error of an ad-hoc request that cannot be run. The text gives the reason and a remedy."""


class NotYetEvaluatedError(AdhocError):
    """The error of a query that reads a view which has changed with the program and is being evaluated."""


@dataclass(frozen=True, slots=True)
class AdhocResult:
    """The result of a request: the rows of its query (None without one), and the changes of tables by its statements.

    :param count: the number of rows that the changes insert or delete
    :param snapshot: the snapshot that was read; keep it while ``frame`` runs, so that the files stay
    """

    frame: DataFrame | None
    changes: tuple[TableChanges, ...]
    count: int
    snapshot: Snapshot


def _wall_clock() -> int:
    return time.time_ns() // 1000


def run_adhoc(
    circuit: Circuit, text: str, clock: Callable[[], int] = _wall_clock, collect: Callable[[DataFrame], Any] = collected
) -> AdhocResult:
    """Run a request of ``;``-separated statements, all of which see the same snapshot. Safe to call from several threads.

    The query, if any, is analyzed but not run. INSERT and DELETE are evaluated, but the caller gives their changes to a step. A
    query means the same as in a view: it goes through the same passes, and NOW() is the time of the snapshot.

    :param circuit: the running program
    :param text: the request
    :param clock: the pipeline's time in microseconds since the epoch, for a program in which no view follows the clock
    :param collect: collects the rows of an INSERT or DELETE to Python
    :raises ProgramErrors: if the request does not parse, has a statement that is not allowed, or its query does not resolve
    :raises AdhocError: if a relation is unknown or not materialized, or rows do not fit their table
    :raises NotYetEvaluatedError: if a view is being evaluated after a change of the program
    :raises pyspark.errors.PySparkException: if an expression fails
    """
    definitions = with_provided(circuit.program.definitions, text)
    statements = parse_adhoc(text, definitions)
    # Read in this order: if a view is no longer awaited, the snapshot has it.
    awaited, snapshot = circuit.awaited, circuit.snapshot
    request = _Request(circuit, snapshot, text, _time(circuit, snapshot, clock), definitions.python_functions, collect)
    frame: DataFrame | None = None
    changes: list[TableChanges] = []
    for statement in statements:
        _check_reads(circuit, statement, awaited)
        if statement.kind is AdhocKind.SELECT:
            with request.session(statement.reads) as session:
                given = request.analyze(statement, session)
                frame = canonical_frame(request.name_columns(given.frame, statement, given.query))
        elif statement.kind is AdhocKind.INSERT:
            changes.append(_insert(request, statement))
        else:
            changes.append(_delete(request, statement))
    count = sum(change.rows.num_rows for change in changes)
    return AdhocResult(frame, tuple(change for change in changes if change.rows.num_rows), count, request.snapshot)


def _time(circuit: Circuit, snapshot: Snapshot, clock: Callable[[], int]) -> int:
    """Return the value of NOW() in the views of a snapshot, or the time of ``clock`` if no view reads the clock."""
    reached = snapshot.clock if circuit.follows_clock else None
    return clock() if reached is None else reached


@dataclass(frozen=True, slots=True)
class _Given:
    """The query of a statement, as Spark understands it.

    :param query: its text
    :param columns: the number of its columns
    :param frame: the frame with its rows
    """

    query: Edited
    columns: int
    frame: DataFrame


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, with the snapshot and the time that all of its statements see."""

    circuit: Circuit
    snapshot: Snapshot
    text: str
    time: int
    """The value of NOW(), in microseconds since the epoch."""
    functions: tuple[FunctionDefinition, ...]
    """The Python functions that the request may call."""
    collect: Callable[[DataFrame], Any]
    """A function that collects rows to Python."""

    @contextmanager
    def session(self, reads: tuple[str, ...]) -> Iterator[SparkSession]:
        """Yield a session with a temporary view for each of ``reads`` over its contents in the snapshot.

        Frames made in it stay valid.
        """
        known = self.circuit.program.definitions.python_functions
        extra = IN_TASKS_CONF if _GROWING.search(self.text) else {}
        if not reads and self.functions == known and not extra:
            # For example INSERT ... VALUES: it needs no temporary view, so no session of its own, which would take time to make.
            yield self.circuit.sessions.small
            return
        traces = [self.snapshot.traces.get(name) for name in reads]
        small = all(trace is None or trace.is_small(self.circuit.limits) for trace in traces)
        conf = {**(SMALL_CONF if small else QUERY_CONF), **extra}
        with adhoc_session(self.circuit.sessions.small, conf, self.functions) as session:
            for name in reads:
                frame = self.circuit.plain_contents(name, self.snapshot, session) if small else None
                if frame is None:
                    frame = make_query_frame(session, self.circuit.contents(name, self.snapshot, single_partition=small))
                _add_hints(frame, self.circuit.program.schemas[name]).createOrReplaceTempView(quote(name))
            try:
                yield session
            finally:
                for name in reads:
                    session.catalog.dropTempView(quote(name))

    def analyze(self, statement: AdhocStatement, session: SparkSession) -> _Given:
        """Analyze a statement's query in a session that has the relations that it reads.

        :raises ProgramErrors: if the query does not resolve
        """
        schemas = self.circuit.program.schemas
        columns = {column for name in (*statement.reads, statement.target) if name for column in schemas[name].column_names}
        analysis = Analysis(session)
        try:
            analyzed = analyze_query(statement.query, SessionAnalyzer(session), analysis, self.clock_edits(columns))
        except (QueryRefused, SyntaxFailure) as refused:
            source = SourceText(self.text)
            span = source.span(*statement.place(refused.start, refused.end))
            hint = string_hint(statement.find_written(self.text, refused.start, refused.end)) if is_unknown_name(refused) else ""
            raise ProgramErrors([source.message(span, COMPILATION_ERROR, refused.message + hint)]) from refused
        frame = analysis.frame(analyzed.query.text)
        return _Given(analyzed.query, len(frame.columns), frame)

    def clock_edits(self, columns: Set[str]) -> ClockEdits:
        """Return the edits by which a query over ``columns`` reads the time of the request."""
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=self.time)
        # Spark names the column of a bare literal after the literal, as if the query had named it.
        return partial(clock_edits, columns=columns, now=f"CAST('{moment}' AS {CLOCK_TYPE.upper()})")

    def default(self, column: Column) -> str:
        """Return the SQL text of the value that a column has if an INSERT does not name it."""
        expression = without_metadata(column.default or "NULL")
        called = Edited(expression).edit(bare_clock_edits(expression))
        return called.edit(self.clock_edits(set())(called.text)).text

    def name_columns(self, frame: DataFrame, statement: AdhocStatement, query: Edited) -> DataFrame:
        """Return the frame with its unnamed columns named after the text of the request, not after the rewritten query."""
        if not query.edits:
            return frame
        walker, fields = TokenWalker(query.text), frame.schema.fields
        names = []
        for item, field in zip(_find_items(walker, len(fields)), fields, strict=True):
            start, end = (walker.start(item[0]), walker.end(item[1] - 1)) if item is not None else (0, 0)
            written = statement.find_written(self.text, *query.origin(start, end))
            plain = item is None or walker.piece(start, end).lower() == written.lower()
            names.append(field.name if plain or AUTOMATIC not in field.metadata else written)
        return frame.toDF(*names)


def _add_hints(frame: DataFrame, schema: RelationSchema) -> DataFrame:
    """Return a relation's contents with a hint on each column of unsigned integers, which follows the column into results."""
    hints = {field["name"]: field["metadata"] for field in hinted_schema_json(schema)["fields"]}
    unsigned = {column.name for column in schema.columns if column.type.is_unsigned_integer}
    if not unsigned:
        return frame
    columns = [col(quote(name)) for name in frame.columns]
    named = zip(frame.columns, columns, strict=True)
    return frame.select(*(column.alias(name, metadata=hints[name]) if name in unsigned else column for name, column in named))


def _find_items(walker: TokenWalker, count: int) -> list[Tokens | None]:
    """Return the SELECT list entry of each of a query's ``count`` columns; None for columns of a star, and if it is unknown."""
    unknown: list[Tokens | None] = [None] * count
    first = next((at for at in level(walker, (0, len(walker.tokens))) if walker.word(at) == "select"), None)
    select = around(selects(walker), first) if first is not None else None
    begin, end = select.clauses.get("list", (0, 0)) if select is not None else (0, 0)
    items = split(walker, (begin + 1 if walker.word(begin) in {"all", "distinct"} else begin, end))
    stars = [at for at, item in enumerate(items) if _is_star(walker, item)]
    if len(items) - len(stars) > count or len(stars) > 1 or (not stars and len(items) != count):
        return unknown
    if not stars:
        return list(items)
    return [*items[: stars[0]], *unknown[: count - len(items) + 1], *items[stars[0] + 1 :]]


def _is_star(walker: TokenWalker, item: Tokens) -> bool:
    return any(walker.word(at) == "*" and (at == item[0] or walker.word(at - 1) == ".") for at in range(*item))


def _check_reads(circuit: Circuit, statement: AdhocStatement, awaited: Set[str]) -> None:
    program = circuit.program
    for name in statement.reads:
        if name == SYSTEM_VIEW:
            continue
        if name in program.tables and name not in program.hidden_relations:
            materialized = program.tables[name].materialized
            hint = "declare the table WITH ('materialized' = 'true')"
        elif name in program.views and name not in program.hidden_relations:
            materialized = program.views[name].kind is ViewKind.MATERIALIZED
            hint = "declare the view with CREATE MATERIALIZED VIEW"
        else:
            known = ", ".join(display(known) for known in sorted({*program.tables, *program.views} - program.hidden_relations))
            raise AdhocError(f"Relation {display(name)} does not exist; there are: {known or 'none'}")
        if not materialized:
            raise AdhocError(f"Tried to SELECT from a non-materialized source {display(name)}: to query it, {hint}")
        if name in awaited:
            raise NotYetEvaluatedError(f"The view {display(name)} is being evaluated for the changed program; try again when it is")


def _target(circuit: Circuit, statement: AdhocStatement) -> tuple[Table, RelationSchema]:
    name = statement.target or ""
    try:
        return changed_table(circuit.program, name), circuit.program.schemas[name]
    except NotATableError as error:
        reason = "is a view" if error.is_view else "does not exist"
        raise AdhocError(f"{display(name)} {reason}; only tables can be changed") from error


def _insert(request: _Request, statement: AdhocStatement) -> TableChanges:
    table, schema = _target(request.circuit, statement)
    names = statement.columns or schema.column_names
    unknown = [name for name in names if name not in schema.column_names]
    if unknown:
        raise AdhocError(f"Table {display(table.name)} has no column {', '.join(map(display, unknown))}")
    with request.session(statement.reads) as session:
        given = request.analyze(statement, session)
        if given.columns != len(names):
            raise AdhocError(f"INSERT into {display(table.name)} gives {given.columns} values for {len(names)} columns")
        sources = {name: quote(f"v{at}") for at, name in enumerate(names)}
        items = []
        for column in schema.columns:
            value = sources.get(column.name) or request.default(column)
            items.append(f"{stored_text(value, column.type)} AS {quote(column.name)}")
        aliases = ", ".join(sources.values())
        rows = request.collect(
            make_query_frame(session, f"SELECT {', '.join(items)} FROM ({given.query.text}) AS `source`({aliases})")
        )
    for column in schema.columns:
        if not column.type.nullable and rows[column.name].null_count:
            raise AdhocError(f"Column {display(column.name)} of table {display(table.name)} must not be NULL")
        part = missing_part(rows[column.name], column.type)
        if part is not None:
            raise AdhocError(f"{display(column.name)}{part} of table {display(table.name)} must not be NULL")
    return TableChanges(table.name, _with_operation(_cast_rows(rows, schema), Op.INSERT))


def _delete(request: _Request, statement: AdhocStatement) -> TableChanges:
    table, schema = _target(request.circuit, statement)
    if Op.DELETE in refused_operations(table):
        raise AdhocError(f"Table {display(table.name)} is append-only; its rows cannot be deleted")
    with request.session(tuple(dict.fromkeys((table.name, *statement.reads)))) as session:
        rows = request.collect(request.analyze(statement, session).frame)
    return TableChanges(table.name, _with_operation(_cast_rows(rows, schema), Op.DELETE))


def _cast_rows(rows: Any, schema: RelationSchema) -> Any:
    arrow = pa.schema([column.with_nullable(True) for column in schema.arrow])
    return rows.select(arrow.names).cast(arrow)


def _with_operation(rows: Any, operation: Op) -> Any:
    return rows.append_column(OP, pa.array([int(operation)] * rows.num_rows, pa.int8()))
