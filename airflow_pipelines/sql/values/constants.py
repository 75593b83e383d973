"""The evaluation of constants of DEFAULT without Spark: literals, signed or typed ones, and arithmetic on literals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from airflow_pipelines.sql.syntax.dialect import DIALECT


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
