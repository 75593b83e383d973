"""A pass that derives the relations whose rows make up the input of an aggregate over a union."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, UnionPart
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Select, UnionAll
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.passed_rows import passed_rows
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.syntax.dialect import DIALECT


def derive_union_parts(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Add the parts of an aggregate's input to the aggregate.

    :param stage: a stage that no pass changes any more
    """
    if not isinstance(stage.node, Aggregate):
        return stage
    return replace(stage, node=replace(stage.node, union_parts=union_parts(stage.node.input)))


def union_parts(node: Select) -> tuple[UnionPart, ...]:
    """Return the parts of a block over a union, or an empty tuple if the block has another form.

    Each part may only compute columns of one relation.

    :param node: the input of an aggregate
    """
    if len(node.sources) != 1 or node.where is not None or node.laterals or node.temporal_filters:
        return ()
    (source,) = node.sources
    if not isinstance(source.node, UnionAll):
        return ()
    places = {f"{quote(source.alias)}.{quote(name)}": place for place, name in enumerate(source.node.columns)}
    if not all(item.text in places for item in node.items):
        return ()
    wanted = {item.name: places[item.text] for item in node.items}
    parts = [_part(part, wanted) for part in source.node.parts]
    usable = tuple(part for part in parts if part is not None)
    return usable if len(usable) == len(parts) else ()


def _part(node: Linear, wanted: Mapping[str, int]) -> UnionPart | None:
    """Return one part of a union, or None if it does more than compute columns of a relation.

    :param wanted: the position in the part of each column of the aggregate's input
    """
    match node:
        case Select(sources=(source,), where=None, laterals=(), temporal_filters=()):
            below = passed_rows(source.node)
        case _:
            return None
    if below is None:
        return None
    names = {column: f"__u{at}" for at, column in enumerate(below.columns)}
    values: dict[Expression, Expression | None] = {}
    for name, place in wanted.items():
        tree = node.items[place].text.tree
        if tree is None:
            return None
        if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Null):
            values[Expression(name)] = None
            continue
        if not all(column.table == source.alias and len(column.parts) == 2 and column.name in names for column in _columns(tree)):
            return None
        renamed = tree.transform(lambda part: exp.column(names[part.name]) if isinstance(part, exp.Column) else part)
        values[Expression(name)] = Expression(renamed.sql(dialect=DIALECT))
    return UnionPart(below.relation, {names[column]: stored for column, stored in below.columns.items()}, values)


def _columns(tree: exp.Expr) -> list[exp.Column]:
    return list(tree.find_all(exp.Column))
