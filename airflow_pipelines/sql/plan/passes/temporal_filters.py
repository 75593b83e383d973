"""A pass that marks temporal filters (comparisons with a marker), so that a move of the marker reads only the rows it passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.blocks import map_blocks
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Scan, Select, TemporalFilter
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.syntax.dialect import DIALECT

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)


def mark_temporal_filters(stage: Stage, markers: Mapping[str, Marker]) -> Stage:
    """Mark the temporal filters of a stage's blocks.

    :param stage: a stage that no pass changes any more
    :param markers: the markers that the stage may read, by relation
    """
    # A recursion evaluates its body for all rows of a delta, and an append-only source has no marker.
    if not stage.reads & markers.keys() or isinstance(stage.node, Recursive | AppendOnlyTopK):
        return stage
    return replace(stage, node=map_blocks(stage.node, lambda block: _with_temporal_filters(block, markers)))


def _with_temporal_filters(node: Select, markers: Mapping[str, Marker]) -> Select:
    if len(node.sources) < 2 or node.where is None:
        return node
    others = [expression.tree for expression in (*(item.text for item in node.items), *node.laterals)]
    trees = [tree for tree in others if tree is not None]
    if node.where.tree is None or len(trees) < len(others):
        # A block that cannot be parsed here is evaluated by the general rule of joins.
        return node
    filters: list[TemporalFilter] = []
    for at, source in enumerate(node.sources):
        if isinstance(source.node, Scan) and source.node.relation in markers:
            filters += _filters(node, at, trees, list(_conjuncts(node.where.tree)))
    return replace(node, temporal_filters=tuple(filters))


def _filters(node: Select, at: int, others: Sequence[exp.Expr], conjuncts: list[exp.Expr]) -> list[TemporalFilter]:
    """Return the comparisons with the source ``at``, or an empty list if it is used in any other way.

    :param others: the items and the ``LATERAL VIEW`` clauses of the block
    """
    alias = node.sources[at].alias
    if any(_names(tree, alias) for tree in others):
        return []
    comparisons = []
    for conjunct in conjuncts:
        if not _names(conjunct, alias):
            continue
        other = _find_compared(conjunct, alias)
        if other is None or any(True for _ in other.find_all(exp.Query)):
            return []
        comparisons.append(TemporalFilter(at, Expression(other.sql(dialect=DIALECT)), _column(node, other)))
    return comparisons


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        yield exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
        yield exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
    else:
        yield condition


def _find_compared(conjunct: exp.Expr, alias: str) -> exp.Expr | None:
    """Return the expression that a comparison compares the marker's column with, or None if it is no such comparison."""
    if not isinstance(conjunct, _COMPARISONS):
        return None
    for one, other in ((conjunct.left.unnest(), conjunct.right.unnest()), (conjunct.right.unnest(), conjunct.left.unnest())):
        if isinstance(one, exp.Column) and one.table == alias and not _names(other, alias):
            return other
    return None


def _names(tree: exp.Expr, alias: str) -> bool:
    """Return True if a tree reads the source, or has a column that may be the source's."""
    return any(column.table in ("", alias) for column in tree.find_all(exp.Column))


def _column(node: Select, tree: exp.Expr) -> tuple[str, str] | None:
    if not isinstance(tree, exp.Column):
        return None
    for source in node.sources:
        if source.alias == tree.table and isinstance(source.node, Scan):
            return source.node.relation, tree.name
    return None
