"""Asks Spark whether a rewritten tree still means what the query says, because sqlglot may print something else than it read."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.expressions import NotIncremental, Unplannable, sql

_GIVEN = "_col_"
"""How the names begin that sqlglot gives to columns without one."""


def require_same(query: str, tree: exp.Expr, analyzer: Analyzer, reason: str) -> None:
    """Refuse a tree that Spark does not surely read as the query.

    :param query: Spark SQL
    :param tree: a tree that was rewritten
    :param analyzer: answers about Spark's view of queries
    :param reason: what the refusal says when it means something else
    :raises NotIncremental: also when Spark cannot plan the query itself
    """
    if analyzer.same_plan(query, sql(tree)):
        return
    complaint = analyzer.planning_error(query)
    if complaint is not None:
        raise Unplannable(f"Spark cannot plan the query: {complaint}")
    raise NotIncremental(reason)


def without_given_names(tree: exp.Expr) -> exp.Expr:
    """A copy without the names that sqlglot gives to the columns of subqueries in expressions, since Spark gives others."""
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
