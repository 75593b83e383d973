"""A program as a graph of connectors, tables and views."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from airflow_pipelines.engine.relation_graph import relation_graph
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.relations import Table, View, ViewKind
from airflow_pipelines.program.streams import STREAM_PROGRAM, source_table


def program(tables: list[Table], views: list[View]) -> Any:
    relations: list[Table | View] = [*tables, *views]
    connectors = tuple(connector for relation in relations for connector in relation.connectors)
    return SimpleNamespace(
        tables={table.name: table for table in tables}, views={view.name: view for view in views}, connectors=connectors
    )


def connector(relation: str, name: str, direction: ConnectorDirection) -> Connector:
    return Connector(relation, name, direction, f"file_{direction.value}")


def edges(graph: dict[str, Any]) -> list[tuple[str, str]]:
    return [(edge["from"], edge["to"]) for edge in graph["edges"]]


def test_rows_go_from_connectors_through_tables_and_views_to_connectors() -> None:
    orders = Table("orders", (), materialized=True, connectors=(connector("orders", "in", ConnectorDirection.INPUT),))
    parts = View("parts", ViewKind.LOCAL, (), ("orders",))
    # A view may be read twice and may read itself.
    totals = View(
        "totals",
        ViewKind.MATERIALIZED,
        (),
        ("parts", "orders", "parts", "totals"),
        (connector("totals", "out", ConnectorDirection.OUTPUT),),
    )
    graph = relation_graph(program([orders], [parts, totals]))
    assert graph["nodes"] == [
        {"id": "input:orders.in", "kind": "input_connector", "name": "orders.in", "relation": "orders", "transport": "file_input"},
        {"id": "relation:orders", "kind": "table", "name": "orders", "materialized": True},
        {"id": "relation:parts", "kind": "view", "name": "parts", "materialized": False, "local": True},
        {"id": "relation:totals", "kind": "view", "name": "totals", "materialized": True, "local": False},
        {
            "id": "output:totals.out",
            "kind": "output_connector",
            "name": "totals.out",
            "relation": "totals",
            "transport": "file_output",
        },
    ]
    assert edges(graph) == [
        ("input:orders.in", "relation:orders"),
        ("relation:orders", "relation:parts"),
        ("relation:parts", "relation:totals"),
        ("relation:orders", "relation:totals"),
        ("relation:totals", "relation:totals"),
        ("relation:totals", "output:totals.out"),
    ]


def test_a_stream_program_is_one_node_that_its_sources_lead_to() -> None:
    source = Table(source_table("s"), (), connectors=(connector(source_table("s"), "source", ConnectorDirection.INPUT),))
    graph = relation_graph(
        program(
            [source, Table("rules", ())],
            [
                View(STREAM_PROGRAM, ViewKind.LOCAL, (), (source.name, "rules")),
                View("alerts", ViewKind.MATERIALIZED, (), (STREAM_PROGRAM,)),
            ],
        )
    )
    stream = f"relation:{STREAM_PROGRAM}"
    assert [node["kind"] for node in graph["nodes"]] == ["input_connector", "table", "stream_program", "view"]
    assert edges(graph) == [
        (f"input:{source.name}.source", stream),
        ("relation:rules", stream),
        (stream, "relation:alerts"),
    ]


def test_the_system_view_is_there_when_something_reads_it() -> None:
    graph = relation_graph(program([], [View("late", ViewKind.MATERIALIZED, (), (SYSTEM_VIEW,))]))
    assert [node["name"] for node in graph["nodes"]] == ["late", SYSTEM_VIEW]
    ids = {node["id"] for node in graph["nodes"]}
    assert {end for edge in edges(graph) for end in edge} <= ids
