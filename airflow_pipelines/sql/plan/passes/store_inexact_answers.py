"""A pass that stores the answers of keyed stages whose floating-point sums depend on the order of addition in their last digits.

The former answer of such a query cannot be computed again: it may differ in its last digits, and its old rows would never be
removed. So the answer is stored and read back. If its columns do not include the keys, the query is recomputed as a whole and
compared with the stored answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, function_name, sql
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql

_SUMS = frozenset({"avg", "mean", "sum", "try_avg", "try_sum"})
"""Aggregates that are exact over integers and decimals. (AVG of integers adds DOUBLEs that represent them exactly.)"""
_ROUNDED = frozenset({
    "corr", "covar_pop", "covar_samp", "kurtosis", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy", "skewness", "std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance",
    "variance_pop",
})  # fmt: skip
"""Aggregates that are rounded over arguments of any type."""


def store_inexact_answers(stages: tuple[Stage, ...], builder: Builder) -> tuple[Stage, ...]:
    """Make keyed stages store their answers, or recompute them as a whole, where computing twice may give different digits.

    :param stages: the stages of one view, in order
    :param builder: the plan, which answers about types
    """
    return tuple(_make_steady(stage, stage.node, builder) if isinstance(stage.node, AffectedKeys) else stage for stage in stages)


def _make_steady(stage: Stage, node: AffectedKeys, builder: Builder) -> Stage:
    tree = node.query.parse()
    if not node.key_types or not any(_is_rounded(call, node, builder) for call in _calls(tree)):
        return stage
    for source in node.sources:
        if source.keys and _shows_keys(tree, source, node.columns):
            return replace(stage, node=replace(node, remembered=source.keys))
    sources = tuple(replace(source, keys=()) for source in node.sources)
    return replace(stage, node=replace(node, sources=sources, key_types=()))


def _calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    return (call for call in tree.walk() if function_name(call) in _SUMS | _ROUNDED)


def _is_rounded(call: exp.Expr, node: AffectedKeys, builder: Builder) -> bool:
    if function_name(call) in _ROUNDED:
        return True
    arguments = [part for part in call.iter_expressions() if not isinstance(part, exp.Distinct)]
    arguments += [part for clause in call.find_all(exp.Distinct) for part in clause.expressions]
    items = ", ".join(f"{sql(argument)} AS `a{at}`" for at, argument in enumerate(arguments))
    rows = " CROSS JOIN ".join(f"({linear_to_sql(source.node)}) AS `{source.alias}`" for source in node.sources)
    try:
        return any(kind in {"float", "double"} for _, kind in builder.types(f"SELECT {items} FROM {rows}"))
    except NotIncremental:
        # The argument reads other relations than the sources, whose types are not known here.
        return True


def _shows_keys(tree: exp.Expr, source: KeyedSource, columns: Sequence[str]) -> bool:
    """Return True if the answer has all columns that a source's keys read, under the same names."""
    if not isinstance(tree, exp.Select):
        return False
    shown = {
        name
        for name, item in zip(columns, tree.expressions, strict=False)
        if isinstance(item.unalias(), exp.Column) and (item.unalias().table, item.unalias().name) == (source.alias, name)
    }
    read = {column.name for key in source.keys for column in key.parse().find_all(exp.Column)}
    return read <= shown
