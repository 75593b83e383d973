"""The columns that expressions read."""

from __future__ import annotations

from typing import TypeAlias

from sqlglot import exp

ColumnName: TypeAlias = tuple[str, ...]
"""The name of a column in parts, such as those of ``orders.price``."""


def column_name(tree: exp.Expr) -> ColumnName | None:
    """Return the name of the column that an expression is, maybe in parentheses, or None for any other one.

    >>> from sqlglot import parse_one
    >>> column_name(parse_one("((orders.price))"))
    ('orders', 'price')
    >>> column_name(parse_one("(a) + (b)"))
    """
    bare = tree.unnest()
    return name_of(bare) if isinstance(bare, exp.Column) else None


def columns_read(tree: exp.Expr) -> frozenset[ColumnName]:
    """Return the names of the columns that an expression reads."""
    return frozenset(map(name_of, tree.find_all(exp.Column)))


def name_of(column: exp.Column) -> ColumnName:
    """Return the name of a column."""
    return tuple(part.name for part in column.parts)
