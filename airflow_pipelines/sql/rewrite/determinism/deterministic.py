"""Queries that leave a choice to Spark, made to have one answer: what follows from the rows alone can be kept equal to them."""

from __future__ import annotations

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.rewrite.determinism.aggregates import settled_aggregates
from airflow_pipelines.sql.rewrite.determinism.choosing_aggregates import settled_choices
from airflow_pipelines.sql.rewrite.determinism.limits import settled_limits
from airflow_pipelines.sql.rewrite.determinism.window_functions import ordered_windows
from airflow_pipelines.sql.syntax.edits import Edited


def break_ties(query: Edited, analyzer: Analyzer) -> Edited:
    """The query with every tie broken by the columns of the rows.

    :param query: Spark SQL that Spark accepts
    :param analyzer: knows the relations that the query reads
    :raises SyntaxFailure: when a window function has no one answer; offsets are those of the query as first written
    """
    for settle in (settled_choices, settled_aggregates, ordered_windows, settled_limits):
        settled = settle(query, analyzer)
        if settled is not query and _is_accepted(settled.text, analyzer):
            query = settled
    return query


def _is_accepted(query: str, analyzer: Analyzer) -> bool:
    """Whether Spark accepts a query. It does not where a column that breaks ties cannot be read, as in correlated subqueries."""
    try:
        analyzer.columns(query)
    except AnalysisFailed:
        return False
    return True
