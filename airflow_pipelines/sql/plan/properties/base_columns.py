"""The relations' columns that the expressions of a node are, and the columns of its relation that a node reads."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.expression_trees import parse_condition, parse_expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select
from airflow_pipelines.sql.plan.ir.lookup import RelationColumn
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure, parse_query


def base_column(node: Linear, name: str) -> RelationColumn | None:
    """Return the relation's column that a column of a node is, unchanged.

    :param node: a linear node
    :param name: the name of one of its columns
    :returns: None if it is an expression, or comes from several relations
    """
    match node:
        case Scan() if name in node.columns:
            return node.relation, name
        case Select() if len(node.sources) == 1 and not node.laterals:
            for item in node.items:
                if item.name == name:
                    (source,) = node.sources
                    inner = column_name(item.text, source.alias)
                    return None if inner is None else base_column(source.node, inner)
    return None


def column_name(text: str, alias: str = "", kind: str | None = None) -> str | None:
    """Return the name of the column that an expression is, or None if it is any other expression.

    :param text: Spark SQL
    :param alias: the alias by which the column's source may be named
    :param kind: a type; casts to it do not count
    """
    try:
        tree = parse_expression(text).unnest()
    except SyntaxFailure:
        return None
    # ``safe`` is TRY_CAST, which may make a value NULL.
    while kind is not None and isinstance(tree, exp.Cast) and not tree.args.get("safe") and _is_type(tree.to, kind):
        tree = tree.this.unnest()
    if not isinstance(tree, exp.Column) or len(tree.parts) > 2 or not isinstance(tree.this, exp.Identifier):
        return None
    return tree.name if tree.table in ("", alias) else None


def _is_type(tree: exp.DataType, kind: str) -> bool:
    return "".join(tree.sql(dialect=DIALECT).lower().split()) == "".join(kind.lower().split())


def columns_read(node: Linear, relation: str) -> frozenset[str] | None:
    """Return the columns of a relation that a node may read.

    :param node: a linear node
    :param relation: the relation
    :returns: None for all of them
    """
    match node:
        case Scan():
            return frozenset(node.columns) if node.relation == relation else frozenset()
        case Select() if len(node.sources) == 1 and isinstance(node.sources[0].node, Scan):
            names = _identifiers(node)
            return None if names is None else frozenset(node.sources[0].node.columns) & names
    return None


def _identifiers(node: Select) -> frozenset[str] | None:
    """Return all identifiers in a block's expressions, or None if a star may stand for columns that the block does not name."""
    try:
        trees = [parse_expression(item.text) for item in node.items]
        trees += [parse_condition(node.where)] if node.where else []
        trees += [parse_query(f"SELECT 1 FROM t {lateral}").args["laterals"][0] for lateral in node.laterals]
    except SyntaxFailure:
        return None
    if any(not isinstance(star.parent, exp.Count) for tree in trees for star in tree.find_all(exp.Star)):
        return None
    return frozenset(identifier.name for tree in trees for identifier in tree.find_all(exp.Identifier))
