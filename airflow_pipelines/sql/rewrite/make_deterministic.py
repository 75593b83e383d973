"""The rewrite of queries whose answer depends on the order of rows, so that it depends on the rows alone.

Only then can a view be kept equal to its query: the full strategy, the incremental one and Spark's batch answer agree.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.rewrite.determinism.aggregates import deterministic_aggregates
from airflow_pipelines.sql.rewrite.determinism.choosing_aggregates import deterministic_choices
from airflow_pipelines.sql.rewrite.determinism.limits import deterministic_limits
from airflow_pipelines.sql.rewrite.determinism.window_functions import deterministic_windows
from airflow_pipelines.sql.rewrite.exact_variance import exact_variance
from airflow_pipelines.sql.syntax.edits import Edited

PASSES: tuple[Callable[[Edited, Analyzer], Edited], ...] = (
    exact_variance,
    deterministic_choices,
    deterministic_aggregates,
    deterministic_windows,
    deterministic_limits,
)
"""The passes in their order. Each takes the output of the one before it."""


def make_deterministic(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite a query so that it has exactly one answer: every tie is broken by the columns of the rows.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    :returns: the query that both strategies, and checks of their results, evaluate
    :raises SyntaxFailure: if a window function has more than one answer; offsets are those of the query as first written
    """
    for rewrite in PASSES:
        rewritten = rewrite(query, analyzer)
        if rewritten is not query and _is_accepted(rewritten.text, analyzer):
            query = rewritten
    return query


def _is_accepted(query: str, analyzer: Analyzer) -> bool:
    """Return True if Spark accepts a query.

    It refuses one in which a column that breaks ties cannot be read, as in correlated subqueries.
    """
    try:
        analyzer.columns(query)
    except AnalysisFailed:
        return False
    return True
