"""A pass that derives the columns by which a top-k node ranks, if it ranks by columns without expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.sql.plan.expressions import function_name
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.ranking import OrderColumn, RankFunction, Ranking
from airflow_pipelines.sql.plan.ir.stage import Stage

_FUNCTIONS = {function.value: function for function in RankFunction}


def derive_rankings(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Add the ranking of a top-k stage to its node.

    :param stage: a stage that no pass changes any more
    """
    if not isinstance(stage.node, AppendOnlyTopK):
        return stage
    return replace(stage, node=replace(stage.node, ranking=ranking(stage.node.rank, stage.node.source.columns)))


def ranking(function: Expression, columns: Sequence[str]) -> Ranking | None:
    """Return the ranking that a window function describes.

    :param function: the function, over columns by their bare names
    :param columns: these names
    :returns: None if it ranks by an expression, or if ROW_NUMBER may rank rows that are equal in all columns that it names, so that
     their order is undefined
    """
    if function.tree is None:
        return None
    window = function.tree.unnest()
    kind = _FUNCTIONS.get(function_name(window.this) or "") if isinstance(window, exp.Window) else None
    ordered = window.args.get("order")
    if kind is None or ordered is None or window.args.get("spec") is not None:
        return None
    partition = [_column(part, columns) for part in window.args.get("partition_by") or ()]
    order = [_order(part, columns) for part in ordered.expressions]
    names = tuple(name for name in partition if name is not None)
    parts = tuple(part for part in order if part is not None)
    if len(names) < len(partition) or len(parts) < len(order):
        return None
    if kind is RankFunction.ROW_NUMBER and set(columns) - set(names) - {part.name for part in parts}:
        return None
    return Ranking(kind, names, parts)


def _order(tree: exp.Expr, columns: Sequence[str]) -> OrderColumn | None:
    name = _column(tree.this, columns) if isinstance(tree, exp.Ordered) else None
    if name is None:
        return None
    # The parser makes the dialect's default order of NULL explicit: NULL is the least value.
    return OrderColumn(name, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first")))


def _column(tree: exp.Expr, columns: Sequence[str]) -> str | None:
    tree = tree.unnest()
    return tree.name if isinstance(tree, exp.Column) and not tree.table and tree.name in columns else None
