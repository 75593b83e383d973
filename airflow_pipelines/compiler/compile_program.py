"""The compilation of a SQL program's text: it is parsed, its functions, tables and views are compiled, its connectors checked."""

from __future__ import annotations

import math
from functools import partial
from threading import Lock
from typing import Final

from cachetools import LRUCache

from airflow_pipelines.compiler.compilation import Compilation, error_message
from airflow_pipelines.compiler.connector_checks import ConnectorCheck, connector_messages
from airflow_pipelines.compiler.functions import add_functions
from airflow_pipelines.compiler.retention import with_retention
from airflow_pipelines.compiler.spark_analyzer import SparkAnalyzer
from airflow_pipelines.compiler.tables import add_table
from airflow_pipelines.compiler.views import ViewCompiler
from airflow_pipelines.compiler.work_limit import WorkLimit
from airflow_pipelines.engine.functions.python_functions import check_functions
from airflow_pipelines.engine.lateness import ERROR_VIEW
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.spark.thread_time import thread_seconds
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.names import SYSTEM_VIEW, display
from airflow_pipelines.program.reasons import RecomputedPart
from airflow_pipelines.program.relations import Table, View
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.sql.program.declarations import ParsedProgram, ViewDeclaration
from airflow_pipelines.sql.program.describe import program_info
from airflow_pipelines.sql.program.fingerprint import fingerprint
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.program.provided_functions import is_provided

_RECENT: Final[LRUCache[tuple[str, str, tuple[Table, ...]], Program]] = LRUCache(64)
"""The programs compiled last, by text, Python module and given relations.

A host compiles most programs twice: to check them, and to run them.
"""
_RECENT_LOCK: Final = Lock()


def compile_program(
    text: str,
    sessions: SparkSessions,
    check_connector: ConnectorCheck | None = None,
    udf_python: str = "",
    limit_s: float = math.inf,
    given: tuple[Table, ...] = (),
) -> Program:
    """Compile a program. Run no Spark job. Several threads may call it at the same time.

    :param text: the program's SQL
    :param sessions: any sessions of the application whose analyzer is used
    :param check_connector: called for each declared connector with its relation's schema
    :param udf_python: the text of the Python module with the functions that the program declares without a body
    :param limit_s: the seconds of processor time after which no further view is begun, see :class:`WorkLimit`
    :param given: the relations made outside of the text that its views may read; the program has their schemas only
    :returns: the program
    :raises ProgramErrors: if there are errors: all of them with their places, or only those of the text if it cannot be parsed
    """
    key = text, udf_python, given
    with _RECENT_LOCK:
        known = _RECENT.get(key)
    if known is not None:
        # Connectors are checked each time, because each caller has its own check.
        messages = connector_messages(SourceText(text), known.connectors, known.schemas, check_connector)
        if messages:
            raise ProgramErrors(messages)
        return known
    program = _compile(parse_program(text, udf_python, given), sessions, check_connector, udf_python, limit_s)
    with _RECENT_LOCK:
        _RECENT[key] = program
    return program


def _compile(
    parsed: ParsedProgram, sessions: SparkSessions, check_connector: ConnectorCheck | None, udf_python: str, limit_s: float
) -> Program:
    limit = WorkLimit(limit_s, partial(thread_seconds, sessions.small.sparkContext))
    _check_module(parsed, udf_python)
    compilation = Compilation(parsed, SparkAnalyzer(sessions.small))
    add_functions(compilation)
    for table in (*parsed.tables.values(), *parsed.given.values()):
        add_table(compilation, table)
    views = ViewCompiler(compilation)
    for number, view in enumerate(parsed.views.values(), 1):
        place = f"it has come to view {display(view.name)}, number {number} of {len(parsed.views)}"
        too_much = limit.reason_to_end(place)
        if too_much is not None:
            raise ProgramErrors([error_message(compilation.source, view.span, too_much)])
        views.add(view)
    views.add_cycles()
    _check_indexes(compilation)
    wrong = connector_messages(compilation.source, parsed.connectors(), compilation.schemas, check_connector)
    messages = [*compilation.messages, *wrong]
    if messages:
        raise ProgramErrors(messages)
    return _program(compilation)


def _check_indexes(compilation: Compilation) -> None:
    for index in compilation.program.indexes:
        schema = compilation.schemas.get(index.relation.text)
        for column in index.columns if schema is not None else ():
            if schema is not None and column.text not in schema.column_names:
                compilation.note(column.span, f"{display(index.relation.text)} has no column {display(column.text)}")


def _check_module(parsed: ParsedProgram, udf_python: str) -> None:
    functions = [function for function in parsed.definitions.python_functions if not is_provided(function)]
    wrong = check_functions(SourceText(parsed.text), functions, udf_python)
    if wrong:
        raise ProgramErrors(wrong)


def _program(compilation: Compilation) -> Program:
    """Return the program of a compilation without errors."""
    parsed, timing = compilation.program, compilation.time
    columns = {name: compilation.schemas[name].columns for name in parsed.views}
    program = Program(
        tables=parsed.tables,
        views={name: _make_view(view, columns[name]) for name, view in parsed.views.items()},
        definitions=parsed.definitions,
        schemas={**compilation.schemas, SYSTEM_VIEW: ERROR_VIEW},
        plans=compilation.plans,
        info=program_info(parsed, columns, _list_recomputed(compilation)),
        fingerprints=fingerprint(parsed, columns),
        late_columns=tuple(timing.late_columns),
        markers=timing.markers,
        indexes=tuple(declared.index for declared in parsed.indexes),
        warnings=parsed.warnings,
    )
    return with_retention(program, timing.waterlines)


def _list_recomputed(compilation: Compilation) -> tuple[RecomputedPart, ...]:
    return tuple(
        RecomputedPart(view, stage.relation, stage.strategy, stage.reason)
        for view in compilation.program.views
        for stage in compilation.plans[view].recomputed
        if stage.reason is not None
    )


def _make_view(view: ViewDeclaration, columns: tuple[Column, ...]) -> View:
    return View(view.name, view.kind, columns, view.reads, view.connectors)
