"""The rows and groups below a waterline that no later step can change or read, so that they need not be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import singledispatch
from typing import Any

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.linear import Scan, Select
from airflow_pipelines.sql.plan.ir.markers import Marker, waterline_input
from airflow_pipelines.sql.plan.ir.retention_rule import RetentionRule
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.properties.waterlines import WaterlineAnalysis, equal_columns, least, tumbling_start
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure, parse_query


def retention_rules(
    stages: Sequence[Stage],
    analysis: WaterlineAnalysis,
    late_columns: Mapping[str, Sequence[str]],
    shown: Set[str],
    markers: Mapping[str, Marker],
) -> tuple[RetentionRule, ...]:
    """Return the retention rules of a program: the state and rows that may be dropped.

    A group whose key is below the waterline of the key never changes again, so that its state may be dropped. Rows of a relation
    may be dropped once no stage that reads the relation's contents, not only its deltas, needs them any more.

    :param stages: all stages that may be evaluated; a stage that recomputes needs all rows of what it reads
    :param analysis: the waterlines of all relations
    :param late_columns: the columns with lateness of each table
    :param shown: the relations whose contents can be queried
    :param markers: all markers, by relation
    """
    rules = []
    for stage in stages:
        closed = _find_closed_conditions(stage.node, analysis)
        if closed:
            rules.append(RetentionRule(stage.relation, " OR ".join(closed), of_state=True))
    for relation in sorted({name for stage in stages for name in stage.rereads} - shown - markers.keys()):
        readers = [stage for stage in stages if relation in stage.rereads]
        needs = [_find_unneeded(stage.node, relation, analysis, markers) for stage in readers]
        own = _own(relation, stages, late_columns)
        if own is not None and all(need is not None for need in needs):
            rules.append(RetentionRule(relation, " AND ".join(f"({need})" for need in [own, *needs]), of_state=False))
    # Without any reader a table's rows are only looked up by deletes, and late rows cannot be deleted.
    unread = late_columns.keys() - shown - {name for stage in stages for name in stage.rereads}
    rules += [RetentionRule(name, str(_own(name, stages, late_columns)), of_state=False) for name in sorted(unread)]
    return tuple(rules)


def _own(relation: str, stages: Sequence[Stage], late_columns: Mapping[str, Sequence[str]]) -> str | None:
    """Return the condition for rows that inputs cannot change any more: any row of a view, the late rows of a table.

    Return None if there is no such row.
    """
    if any(stage.relation == relation for stage in stages):
        return "TRUE"
    late = [f"{quote(column)} < {quote(waterline_input(relation, column))}" for column in late_columns.get(relation, ())]
    return " OR ".join(late) or None


@singledispatch
def _find_closed_conditions(node: Any, analysis: WaterlineAnalysis) -> list[str]:
    """Return the conditions, over a node's state columns, for states that never change again; nodes without a rule have none."""
    del node, analysis
    return []


@_find_closed_conditions.register
def _(node: Aggregate, analysis: WaterlineAnalysis) -> list[str]:
    return [f"{name} < {text}" for name, text in analysis.keys(node).items()]


@singledispatch
def _find_unneeded(node: Any, relation: str, analysis: WaterlineAnalysis, markers: Mapping[str, Marker]) -> str | None:
    """Return the condition, over a relation's columns, for rows that a node does not need, or None if it needs all.

    Kinds of nodes without a rule here need all.
    """
    del node, relation, analysis, markers
    return None


@_find_unneeded.register
def _(node: Select, relation: str, analysis: WaterlineAnalysis, markers: Mapping[str, Marker]) -> str | None:
    if len(node.sources) < 2:
        return None
    return _find_unneeded_of_join(node, relation, analysis) or _find_emitted(node, relation, markers)


@_find_unneeded.register
def _(node: Aggregate, relation: str, analysis: WaterlineAnalysis, _markers: Mapping[str, Marker]) -> str | None:
    return _find_unneeded_of_groups(node, relation, analysis)


@_find_unneeded.register
def _(node: AppendOnlyTopK, relation: str, analysis: WaterlineAnalysis, _markers: Mapping[str, Marker]) -> str | None:
    source = node.source
    return _find_unneeded_of_join(source, relation, analysis) if isinstance(source, Select) and len(source.sources) > 1 else None


def _find_unneeded_of_join(node: Select, relation: str, analysis: WaterlineAnalysis) -> str | None:
    """Return the unneeded rows of a join on columns with waterlines: rows below the waterlines of all sides meet no new row."""
    if not all(isinstance(source.node, Scan) for source in node.sources):
        return None
    columns = {(source.alias, name): text for source in node.sources for name, text in analysis.of(source.node).items()}
    aliases = {source.alias for source in node.sources}
    for group in equal_columns(node):
        known = {alias: (name, columns[alias, name]) for alias, name in sorted(group) if (alias, name) in columns}
        lowest = least([text for _, text in known.values()]) if known.keys() == aliases else None
        if lowest is None:
            continue
        mine = [
            known[source.alias][0] for source in node.sources if isinstance(source.node, Scan) and source.node.relation == relation
        ]
        return " AND ".join(f"{quote(name)} < {lowest}" for name in mine)
    return None


def _find_emitted(node: Select, relation: str, markers: Mapping[str, Marker]) -> str | None:
    """Return the unneeded rows of a view that emits final rows: those below its waterline, which it has emitted."""
    conditions = []
    for comparison in node.temporal_filters:
        source = node.sources[comparison.source].node
        marker = markers.get(source.relation) if isinstance(source, Scan) else None
        if marker is None or marker.follows_clock or comparison.column is None or comparison.column[0] != relation:
            return None
        conditions.append(f"{quote(comparison.column[1])} < {marker.text}")
    return " AND ".join(conditions) if conditions and len(node.sources) == 2 else None


def _find_unneeded_of_groups(node: Aggregate, relation: str, analysis: WaterlineAnalysis) -> str | None:
    """Return the unneeded rows of an aggregate that reads its input again: those of groups that never change again."""
    sources = node.input.sources
    if len(sources) != 1 or not isinstance(sources[0].node, Scan) or sources[0].node.relation != relation or node.input.laterals:
        return None
    below = {item.name: item.text for item in node.input.items}
    closed, known = [], analysis.keys(node)
    for key in node.keys:
        over = _substitute_items(key.text, below)
        start = tumbling_start(over) if over is not None else None
        text = known.get(key.name if start is None else f"{key.name}.`start`")
        if over is not None and text is not None:
            closed.append(f"({start or over}) < {text}")
    return " OR ".join(closed) or None


def _substitute_items(text: str, items: Mapping[str, str]) -> str | None:
    """Return an expression over a block's items as one over the columns of the block's only source."""
    try:
        holder = parse_query(f"SELECT {text} AS k")
        for column in list(holder.find_all(exp.Column)):
            inner = parse_query(f"SELECT {items[column.name]} AS k").expressions[0].this
            for below in [inner, *inner.find_all(exp.Column)]:
                if isinstance(below, exp.Column):
                    below.set("table", None)
            column.replace(inner.copy())
    except (SyntaxFailure, KeyError):
        return None
    return str(holder.expressions[0].this.sql(dialect=DIALECT))
