"""What is known of a stream program survives its way through JSON."""

from __future__ import annotations

import json

from airflow_pipelines.program.streams import (
    RelationInput,
    RelationOutput,
    StreamOperator,
    StreamProgram,
    StreamRestarts,
    StreamRun,
    StreamSource,
    StreamState,
)


def test_a_program_survives_its_way_through_json() -> None:
    program = StreamProgram(
        "fraud",
        b"\x80\x05plan",
        (
            StreamOperator("a", "Source: a", "Data Source", "f0"),
            StreamOperator(
                "b", "count", "Keyed Process", "f1", ("a",), True, "STRING", 64, (StreamState("n", "value", "INT", ""),)
            ),
        ),
        (StreamSource("a", "Source: a", "CollectionSource", True),),
        (RelationInput("c", "orders", True),),
        (RelationOutput("d", "alerts", (("id", "BIGINT"),), ("id",)), RelationOutput("e", "log", (("id", "BIGINT"),))),
        '{"nodes": []}',
        {"requirements": "x"},
        StreamRun(StreamRestarts(3, 1000, 60_000), 5000),
    )
    assert StreamProgram.from_json(json.loads(json.dumps(program.to_json())), program.plan) == program


def test_a_program_reads_the_tables_of_its_sources_and_relations() -> None:
    sources = (StreamSource("a", "Source: a", "CollectionSource", True),)
    assert StreamProgram("p", b"", sources=sources, inputs=(RelationInput("c", "orders", True),)).reads == {
        "stream source a",
        "orders",
    }


def test_the_plan_is_not_shown() -> None:
    assert "secret" not in repr(StreamProgram("p", b"secret"))
