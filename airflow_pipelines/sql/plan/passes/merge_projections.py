"""A pass that merges filters and projections into the keyed stage below them, because each stage costs Spark jobs in every step."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.expression import QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Scan, Select
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage


def merge_projections(stages: tuple[Stage, ...], _builder: Builder) -> tuple[Stage, ...]:
    """Merge each filter and projection of a keyed stage into that stage, if nothing else reads the stage.

    :param stages: the stages of one view, in order
    """
    kept: dict[str, Stage] = {}
    for stage in stages:
        below = kept.get(_find_filtered_relation(stage.node) or "")
        if below is not None and sum(below.relation in other.reads for other in stages) == 1:
            node = _merge(stage.node, below.node)
            if node is not None:
                del kept[below.relation]
                stage = replace(stage, node=node)
        kept[stage.relation] = stage
    return tuple(kept.values())


def _find_filtered_relation(node: Node) -> str | None:
    """Return the relation that a node only filters and projects, or None for any other node."""
    if not isinstance(node, Select) or len(node.sources) != 1:
        return None
    inner = node.sources[0].node
    return inner.relation if isinstance(inner, Scan) else _find_filtered_relation(inner)


def _merge(select: Node, keyed: Node) -> AffectedKeys | None:
    if not isinstance(select, Select) or not isinstance(keyed, AffectedKeys) or keyed.remembered:
        # A stored answer must keep the columns of its key.
        return None
    return replace(keyed, query=QueryExpression(_text(select, keyed)), columns=select.columns)


def _text(select: Select, keyed: AffectedKeys) -> str:
    """Return ``select`` over the answer of a keyed node, as one query over the node's sources."""
    source, inner = select.sources[0], select.sources[0].node
    if isinstance(inner, Select):
        rows = f"({_text(inner, keyed)}) AS {quote(source.alias)}"
    else:
        rows = f"({keyed.query}) AS {quote(source.alias)}({', '.join(map(quote, keyed.columns))})"
    items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in select.items) or "1 AS `__one`"
    laterals = "".join(f" {lateral}" for lateral in select.laterals)
    return f"SELECT {items} FROM {rows}{laterals}" + (f" WHERE {select.where}" if select.where else "")
