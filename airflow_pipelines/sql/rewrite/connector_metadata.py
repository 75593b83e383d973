"""CONNECTOR_METADATA() in a DEFAULT: what a transport says of where a record came from."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from airflow_pipelines.sql.rewrite.token_walker import mentions
from airflow_pipelines.sql.syntax.dialect import DIALECT

_NAME = "connector_metadata"


def without_metadata(expression: str) -> str:
    """An expression in which all metadata are NULL: no transport has any.

    :param expression: Spark SQL that may call the function, which Spark does not know
    """
    if not mentions(expression, _NAME):
        return expression
    return sqlglot.parse_one(expression, read=DIALECT).transform(_replaced).sql(dialect=DIALECT)


def _replaced(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() == _NAME and not node.expressions:
        return sqlglot.parse_one("CAST(NULL AS MAP<STRING, STRING>)", read=DIALECT)
    return node
