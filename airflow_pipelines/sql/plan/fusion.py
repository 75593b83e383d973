"""Fewer stages for the same answer: each stage costs Spark jobs in every step that changes it."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.sql.identifiers import quote
from airflow_pipelines.sql.plan.nodes import Keyed, Node, Scan, Select, Stage


def fused(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages with each filter and projection of a keyed stage, which nothing else reads, made part of that stage."""
    kept: dict[str, Stage] = {}
    for stage in stages:
        below = kept.get(_filtered(stage.node) or "")
        if below is not None and sum(below.relation in other.reads for other in stages) == 1:
            node = _over(stage.node, below.node)
            if node is not None:
                del kept[below.relation]
                stage = replace(stage, node=node)
        kept[stage.relation] = stage
    return tuple(kept.values())


def _filtered(node: Node) -> str | None:
    """The relation that a node filters and projects, if that is all it does."""
    if isinstance(node, Select) and len(node.sources) == 1 and isinstance(node.sources[0].node, Scan):
        return node.sources[0].node.relation
    return None


def _over(select: Node, keyed: Node) -> Keyed | None:
    if not isinstance(select, Select) or not isinstance(keyed, Keyed):
        return None
    alias, columns = quote(select.sources[0].alias), ", ".join(map(quote, keyed.columns))
    items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in select.items)
    laterals = "".join(f" {lateral}" for lateral in select.laterals)
    where = f" WHERE {select.where}" if select.where else ""
    query = f"SELECT {items} FROM ({keyed.query}) AS {alias}({columns}){laterals}{where}"
    return replace(keyed, query=query, columns=select.columns)
