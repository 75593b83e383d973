"""Transformations of all blocks of a node, however deep they nest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.recursive import Recursive

Change = Callable[[Select], Select]


def map_blocks(node: Node, change: Change) -> Node:
    """Transform every block of a node, the innermost first.

    :param node: any node; kinds without blocks stay as they are
    :param change: a function that returns the replacement of a block
    """
    match node:
        case Scan() | Select() | UnionAll():
            return map_linear(node, change)
        case Aggregate():
            return replace(node, input=_map_select(node.input, change))
        case AffectedKeys():
            return replace(node, sources=tuple(replace(source, node=map_linear(source.node, change)) for source in node.sources))
        case AppendOnlyTopK():
            return replace(node, source=map_linear(node.source, change))
        case Recursive():
            return node if node.body is None else replace(node, body=map_linear(node.body, change))
        case _:
            return node


def map_linear(node: Linear, change: Change) -> Linear:
    """Transform every block of a linear node, the innermost first.

    :param node: the node
    :param change: a function that returns the replacement of a block
    """
    match node:
        case Scan():
            return node
        case UnionAll():
            return replace(node, parts=tuple(map_linear(part, change) for part in node.parts))
        case Select():
            return _map_select(node, change)


def _map_select(node: Select, change: Change) -> Select:
    sources = tuple(replace(source, node=map_linear(source.node, change)) for source in node.sources)
    return change(replace(node, sources=sources))
