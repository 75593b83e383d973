"""The expressions of nodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.expressions.columns import ColumnName, column_name, columns_read
from airflow_pipelines.sql.plan.expressions import is_generator
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query


class Expression(str):
    """An expression of a node: its text, with which Spark is asked, and its tree.

    Nodes are compared, hashed and described in layouts by the text. The planner's own trees are rewritten in place, so that a node
    has a tree of its own, which is parsed when it is first needed and shared by equal expressions.

    >>> price = Expression("orders.price * 2")
    >>> f"SELECT {price}"
    'SELECT orders.price * 2'
    >>> price.tree.sql(), sorted(price.names_read)
    ('orders.price * 2', ['orders', 'price'])
    """

    __slots__ = ()

    @classmethod
    def column(cls, *parts: str) -> Expression:
        """Return the expression of a column.

        >>> Expression.column("s", "price")
        '`s`.`price`'

        :param parts: the parts of its name, the last one the column
        """
        return cls(".".join(quote(part) for part in parts))

    @property
    def tree(self) -> exp.Expr | None:
        """The tree, which must not be changed; None for text that only Spark understands, or that nests too deep for the parser."""
        return _tree_of(type(self), str(self))

    @property
    def column_name(self) -> ColumnName | None:
        """The parts of the name of the column that the expression is; None for any other expression."""
        return None if self.tree is None else column_name(self.tree)

    @property
    def names_read(self) -> frozenset[str] | None:
        """The parts of the names of all columns that the expression reads; None if it may read any."""
        return _names_of(type(self), str(self))

    @property
    def may_give_several_rows(self) -> bool:
        """True if the expression may give many rows for one.

        >>> Expression("INLINE(a)").may_give_several_rows, Expression("a = 'INLINE(b)'").may_give_several_rows
        (True, False)
        """
        return self.tree is None or is_generator(self.tree)

    def parse(self) -> exp.Expr:
        """Return a new tree, which the caller may change.

        :raises SyntaxFailure: if the text is not one expression
        """
        tree: exp.Expr = parse_query(f"SELECT {self}").expressions[0]
        return tree


class QueryExpression(Expression):
    """A whole query of a node."""

    __slots__ = ()

    def parse(self) -> exp.Expr:
        """Return a new tree, see :meth:`Expression.parse`."""
        return parse_query(self)


class WhereClause(Expression):
    """The condition of a block, without the keyword WHERE."""

    __slots__ = ()

    def parse(self) -> exp.Expr:
        """Return a new tree, see :meth:`Expression.parse`."""
        tree: exp.Expr = parse_query(f"SELECT 1 WHERE {self}").args["where"].this
        return tree


class LateralView(Expression):
    """A ``LATERAL VIEW`` clause."""

    __slots__ = ()

    def parse(self) -> exp.Expr:
        """Return a new tree, see :meth:`Expression.parse`."""
        tree: exp.Expr = parse_query(f"SELECT 1 FROM t {self}").args["laterals"][0]
        return tree


def columns_in(expressions: Iterable[Expression], names: Iterable[str]) -> list[str]:
    """Return the columns that some expressions read.

    :param expressions: expressions, and ``LATERAL VIEW`` clauses, which read columns, too
    :param names: the columns that there are
    :returns: those of the names that one of the expressions reads, in their order; all if one has a star for columns, or is
        understood by Spark only

    >>> read = [Expression("a + b"), Expression("s.a"), LateralView("LATERAL VIEW EXPLODE(c) t AS e")]
    >>> columns_in(read, ["a", "b", "c", "d", "s"])
    ['a', 'b', 'c', 's']
    """
    read: set[str] = set()
    for expression in expressions:
        if expression.names_read is None:
            return list(names)
        read |= expression.names_read
    return [name for name in names if name in read]


@functools.lru_cache(maxsize=10_000)
def _tree_of(kind: type[Expression], text: str) -> exp.Expr | None:
    try:
        return kind(text).parse()
    except (SyntaxFailure, RecursionError):
        return None


@functools.lru_cache(maxsize=10_000)
def _names_of(kind: type[Expression], text: str) -> frozenset[str] | None:
    tree = _tree_of(kind, text)
    if tree is None or any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    return frozenset(part for name in columns_read(tree) for part in name)
