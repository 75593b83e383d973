"""Finds windows of event time to which elements without timestamps come."""

from __future__ import annotations

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.nodes import Graph, Node
from airflow_pipelines.streams.operators.base import Timestamps

_STRATEGY = "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[...])"


def refuse_windows_without_timestamps(graph: Graph, nodes: list[Node]) -> None:
    """Refuse a program whose windows of event time would get elements without timestamps.

    :param graph: the program
    :param nodes: what runs of it, inputs before what reads them
    :raises StreamProgramError: for the first such window, with what is missing where
    """
    without: dict[int, Node | None] = {}
    for node in nodes:
        without[node.id] = _without(node, without)
        if node.operator.needs_timestamps:
            origin = _read_by(node, without)
            if origin is not None:
                raise StreamProgramError(_message(graph, node, origin))


def _without(node: Node, without: dict[int, Node | None]) -> Node | None:
    """The source from which the node certainly gives elements without timestamps."""
    timestamps = node.operator.timestamps()
    if timestamps is Timestamps.OF_INPUT:
        return _read_by(node, without)
    return node if timestamps is Timestamps.NONE else None


def _read_by(node: Node, without: dict[int, Node | None]) -> Node | None:
    """The same for what the node reads: of a union all parts come in, while one of two inputs may only be listened to."""
    by_port: dict[int, list[Node | None]] = {}
    for edge in node.inputs:
        by_port.setdefault(edge.port, []).append(without.get(edge.source))
    origins = [next((each for each in sources if each is not None), None) for sources in by_port.values()]
    return origins[0] if origins and all(each is not None for each in origins) else None


def _message(graph: Graph, node: Node, origin: Node) -> str:
    has_strategy = any(each.operator.has_watermark_strategy for each in graph.upstream_of([node.id]))
    lacks = (
        "The WatermarkStrategy between them has no timestamp assigner: add .with_timestamp_assigner(lambda element, _: ...)"
        if has_strategy
        else f"Put assign_timestamps_and_watermarks({_STRATEGY}) between them"
    )
    return (
        f"The event-time window {node.name!r} would get elements without timestamps from {origin.name!r}. {lacks}, or use windows"
        " of processing time."
    )
