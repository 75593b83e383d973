"""The replacement of rankings over append-only relations, of which only the first rows per key are read, by top-k nodes.

A row behind the first k of its key stays behind them whatever is added, so that only k rows per key need to be stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_pipelines.sql.plan.blocks.query_blocks import is_key_type, without_source
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import conjuncts, function_name
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, Shape
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure

_RANKS = frozenset({"row_number", "rank", "dense_rank"})


def append_only_top_k(stages: tuple[Stage, ...], builder: Builder) -> tuple[Stage, ...]:
    """Replace keyed stages by :class:`AppendOnlyTopK` where only the first rows per key of a ranking are read.

    :param stages: the stages of one view, in order; the last is the view's own
    :param builder: the plan, which knows the nodes that never lose a row
    """
    made = {stage.relation: stage for stage in stages}
    for stage in stages:
        rank = _ranking(stage.node)
        comparable = all(is_key_type(kind) for _, kind in stage.columns)
        if (
            isinstance(stage.node, AffectedKeys)
            and rank is not None
            and comparable
            and builder.is_append_only(stage.node.sources[0].node)
        ):
            most = _greatest_rank(stage, stages)
            if most is not None:
                source = stage.node.sources[0]
                node = AppendOnlyTopK(source.node, source.keys, stage.node.key_types, rank, most, stage.node.columns[-1])
                made[stage.relation] = replace(stage, node=node)
                made = {name: _with_sure_limits(other, stage.relation, node) for name, other in made.items()}
                made = _merge_source(stage.relation, node, made)
    return tuple(made.values())


def _ranking(node: Node) -> Expression | None:
    """Return the ranking function of a node that only adds to its source's rows their rank within their key."""
    if not isinstance(node, AffectedKeys) or node.shape is not Shape.WINDOW or len(node.sources) != 1 or not node.key_types:
        return None
    if len(node.columns) != len(node.sources[0].node.columns) + 1:
        return None
    try:
        last = node.query.parse().expressions[-1].unalias()
    except SyntaxFailure:
        return None
    if not isinstance(last, exp.Window) or function_name(last.this) not in _RANKS:
        return None
    return without_source(last)


def _greatest_rank(stage: Stage, stages: Sequence[Stage]) -> int | None:
    """Return the greatest rank of a ranking stage that other stages read, or None if all are read, or several stages read it."""
    uses = [_rank_use(other.node, stage.relation, stage.columns[-1][0]) for other in stages]
    readers = [use for use in uses if use is not None]
    return readers[0].most if len(readers) == 1 else None


@dataclass(frozen=True, slots=True)
class _RankUse:
    """The ranks of a relation that a node reads.

    :param most: the greatest rank that it reads, None for all
    :param names: the columns of the node that are ranks
    """

    most: int | None = None
    names: frozenset[str] = frozenset()


def _rank_use(node: Node | Linear, relation: str, place: str) -> _RankUse | None:
    """Return the use of ``relation``, whose ranks are in the column ``place``, by a node, or None if it does not read it."""
    if relation not in node.reads:
        return None
    match node:
        case Scan():
            return _RankUse(names=frozenset({place}))
        case Aggregate():
            return _rank_use(node.input, relation, place)
        case Select():
            below = {source.alias: _rank_use(source.node, relation, place) for source in node.sources}
            readers = [(alias, use) for alias, use in below.items() if use is not None]
            return _narrow_use(node, *readers[0]) if len(readers) == 1 else _RankUse()
        case _:
            return _RankUse()


def _narrow_use(node: Select, alias: str, below: _RankUse) -> _RankUse:
    """Return the use of the ranks of a block's source ``alias``, given the use of ranks by the source itself."""
    try:
        where = node.where.parse() if node.where else None
        items = {item.name: item.text.parse() for item in node.items}
    except SyntaxFailure:
        return _RankUse(below.most)
    limits = [_limit(part.unnest(), alias, below.names) for part in conjuncts(where)]
    most = min((limit for limit in [below.most, *limits] if limit is not None), default=None)
    return _RankUse(most, frozenset(name for name, item in items.items() if _is_rank(item, alias, below.names)))


def _limit(condition: exp.Expr, alias: str, ranks: Set[str]) -> int | None:
    """Return the greatest rank for which a condition may hold, if it compares the rank with a number."""
    if isinstance(condition, exp.Between) and _is_rank(condition.this, alias, ranks):
        return _number(condition.args["high"])
    if not isinstance(condition, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    mirrored = _is_rank(condition.right, alias, ranks)
    left, right = (condition.right, condition.left) if mirrored else (condition.left, condition.right)
    number = _number(right) if _is_rank(left, alias, ranks) else None
    if number is None or isinstance(condition, (exp.LT | exp.LTE) if mirrored else (exp.GT | exp.GTE)):
        return None
    return number - 1 if isinstance(condition, exp.LT | exp.GT) else number


def _is_rank(tree: exp.Expr, alias: str, ranks: Set[str]) -> bool:
    tree = tree.unnest()
    return isinstance(tree, exp.Column) and tree.table == alias and tree.name in ranks


def _number(tree: exp.Expr) -> int | None:
    tree = tree.unnest()
    return int(tree.name) if isinstance(tree, exp.Literal) and tree.is_int else None


def _with_sure_limits(stage: Stage, relation: str, ranks: AppendOnlyTopK) -> Stage:
    """Mark the blocks of a stage whose conditions hold for all rows of ``relation``, since only such rows are kept for it."""
    match stage.node:
        case Select() as node:
            return replace(stage, node=_with_sure_limit(node, relation, ranks))
        case Aggregate(input=Select() as below) as node:
            return replace(stage, node=replace(node, input=_with_sure_limit(below, relation, ranks)))
        case _:
            return stage


def _with_sure_limit(node: Select, relation: str, ranks: AppendOnlyTopK) -> Select:
    sources = tuple(
        replace(source, node=_with_sure_limit(source.node, relation, ranks)) if isinstance(source.node, Select) else source
        for source in node.sources
    )
    return replace(node, sources=sources, where_holds=node.where_holds or _is_sure_of_all(node, relation, ranks))


def _is_sure_of_all(node: Select, relation: str, ranks: AppendOnlyTopK) -> bool:
    """Return True if the WHERE of a block holds for all rows of ``relation``."""
    names = {source.alias: use.names for source in node.sources if (use := _rank_use(source.node, relation, ranks.place))}
    if not node.where or not names:
        return False
    conditions = [part.unnest() for part in conjuncts(node.where.parse())]
    return all(any(_is_sure(part, alias, places, ranks.most) for alias, places in names.items()) for part in conditions)


def _is_sure(condition: exp.Expr, alias: str, ranks: Set[str], most: int) -> bool:
    """Return True if a condition holds for all ranks from 1 to ``most``."""
    limit = _limit(condition, alias, ranks)
    if limit is None or limit < most:
        return False
    if isinstance(condition, exp.Between):
        least = _number(condition.args["low"])
        return least is not None and least <= 1
    return not isinstance(condition, exp.EQ) or limit == 1


def _merge_source(relation: str, node: AppendOnlyTopK, made: Mapping[str, Stage]) -> dict[str, Stage]:
    """Merge the block that only the stage of ``relation`` reads into it, because nothing else needs the block's contents."""
    below = made.get(node.source.relation) if isinstance(node.source, Scan) else None
    if below is None or not isinstance(below.node, Select) or sum(below.relation in other.reads for other in made.values()) > 1:
        return dict(made)
    kept = {name: stage for name, stage in made.items() if name != below.relation}
    return {**kept, relation: replace(made[relation], node=replace(node, source=below.node))}
