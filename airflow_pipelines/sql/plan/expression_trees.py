"""A parser for the expressions that plan nodes hold as Spark SQL text."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.syntax.dialect import parse_query


def parse_expression(text: str) -> exp.Expr:
    """Parse one expression of a node.

    :param text: Spark SQL
    :returns: a new tree, which the caller may change
    :raises SyntaxFailure: if the text is not one expression
    """
    tree: exp.Expr = parse_query(f"SELECT {text}").expressions[0]
    return tree


def parse_condition(text: str) -> exp.Expr:
    """Parse the condition of a node's WHERE.

    :param text: Spark SQL without the keyword
    :returns: a new tree, which the caller may change
    :raises SyntaxFailure: if the text is not one condition
    """
    tree: exp.Expr = parse_query(f"SELECT 1 WHERE {text}").args["where"].this
    return tree


def source_column(text: str) -> tuple[str, str] | None:
    """Return the source and the column of an expression that is just ``source.column``, or None for any other one.

    :param text: Spark SQL
    """
    tree = parse_expression(text)
    if isinstance(tree, exp.Column) and len(tree.parts) == 2 and isinstance(tree.this, exp.Identifier):
        return tree.table, tree.name
    return None
