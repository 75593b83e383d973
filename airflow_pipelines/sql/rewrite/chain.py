"""The translations of a view's query that ask Spark's analyzer: those that Spark needs, and those that settle the answer."""

from __future__ import annotations

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.asof import asof_joins
from airflow_pipelines.sql.rewrite.determinism.deterministic import break_ties
from airflow_pipelines.sql.rewrite.exact_variance import exact_moments
from airflow_pipelines.sql.rewrite.stars import replaced_stars
from airflow_pipelines.sql.rewrite.time_windows import time_windows
from airflow_pipelines.sql.syntax.edits import Edited


def spoken(query: Edited, analyzer: Analyzer) -> Edited:
    """The query in words that Spark knows: its constructs for windows of time, ASOF joins, and stars with REPLACE.

    :param query: folded text that parses
    :param analyzer: knows the relations that the query reads
    :raises SyntaxFailure: when a construct is used in a wrong way; offsets are those of the query as first written
    """
    return replaced_stars(asof_joins(time_windows(query), analyzer), analyzer)


def settled(query: Edited, analyzer: Analyzer) -> Edited:
    """The query with one answer: what both strategies, and whoever checks them, evaluate.

    :param query: Spark SQL that Spark accepts
    :param analyzer: knows the relations that the query reads
    :raises SyntaxFailure: when a window function has no one answer; offsets are those of the query as first written
    """
    return break_ties(exact_moments(query, analyzer), analyzer)
