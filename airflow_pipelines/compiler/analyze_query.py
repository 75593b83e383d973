"""The analysis of queries: one chain of passes from a query's text to the one that Spark runs, for views and ad-hoc requests."""

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
"""A function that returns the edits by which a query's calls of NOW() read the pipeline's clock; none if it has no such call."""
CLOCK_HINT = "NOW() is a TIMESTAMP without time zone here"


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """A query in the form in which Spark runs it.

    :param analyzed: the result of Spark's analysis
    :param reads_clock: True if it reads the clock
    """

    query: Edited
    analyzed: Analyzed
    reads_clock: bool


def analyze_query(query: Edited, analyzer: Analyzer, analysis: Analysis, clock: ClockEdits) -> AnalyzedQuery:
    """Rewrite a translated query into Spark's syntax, make it deterministic, and let it read the pipeline's clock.

    :param query: folded text that parses, after :func:`~airflow_pipelines.sql.rewrite.translate.translate`
    :param analyzer: the analyzer, which knows the relations that the query reads
    :param analysis: the analysis of a session that knows them too
    :param clock: the edits by which the query reads the clock
    :returns: the query, analyzed
    :raises QueryRefused: if Spark refuses the query; the offsets are those of the query as first written
    :raises SyntaxFailure: if a construct is used in a wrong way; the offsets are those of the query as first written
    """
    # The text is analyzed before it is made deterministic, so that errors refer to the text as written.
    accepted, analyzed = analyze_variants(to_spark_syntax(query, analyzer), analysis, analyzer)
    kept = make_deterministic(typed_expressions(accepted, analyzer), analyzer)
    if kept is not accepted:
        analyzed = _analyze(kept, analysis)
    edits = clock(kept.text)
    if not edits:
        return AnalyzedQuery(kept, analyzed, False)
    timed = kept.edit(edits)
    try:
        return AnalyzedQuery(timed, _analyze(timed, analysis), True)
    except QueryRefused as refused:
        message = f"{refused.message}. {CLOCK_HINT}"
        raise QueryRefused(refused.start, refused.end, message, refused.condition) from refused


def _analyze(query: Edited, analysis: Analysis) -> Analyzed:
    try:
        return analysis.analyze(query.text)
    except QueryRefused as refused:
        raise QueryRefused(*query.origin(refused.start, refused.end), refused.message, refused.condition) from refused
