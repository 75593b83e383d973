"""A pass that writes out the names of struct fields.

Spark derives them from the columns that the fields are made of, which have other names in plans.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import function_name


def name_struct_fields(tree: exp.Expr, _builder: Builder) -> exp.Expr:
    """Make ``named_struct('a', t.a, 'col2', 1)`` of ``struct(t.a, 1)`` and of ``(t.a, 1)`` where that is a value.

    :param tree: a qualified query; it is changed
    :returns: the query
    """
    for node in list(tree.find_all(exp.Anonymous, exp.Tuple)):
        parts = node.expressions
        # Where all have names, Spark's plans of both functions differ in what they share.
        has_names = all(isinstance(part, exp.Alias) for part in parts)
        if _is_struct(node) and not has_names and not any(part.find(exp.Star) for part in parts):
            node.replace(_name_fields(parts))
    return tree


def _is_struct(node: exp.Expr) -> bool:
    """Return True if an expression makes a struct. Other rows in parentheses are compared as a whole, or list values or columns."""
    if isinstance(node, exp.Tuple):
        return isinstance(node.parent, exp.Func | exp.Alias) and not isinstance(node.parent, exp.Any | exp.PivotAlias)
    return function_name(node) == "struct"


def _name_fields(parts: list[exp.Expr]) -> exp.Expr:
    arguments: list[exp.Expr] = []
    for number, part in enumerate(parts, 1):
        arguments += [exp.Literal.string(_field_name(part, number)), part.unalias()]
    return exp.Anonymous(this="named_struct", expressions=arguments)


def _field_name(part: exp.Expr, number: int) -> str:
    """Return the name that Spark gives the field of a struct: that of a column, a field or an alias, else its number."""
    if isinstance(part, exp.Alias):
        return str(part.alias)
    if isinstance(part, exp.Dot):
        return str(part.expression.name)
    return str(part.name) if isinstance(part, exp.Column | exp.Identifier) else f"col{number}"
