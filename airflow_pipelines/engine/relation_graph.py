"""A program's connectors, tables and views, and the flow of rows between them, for display to users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_pipelines.engine.program import Program
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.relations import View, ViewKind
from airflow_pipelines.program.streams import STREAM_PROGRAM, is_hidden


def relation_graph(program: Program) -> dict[str, Any]:
    """Return the nodes and edges of a program, as the REST API shows them beside its dataflow graph.

    :param program: the program
    :returns: ``nodes``, each with an ``id``, a ``kind`` and a ``name``, and ``edges`` by the ids
    """
    edges = list(dict.fromkeys(_edges(program)))
    ends = {end for edge in edges for end in edge}
    inputs, outputs = (_connectors(program, direction) for direction in (ConnectorDirection.INPUT, ConnectorDirection.OUTPUT))
    nodes = [*inputs, *_relations(program), *outputs]
    if _relation_id(SYSTEM_VIEW) in ends:
        # Every program has the system view; only few use it.
        nodes.append(_node(SYSTEM_VIEW, "view", materialized=False, local=False))
    return {"nodes": nodes, "edges": [{"from": begin, "to": end} for begin, end in edges]}


def _relations(program: Program) -> Iterator[dict[str, Any]]:
    for table in program.tables.values():
        if not is_hidden(table.name):
            yield _node(table.name, "table", materialized=table.materialized)
    for view in program.views.values():
        if view.name == STREAM_PROGRAM:
            yield _node(STREAM_PROGRAM, "stream_program")
        else:
            kind = view.kind
            yield _node(view.name, "view", materialized=kind is ViewKind.MATERIALIZED, local=kind is ViewKind.LOCAL)


def _connectors(program: Program, direction: ConnectorDirection) -> Iterator[dict[str, Any]]:
    for connector in program.connectors:
        if connector.direction is direction:
            yield {
                "id": _connector_id(connector),
                "kind": f"{direction.value}_connector",
                "name": connector.endpoint,
                "relation": connector.relation,
                "transport": connector.transport,
            }


def _edges(program: Program) -> Iterator[tuple[str, str]]:
    for connector in program.connectors:
        if connector.direction is ConnectorDirection.INPUT:
            yield _connector_id(connector), _relation_id(connector.relation)
    for view in program.views.values():
        for name in _reads(view):
            yield _relation_id(name), _relation_id(view.name)
    for connector in program.connectors:
        if connector.direction is ConnectorDirection.OUTPUT:
            yield _relation_id(connector.relation), _connector_id(connector)


def _reads(view: View) -> Iterator[str]:
    """Return the inputs of a view.

    The hidden tables of a stream program's sources are not nodes: their connectors lead directly to the program.
    """
    return (name for name in view.reads if not (view.name == STREAM_PROGRAM and is_hidden(name)))


def _node(name: str, kind: str, **more: bool) -> dict[str, Any]:
    return {"id": _relation_id(name), "kind": kind, "name": name, **more}


def _relation_id(name: str) -> str:
    return f"relation:{STREAM_PROGRAM if is_hidden(name) else name}"


def _connector_id(connector: Connector) -> str:
    return f"{connector.direction.value}:{connector.endpoint}"
