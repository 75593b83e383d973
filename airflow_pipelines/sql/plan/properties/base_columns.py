"""The relations' columns that the expressions of a node are, and the columns of its relation that a node reads."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select
from airflow_pipelines.sql.plan.ir.lookup import RelationColumn
from airflow_pipelines.sql.syntax.dialect import DIALECT


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


def column_name(expression: Expression, alias: str = "", kind: str | None = None) -> str | None:
    """Return the name of the column that an expression is, or None if it is any other expression.

    :param expression: the expression
    :param alias: the alias by which the column's source may be named
    :param kind: a type; casts to it do not count
    """
    if expression.tree is None:
        return None
    tree = expression.tree.unnest()
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
    expressions = [*(item.text for item in node.items), *([node.where] if node.where else []), *node.laterals]
    trees = [expression.tree for expression in expressions if expression.tree is not None]
    if len(trees) < len(expressions):
        return None
    if any(not isinstance(star.parent, exp.Count) for tree in trees for star in tree.find_all(exp.Star)):
        return None
    return frozenset(identifier.name for tree in trees for identifier in tree.find_all(exp.Identifier))
