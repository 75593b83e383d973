"""Ad-hoc SQL over one snapshot: queries of materialized relations, and INSERT and DELETE as changes of tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.engine.analysis import AUTOMATIC, Analysis, QueryRefused, is_unknown_name, refusal
from airflow_pipelines.engine.arrow import collected
from airflow_pipelines.engine.changes import OP, Op, TableChanges
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.python_functions import register_functions
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.sessions import LARGE_CONF, SMALL_CONF, sibling
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.variants import analyze_variants
from airflow_pipelines.sql.adhoc import AdhocKind, AdhocStatement, parse_adhoc
from airflow_pipelines.sql.edits import Edited
from airflow_pipelines.sql.errors import COMPILATION_ERROR, ProgramErrors
from airflow_pipelines.sql.identifiers import SYSTEM_VIEW, display, quote, string_hint
from airflow_pipelines.sql.program import Table, ViewKind
from airflow_pipelines.sql.rewrite.casts import cast_text
from airflow_pipelines.sql.rewrite.clauses import selects, split
from airflow_pipelines.sql.rewrite.scan import Scan
from airflow_pipelines.sql.source import Source
from airflow_pipelines.sql.types import UNSIGNED_MAXIMA


class AdhocError(ValueError):
    """An ad-hoc request cannot be run; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class AdhocResult:
    """What a request gave: the rows of its query (None without one), and the changes that its statements ask for.

    ``count``: rows that the changes insert or delete. ``snapshot`` is what was read; whoever runs ``frame`` keeps it, so that the
    files stay.
    """

    frame: DataFrame | None
    changes: tuple[TableChanges, ...]
    count: int
    snapshot: Snapshot


def run_adhoc(circuit: Circuit, text: str) -> AdhocResult:
    """Run a request of ``;``-separated statements, all of which see the same snapshot. Safe to call from several threads.

    The query, if any, is analyzed but not run. INSERT and DELETE are evaluated, but it is the caller who gives their changes to a
    step.

    :raises ProgramErrors: when the request does not parse, has a statement that is not allowed, or its query does not resolve
    :raises AdhocError: for an unknown or non-materialized relation, or rows that do not fit their table
    :raises pyspark.errors.PySparkException: when Spark refuses a statement or an expression fails
    """
    statements = parse_adhoc(text, circuit.compiled.program.definitions)
    snapshot = circuit.snapshot
    frame: DataFrame | None = None
    changes: list[TableChanges] = []
    for statement in statements:
        _check_reads(circuit, statement)
        if statement.kind is AdhocKind.SELECT:
            with _session(circuit, snapshot, statement.reads) as session:
                frame = _analyzed(session, statement, text)
        elif statement.kind is AdhocKind.INSERT:
            changes.append(_insert(circuit, snapshot, statement))
        else:
            changes.append(_delete(circuit, snapshot, statement))
    count = sum(change.rows.num_rows for change in changes)
    return AdhocResult(frame, tuple(change for change in changes if change.rows.num_rows), count, snapshot)


def _analyzed(session: SparkSession, statement: AdhocStatement, text: str) -> DataFrame:
    try:
        return _named(session.sql(statement.sql), statement, text)
    except (AnalysisException, ParseException) as error:
        first, source = refusal(error, statement.sql), Source(text)
        try:
            # Of what Spark refuses, taking VARIANTs apart can be said in other words.
            edited, _ = analyze_variants(Edited(statement.sql), Analysis(session))
            return _named(session.sql(edited.text), statement, text)
        except QueryRefused as again:
            refused = again if again.condition != first.condition else first
        span = source.span(*statement.place(refused.start, refused.end))
        hint = string_hint(source.slice(span)) if is_unknown_name(refused) else ""
        raise ProgramErrors([source.message(span, COMPILATION_ERROR, refused.message + hint)]) from error


def _named(frame: DataFrame, statement: AdhocStatement, text: str) -> DataFrame:
    """The frame with columns named after the request where Spark named them after what translating made of it."""
    edits, scan = statement.edits, Scan(statement.sql)
    found = selects(scan)
    if edits is None or edits.before is None or not found:
        return frame
    items = split(scan, found[0].clauses.get("list", (0, 0)))
    fields = frame.schema.fields
    if len(items) != len(fields):
        return frame
    names = []
    for (first, behind), field in zip(items, fields, strict=True):
        start, end = statement.place(scan.start(first), scan.end(behind - 1))
        plain = statement.sql[scan.start(first) : scan.end(behind - 1)].lower() == text[start:end].lower()
        names.append(field.name if plain or AUTOMATIC not in field.metadata else text[start:end])
    return frame.toDF(*names)


