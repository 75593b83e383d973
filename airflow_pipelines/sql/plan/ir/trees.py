"""The trees of the expressions that nodes hold as text."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from sqlglot import exp

from airflow_pipelines.rows.expressions.columns import columns_read
from airflow_pipelines.sql.plan.expression_trees import parse_expression
from airflow_pipelines.sql.plan.expressions import is_generator
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query


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


def columns_in(texts: Iterable[str], names: Iterable[str], laterals: Iterable[str] = ()) -> list[str]:
    """Return the columns that some expressions read.

    :param texts: Spark SQL
    :param names: the columns that there are
    :param laterals: ``LATERAL VIEW`` clauses that read columns, too
    :returns: those of the names that one of the expressions reads, in their order; all if one has a star for columns, or is
        understood by Spark only

    >>> columns_in(["a + b", "s.a"], ["a", "b", "c", "s"], ["LATERAL VIEW EXPLODE(c) t AS e"])
    ['a', 'b', 'c', 's']
    """
    read: set[str] = set()
    for mentioned in (*map(_names_in, texts), *map(_names_in_lateral, laterals)):
        if mentioned is None:
            return list(names)
        read |= mentioned
    return [name for name in names if name in read]


@functools.lru_cache(maxsize=10_000)
def may_give_several_rows(text: str) -> bool:
    """Return True if an expression may give many rows for one.

    :param text: Spark SQL

    >>> may_give_several_rows("INLINE(a)"), may_give_several_rows("a = 'INLINE(b)'")
    (True, False)
    """
    tree = tree_of(text)
    return tree is None or is_generator(tree)


@functools.lru_cache(maxsize=10_000)
def _names_in(text: str) -> frozenset[str] | None:
    return _names_of(tree_of(text))


@functools.lru_cache(maxsize=1_000)
def _names_in_lateral(text: str) -> frozenset[str] | None:
    try:
        (lateral,) = parse_query(f"SELECT 1 FROM t {text}").args["laterals"]
    except (SyntaxFailure, RecursionError):
        return None
    return _names_of(lateral)


def _names_of(tree: exp.Expr | None) -> frozenset[str] | None:
    if tree is None or any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    return frozenset(part for name in columns_read(tree) for part in name)
