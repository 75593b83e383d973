"""The rewrite of constructs that Spark's grammar lacks and whose meaning depends on the columns of relations."""

from __future__ import annotations

from collections.abc import Callable

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.asof import asof_joins
from airflow_pipelines.sql.rewrite.bare_clock_calls import bare_clock_calls
from airflow_pipelines.sql.rewrite.null_division import null_divisions
from airflow_pipelines.sql.rewrite.ordinality import name_fields_of_elements
from airflow_pipelines.sql.rewrite.outer_unnest import outer_unnests_of_maps
from airflow_pipelines.sql.rewrite.stars import expand_star_replace
from airflow_pipelines.sql.rewrite.time_windows import time_windows
from airflow_pipelines.sql.syntax.edits import Edited

PASSES: tuple[Callable[[Edited, Analyzer], Edited], ...] = (
    bare_clock_calls,
    lambda query, _analyzer: time_windows(query),
    asof_joins,
    expand_star_replace,
    null_divisions,
    outer_unnests_of_maps,
    name_fields_of_elements,
)
"""The passes in their order. Each takes the output of the one before it."""


def to_spark_syntax(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite bare calls of the clock, time windows, ASOF joins, stars with REPLACE, DIV_NULL, and UNNEST that depends on types.

    :param query: folded text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    :returns: the query in Spark's syntax
    :raises SyntaxFailure: if a construct is used in a wrong way; offsets are those of the query as first written
    """
    for rewrite in PASSES:
        query = rewrite(query, analyzer)
    return query