def _check_reads(circuit: Circuit, statement: AdhocStatement) -> None:
    program = circuit.compiled.program
    for name in statement.reads:
        if name == SYSTEM_VIEW:
            continue
        if name in program.tables:
            materialized = program.tables[name].materialized
            hint = "declare the table WITH ('materialized' = 'true')"
        elif name in program.views:
            materialized = program.views[name].kind is ViewKind.MATERIALIZED
            hint = "declare the view with CREATE MATERIALIZED VIEW"
        else:
            known = ", ".join(display(known) for known in sorted({*program.tables, *program.views}))
            raise AdhocError(f"Relation {display(name)} does not exist; there are: {known or 'none'}")
        if not materialized:
            raise AdhocError(f"Tried to SELECT from a non-materialized source {display(name)}: to query it, {hint}")


def _target(circuit: Circuit, statement: AdhocStatement) -> tuple[Table, RelationSchema]:
    name = statement.target or ""
    table = circuit.compiled.program.tables.get(name)
    if table is None:
        reason = "is a view" if name in circuit.compiled.program.views else "does not exist"
        raise AdhocError(f"{display(name)} {reason}; only tables can be changed")
    return table, circuit.compiled.schemas[name]


@contextmanager
def _session(circuit: Circuit, snapshot: Snapshot, reads: tuple[str, ...]) -> Iterator[SparkSession]:
    """A session in which ``reads`` name the contents in ``snapshot``. Frames made in it stay valid afterwards."""
    if not reads:
        # Such as INSERT ... VALUES: without names there is nothing to keep apart, and a new session takes its time.
        yield circuit.sessions.small
        return
    traces = [snapshot.traces.get(name) for name in reads]
    small = all(trace is None or trace.is_small(circuit.limits) for trace in traces)
    # A sibling session of its own per request: names of relations in one cannot meet those of another.
    session = sibling(circuit.sessions.small, SMALL_CONF if small else LARGE_CONF)
    register_functions(session, circuit.compiled.program.definitions.python_functions)
    for name in reads:
        session.sql(circuit.contents(name, snapshot, single_partition=small)).createOrReplaceTempView(quote(name))
    try:
        yield session
    finally:
        for name in reads:
            session.catalog.dropTempView(quote(name))


def _insert(circuit: Circuit, snapshot: Snapshot, statement: AdhocStatement) -> TableChanges:
    table, schema = _target(circuit, statement)
    names = statement.columns or schema.column_names
    unknown = [name for name in names if name not in schema.column_names]
    if unknown:
        raise AdhocError(f"Table {display(table.name)} has no column {', '.join(map(display, unknown))}")
    with _session(circuit, snapshot, statement.reads) as session:
        given = len(session.sql(f"SELECT * FROM ({statement.source})").columns)
        if given != len(names):
            raise AdhocError(f"INSERT into {display(table.name)} gives {given} values for {len(names)} columns")
        sources = {name: quote(f"v{at}") for at, name in enumerate(names)}
        items = []
        for column in schema.columns:
            value = sources.get(column.name) or column.default or "NULL"
            checked = column.type.name == "UUID" or column.type.name in UNSIGNED_MAXIMA
            cast = cast_text(value, column.type) if checked else f"CAST({value} AS {column.type.spark_ddl()})"
            items.append(f"{cast} AS {quote(column.name)}")
        aliases = ", ".join(sources.values())
        rows = collected(session.sql(f"SELECT {', '.join(items)} FROM ({statement.source}) AS `source`({aliases})"))
    for column in schema.columns:
        if not column.type.nullable and rows[column.name].null_count:
            raise AdhocError(f"Column {display(column.name)} of table {display(table.name)} must not be NULL")
    return TableChanges(table.name, _with_operation(_typed(rows, schema), Op.INSERT))


def _delete(circuit: Circuit, snapshot: Snapshot, statement: AdhocStatement) -> TableChanges:
    table, schema = _target(circuit, statement)
    if table.append_only:
        raise AdhocError(f"Table {display(table.name)} is append-only; its rows cannot be deleted")
    where = f" WHERE {statement.where}" if statement.where is not None else ""
    with _session(circuit, snapshot, tuple(dict.fromkeys((table.name, *statement.reads)))) as session:
        rows = collected(session.sql(f"SELECT * FROM {quote(table.name)}{where}"))
    return TableChanges(table.name, _with_operation(_typed(rows, schema), Op.DELETE))


def _typed(rows: Any, schema: RelationSchema) -> Any:
    arrow = pa.schema([column.with_nullable(True) for column in schema.arrow])
    return rows.select(arrow.names).cast(arrow)


def _with_operation(rows: Any, operation: Op) -> Any:
    return rows.append_column(OP, pa.array([int(operation)] * rows.num_rows, pa.int8()))
