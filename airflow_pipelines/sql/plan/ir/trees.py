"""The trees of the expressions that nodes hold as text."""

from __future__ import annotations

import functools

from sqlglot import exp

from airflow_pipelines.sql.plan.expression_trees import parse_expression
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure


@functools.lru_cache(maxsize=10_000)
def tree_of(text: str) -> exp.Expr | None:
    """Return the tree of an expression of a node; it must not be changed.

    :param text: Spark SQL
    :returns: None for text that only Spark understands, or that nests too deep for the parser
    """
    try:
        return parse_expression(text)
    except (SyntaxFailure, RecursionError):
        return None
