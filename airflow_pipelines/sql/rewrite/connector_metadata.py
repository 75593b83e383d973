"""CONNECTOR_METADATA() in a DEFAULT: the metadata that a transport gives about a record's origin."""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp

from airflow_pipelines.sql.rewrite.token_walker import mentions
from airflow_pipelines.sql.syntax.dialect import DIALECT

METADATA: Final = "__connector_metadata"
"""The column with the metadata of a record, a map of variants by name, if a DEFAULT reads them."""
_NAME: Final = "connector_metadata"
_NONE: Final = "CAST(NULL AS MAP<STRING, VARIANT>)"


def reads_metadata(expression: str) -> bool:
    """Return True if an expression calls the function.

    :param expression: Spark SQL that may call it, though Spark does not know it
    """
    return mentions(expression, _NAME) and _with(expression, METADATA) != _with(expression, _NONE)


def with_metadata(expression: str) -> str:
    """Return an expression that reads the metadata of a record from :data:`METADATA`.

    :param expression: Spark SQL that may call the function
    """
    return _with(expression, METADATA)


def without_metadata(expression: str) -> str:
    """Return an expression in which all metadata are NULL, for records without known metadata.

    :param expression: Spark SQL that may call the function
    """
    return _with(expression, _NONE)


def _with(expression: str, metadata: str) -> str:
    if not mentions(expression, _NAME):
        return expression

    def replace_call(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name.lower() == _NAME and not node.expressions:
            return sqlglot.parse_one(metadata, read=DIALECT)
        return node

    return sqlglot.parse_one(expression, read=DIALECT).transform(replace_call).sql(dialect=DIALECT)
