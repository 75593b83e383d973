"""Replaces rankings over append-only relations, of which only the first rows per key are read, by top-k nodes.

A row that is behind the first k of its key stays behind them whatever comes, so that only the k need to be kept, not all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.clauses.query_blocks import is_key_type, unqualified
from airflow_pipelines.sql.plan.expression_trees import parse_condition, parse_expression
from airflow_pipelines.sql.plan.expressions import conjuncts, function_name
from airflow_pipelines.sql.plan.ir.nodes import Aggregate, Keyed, Linear, Node, Scan, Select, Shape, Stage, TopK, reads
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query

_RANKS = frozenset({"row_number", "rank", "dense_rank"})


def append_only_top_k(stages: tuple[Stage, ...], builder: Builder) -> tuple[Stage, ...]:
    """The stages with :class:`TopK` for those that rank rows of which only the first per key are read.

    :param stages: of one view, in order; the last is the view's own
    :param builder: knows which nodes never lose a row
    """
    made = {stage.relation: stage for stage in stages}
    for stage in stages:
        rank = _rank(stage.node)
        comparable = all(is_key_type(kind) for _, kind in stage.columns)
        if isinstance(stage.node, Keyed) and rank is not None and comparable and builder.is_append_only(stage.node.sources[0].node):
            most = _most(stage, stages)
            if most is not None:
                source = stage.node.sources[0]
                node = TopK(source.node, source.keys, stage.node.key_types, rank, most, stage.node.columns[-1])
                made[stage.relation] = replace(stage, node=node)
                made = _with_source(stage.relation, node, made)
    return tuple(made.values())


def _rank(node: Node) -> str | None:
    """The window function of a node that adds to its source's rows their place within their key, and nothing else."""
    if not isinstance(node, Keyed) or node.shape is not Shape.WINDOW or len(node.sources) != 1 or not node.key_types:
        return None
    if len(node.columns) != len(node.sources[0].node.columns) + 1:
        return None
    try:
        last = parse_query(node.query).expressions[-1].unalias()
    except SyntaxFailure:
        return None
    if not isinstance(last, exp.Window) or function_name(last.this) not in _RANKS:
        return None
    return unqualified(last)


def _most(stage: Stage, stages: Sequence[Stage]) -> int | None:
    """The last place that is read of a stage that ranks; None when all are, or it is read in several ways."""
    readings = [_reading(other.node, stage.relation, stage.columns[-1][0]) for other in stages]
    found = [reading for reading in readings if reading is not None]
    return found[0].most if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a node reads the places of a relation: up to which one, None for all; and what they are called in the node's columns."""

    most: int | None = None
    names: frozenset[str] = frozenset()


def _reading(node: Node | Linear, relation: str, place: str) -> _Reading | None:
    """How a node reads ``relation`` with its column ``place``; None when it does not."""
    if relation not in reads(node):
        return None
    match node:
        case Scan():
            return _Reading(names=frozenset({place}))
        case Aggregate():
            return _reading(node.input, relation, place)
        case Select():
            below = {source.alias: _reading(source.node, relation, place) for source in node.sources}
            found = [(alias, reading) for alias, reading in below.items() if reading is not None]
            return _narrowed(node, *found[0]) if len(found) == 1 else _Reading()
        case _:
            return _Reading()


def _narrowed(node: Select, alias: str, below: _Reading) -> _Reading:
    """What the condition and the columns of a block make of the reading of its source ``alias``."""
    try:
        where = parse_condition(node.where) if node.where else None
        items = {item.name: parse_expression(item.text) for item in node.items}
    except SyntaxFailure:
        return _Reading(below.most)
    limits = [_limit(part.unnest(), alias, below.names) for part in conjuncts(where)]
    most = min((limit for limit in [below.most, *limits] if limit is not None), default=None)
    return _Reading(most, frozenset(name for name, item in items.items() if _is_place(item, alias, below.names)))


def _limit(condition: exp.Expr, alias: str, places: Set[str]) -> int | None:
    """The greatest place for which a condition may hold, when it compares the place with a number."""
    if isinstance(condition, exp.Between) and _is_place(condition.this, alias, places):
        return _number(condition.args["high"])
    if not isinstance(condition, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    mirrored = _is_place(condition.right, alias, places)
    left, right = (condition.right, condition.left) if mirrored else (condition.left, condition.right)
    number = _number(right) if _is_place(left, alias, places) else None
    if number is None or isinstance(condition, (exp.LT | exp.LTE) if mirrored else (exp.GT | exp.GTE)):
        return None
    return number - 1 if isinstance(condition, exp.LT | exp.GT) else number


def _is_place(tree: exp.Expr, alias: str, places: Set[str]) -> bool:
    tree = tree.unnest()
    return isinstance(tree, exp.Column) and tree.table == alias and tree.name in places


def _number(tree: exp.Expr) -> int | None:
    tree = tree.unnest()
    return int(tree.name) if isinstance(tree, exp.Literal) and tree.is_int else None


def _with_source(relation: str, node: TopK, made: Mapping[str, Stage]) -> dict[str, Stage]:
    """The stages with the block that only the stage of ``relation`` reads as part of it: nobody needs the block's contents."""
    below = made.get(node.source.relation) if isinstance(node.source, Scan) else None
    if below is None or not isinstance(below.node, Select) or sum(below.relation in other.reads for other in made.values()) > 1:
        return dict(made)
    kept = {name: stage for name, stage in made.items() if name != below.relation}
    return {**kept, relation: replace(made[relation], node=replace(node, source=below.node))}
