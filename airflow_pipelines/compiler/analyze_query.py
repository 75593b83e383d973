"""Analyzes queries: one chain of passes from a query's text to what Spark runs, for views and for ad-hoc requests alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_pipelines.compiler.variants import analyze_variants
from airflow_pipelines.engine.spark.analysis import Analysis, Analyzed, QueryRefused
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.make_deterministic import make_deterministic
from airflow_pipelines.sql.rewrite.to_spark_syntax import to_spark_syntax
from airflow_pipelines.sql.rewrite.typed_expressions import typed_expressions
from airflow_pipelines.sql.syntax.edits import Edit, Edited

ClockEdits = Callable[[str], list[Edit]]
"""Takes a query, and gives the edits by which its calls of NOW() read the pipeline's clock; none when it has no such call."""
CLOCK_HINT = "NOW() is a TIMESTAMP without time zone here"


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """A query as Spark runs it.

    :param analyzed: what Spark knows of it
    :param reads_clock: whether it reads the clock
    """

    query: Edited
    analyzed: Analyzed
    reads_clock: bool


def analyze_query(query: Edited, analyzer: Analyzer, analysis: Analysis, clock: ClockEdits) -> AnalyzedQuery:
    """Rewrite a translated query into Spark's syntax, make it deterministic, and let it read the pipeline's clock.

    :param query: folded text that parses, after :func:`~airflow_pipelines.sql.rewrite.translate.translate`
    :param analyzer: knows the relations that the query reads
    :param analysis: of a session that knows them too
    :param clock: how the query reads the clock
    :returns: the query, analyzed
    :raises QueryRefused: when Spark refuses the query; its offsets are those of the query as first written
    :raises SyntaxFailure: when a construct is used in a wrong way; so are its offsets
    """
    # The text is analyzed before it is made deterministic, so that errors are about what was written.
    accepted, analyzed = analyze_variants(to_spark_syntax(query, analyzer), analysis, analyzer)
    kept = make_deterministic(typed_expressions(accepted, analyzer), analyzer)
    if kept is not accepted:
        analyzed = _analyzed(kept, analysis)
    edits = clock(kept.text)
    if not edits:
        return AnalyzedQuery(kept, analyzed, False)
    timed = kept.edit(edits)
    try:
        return AnalyzedQuery(timed, _analyzed(timed, analysis), True)
    except QueryRefused as refused:
        message = f"{refused.message}. {CLOCK_HINT}"
        raise QueryRefused(refused.start, refused.end, message, refused.condition) from refused


def _analyzed(query: Edited, analysis: Analysis) -> Analyzed:
    try:
        return analysis.analyze(query.text)
    except QueryRefused as refused:
        raise QueryRefused(*query.origin(refused.start, refused.end), refused.message, refused.condition) from refused
