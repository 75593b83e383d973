"""The check with Spark that a rewritten tree keeps the query's meaning, because sqlglot may print another query than it read."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.expressions import NotIncremental, Unplannable, sql

_GIVEN = "_col_"
"""The prefix of the names that sqlglot gives to columns without one."""


def require_same(query: str, tree: exp.Expr, analyzer: Analyzer, reason: str) -> None:
    """Refuse a tree unless Spark surely reads it as the query.

    :param query: Spark SQL
    :param tree: a tree that was rewritten
    :param analyzer: the analyzer, which answers about Spark's view of queries
    :param reason: the text of the error if the tree means something else
    :raises NotIncremental: if the tree may mean something else, or Spark cannot plan the query itself
    """
    if analyzer.same_plan(query, sql(tree)):
        return
    complaint = analyzer.planning_error(query)
    if complaint is not None:
        raise Unplannable(f"Spark cannot plan the query: {complaint}")
    raise NotIncremental(reason)


def without_given_names(tree: exp.Expr) -> exp.Expr:
    """Return a copy without the names that sqlglot gives to the columns of subqueries in expressions, since Spark gives others."""
    copy = tree.copy()
    for select in copy.find_all(exp.Select):
        around = select.parent
        while isinstance(around, exp.Subquery):
            around = around.parent
        if around is not None and not isinstance(around, exp.From | exp.Join | exp.Lateral | exp.CTE | exp.SetOperation):
            for item in select.expressions:
                if isinstance(item, exp.Alias) and item.alias.startswith(_GIVEN):
                    item.replace(item.this)
    return copy
