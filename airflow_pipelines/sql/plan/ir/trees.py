"""The trees of the expressions that nodes hold as text."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from sqlglot import exp

from airflow_pipelines.rows.expressions.columns import columns_read
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


def columns_in(texts: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the columns that some expressions read.

    :param texts: Spark SQL
    :param names: the columns that there are
    :returns: those of the names that one of the expressions reads, in their order; all if only Spark understands an expression

    >>> columns_in(["a + b", "s.a"], ["a", "b", "c", "s"])
    ['a', 'b', 's']
    """
    read: set[str] = set()
    for text in texts:
        mentioned = _names_in(text)
        if mentioned is None:
            return list(names)
        read |= mentioned
    return [name for name in names if name in read]


@functools.lru_cache(maxsize=10_000)
def _names_in(text: str) -> frozenset[str] | None:
    tree = tree_of(text)
    return None if tree is None else frozenset(part for name in columns_read(tree) for part in name)
