"""The DEFAULTs that are literals, which are read without Spark: constants, signed or typed ones, and arithmetic on them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from airflow_pipelines.rows.formats.values import text_converter
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.syntax.dialect import DIALECT
from airflow_pipelines.sql.values.durations import microseconds, months

_OF_TEXTS = frozenset({"DATE", "TIME", "TIMESTAMP"})
"""The types whose literals are strings preceded by the type."""


def is_literal(column: Column) -> bool:
    """Return True if the text of a DEFAULT is a literal of the column's type.

    :param column: a column with a DEFAULT
    """
    kind = column.type
    if kind.is_interval:
        return True
    tree = sqlglot.parse_one(column.default or "", read=DIALECT)
    if isinstance(tree, exp.Cast) and tree.this.is_string:
        return kind.name in _OF_TEXTS and tree.to.this.name == kind.name
    if isinstance(tree, exp.Neg):
        tree = tree.this
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return kind.is_floating or (kind.is_signed_integer and tree.name.isdecimal())
    if isinstance(tree, exp.Literal):
        return kind.is_text and not kind.is_padded and kind.precision is None
    return isinstance(tree, exp.Null) or (isinstance(tree, exp.Boolean) and kind.is_boolean)


def literal_value(column: Column) -> Any:
    """Read the DEFAULT of a column that is a literal.

    :param column: a column for which :func:`is_literal` holds
    :returns: the value in Python, or None for NULL
    :raises ValueError: if it is not a value of the column's type
    """
    written = str(column.default).strip()
    if column.type.is_interval and written.upper() != "NULL":
        return _interval(column.type, written)
    text = constant_text(written)
    return None if text is None else text_converter(column.type)(text)


def constant_text(expression: str) -> str | None:
    """Return the value of a constant as text, as in CSV. The reader of the text applies the type of a typed literal.

    :param expression: SQL text
    :returns: the text, None for NULL
    :raises ValueError: if the expression is not a constant of these kinds
    """
    try:
        tree: Any = simplify(sqlglot.parse_one(expression, read=DIALECT), dialect=DIALECT)
    except SqlglotError as error:
        raise ValueError(str(error)) from error
    while isinstance(tree, (exp.Paren, exp.Cast)):
        tree = tree.this
    negative = isinstance(tree, exp.Neg)
    if negative:
        tree = tree.this
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Boolean):
        return "true" if tree.this else "false"
    if isinstance(tree, exp.Literal):
        text = tree.this if tree.is_string else format(Decimal(tree.this), "f")
        return f"-{text}" if negative else text
    raise ValueError("only literals, and arithmetic on them, can be evaluated here")


def _interval(kind: ColumnType, written: str) -> int:
    """Read a number of months or of microseconds."""
    read = months if kind.is_year_month_interval else microseconds
    length = read(written.removeprefix("-"))
    return -length if written.startswith("-") else length
