"""A check for event-time windows that would get elements without timestamps."""

from __future__ import annotations

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.nodes import Graph, Node
from airflow_pipelines.streams.operators.base import Timestamps

_STRATEGY = "WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[...])"


def refuse_windows_without_timestamps(graph: Graph, nodes: list[Node]) -> None:
    """Refuse a program whose event-time windows would get elements without timestamps.

    :param graph: the program
    :param nodes: the nodes that run, inputs before their readers
    :raises StreamProgramError: if there is such a window; the message says what is missing, and where
    """
    without: dict[int, Node | None] = {}
    for node in nodes:
        without[node.id] = _find_origin(node, without)
        if node.operator.needs_timestamps:
            origin = _find_input_origin(node, without)
            if origin is not None:
                raise StreamProgramError(_make_message(graph, node, origin))


def _find_origin(node: Node, without: dict[int, Node | None]) -> Node | None:
    """Return the source because of which the node certainly emits elements without timestamps, or None."""
    timestamps = node.operator.timestamps()
    if timestamps is Timestamps.OF_INPUT:
        return _find_input_origin(node, without)
    return node if timestamps is Timestamps.NONE else None


def _find_input_origin(node: Node, without: dict[int, Node | None]) -> Node | None:
    """Return the source because of which the node certainly reads elements without timestamps, or None.

    A union reads all of its parts, so one part without timestamps is enough. Of two inputs, one may serve only as a side input, so
    both must lack them.
    """
    by_port: dict[int, list[Node | None]] = {}
    for edge in node.inputs:
        by_port.setdefault(edge.port, []).append(without.get(edge.source))
    origins = [next((each for each in sources if each is not None), None) for sources in by_port.values()]
    return origins[0] if origins and all(each is not None for each in origins) else None


def _make_message(graph: Graph, node: Node, origin: Node) -> str:
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
