"""Statistics as tables: what is read, written and counted, whatever users named it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from airflow_pipelines.cli.statistics_tables import statistics_tables
from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.streams.elements import MAX_TIMESTAMP


def shown(**statistics: Any) -> list[list[list[str]]]:
    """The cells of each row of each table, without the heading."""
    tables = []
    for table in statistics_tables(PipelineStatistics.from_dict(statistics)):
        out = io.StringIO()
        Console(file=out, width=400).print(table)
        rows = [line.strip("│┃").split("│") for line in out.getvalue().splitlines() if line.startswith("│")]
        tables.append([[cell.strip() for cell in row] for row in rows])
    return tables


def test_connectors_have_their_counters_and_state() -> None:
    read = {"total_records": 7, "total_bytes": 2048, "buffered_records": 2, "num_parse_errors": 1, "num_transport_errors": 2}
    inputs = [
        {"endpoint_name": "t.a", "metrics": read},
        {"endpoint_name": "t.b", "metrics": {**read, "end_of_input": True}},
        {"endpoint_name": "t.c", "metrics": read, "paused": True},
        {"endpoint_name": "t.d", "metrics": read, "fatal_error": "no such file"},
    ]
    written = {
        "transmitted_records": 5,
        "transmitted_bytes": 10,
        "queued_records": 1,
        "buffered_records": 2,
        "num_encode_errors": 4,
    }
    outputs = [{"endpoint_name": "v.out", "metrics": written}]
    counted = ["in", "7", "2.0 KiB", "2", "3"]
    assert shown(inputs=inputs, outputs=outputs) == [
        [
            ["t.a", *counted, "reads"],
            ["t.b", *counted, "ended"],
            ["t.c", *counted, "paused"],
            ["t.d", *counted, "no such file"],
            ["v.out", "out", "5", "10 bytes", "3", "4", "writes"],
        ]
    ]


def test_counters_are_added_up_and_distributions_are_shown_for_each_task() -> None:
    spread = {"count": 2, "sum": 5, "min": 1, "max": 4}
    tasks = [
        {"task": 0, "watermark": 86_400_000, "state_bytes": 10, "values": {"late": 1, "ms": spread, "odd": "nan"}},
        {"task": 1, "watermark": 1, "state_bytes": 20, "values": {"late": 2, "[red]": 1}},
    ]
    (operators,) = shown(stream_metrics={"score": {"name": "Score", "tasks": tasks}})
    counted = "late=3, ms=(count 2, sum 5, min 1, max 4), odd=nan, [red]=1"
    assert operators == [["score", "Score", "2", "1970-01-01 00:00:00.001", "30 bytes", counted]]


@pytest.mark.parametrize(
    ("watermark", "text"), [(None, ""), (MAX_TIMESTAMP, "at its end"), (10**17, str(10**17)), (-1, "1969-12-31 23:59:59.999")]
)
def test_event_time(watermark: int | None, text: str) -> None:
    (operators,) = shown(stream_metrics={"a": {"name": "A", "tasks": [{"task": 0, "watermark": watermark}]}})
    assert operators == [["a", "A", "1", text, "0 bytes", ""]]


def test_a_pipeline_without_connectors_and_stream_program_has_no_tables() -> None:
    assert shown(inputs=[], outputs=[]) == []
