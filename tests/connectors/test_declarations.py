"""What a declaration says: the options of every connector, and those that are for the other direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_pipelines.connectors.declarations import connector_options, mirrors
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from tests.connectors.relations import GRADES

INPUT = Connector("grades", "c", ConnectorDirection.INPUT, "file_input", {"path": "/data/g.csv"}, "csv")
OUTPUT = Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", {"path": "/data/out"}, "json")


def test_limits_of_queues_and_steps() -> None:
    flow = {"max_batch_size": 5, "max_worker_batch_size": 7, "max_queued_records": 9, "max_queued_bytes": 11, "labels": "one"}
    common = connector_options(replace(INPUT, options=flow))
    assert (common.step_records(4), common.queued_bytes, common.labels) == (5, 11, ("one",))
    del flow["max_batch_size"], flow["max_queued_bytes"]
    common = connector_options(replace(INPUT, options=flow))
    assert (common.step_records(4), common.queued_bytes) == (28, 9000)
    assert connector_options(INPUT).step_records(4) is None
    buffer = {"enable_output_buffer": True, "max_output_buffer_time_millis": 10, "max_output_buffer_size_records": 10}
    validate(replace(OUTPUT, options={**flow, **buffer}), GRADES)


def test_options_of_the_other_direction_are_accepted_and_named() -> None:
    of_inputs = {
        "paused": True,
        "start_after": [],
        "soft_delete": True,
        "max_batch_size": 1,
        "preprocessor": [{"name": "unzip"}],
    }
    of_outputs = {"index": "i", "send_snapshot": True, "enable_output_buffer": True, "max_output_buffer_time_millis": 1}
    both = {
        **of_inputs,
        **of_outputs,
        "postprocessor": {"name": "zip"},
        "max_output_buffer_size_records": 10_000_000,
        "labels": "a",
    }
    for direction, declared, foreign in (
        (ConnectorDirection.INPUT, INPUT, {*of_outputs, "postprocessor"}),
        (ConnectorDirection.OUTPUT, OUTPUT, set(of_inputs)),
    ):
        options = replace(declared, options=both)
        validate(options, GRADES)
        assert set(connector_options(options).without_effect(direction)) == foreign
    validate(replace(OUTPUT, format_config={"update_format": "debezium", "key_fields": ["class"]}), GRADES)


@pytest.mark.parametrize(
    ("transport", "config", "expected"),
    [
        ("postgres_output", {}, True),
        ("postgres_output", {"mode": "cdc"}, False),
        ("postgres_output", {"mode": "${env:MODE}"}, True),
        ("redis_output", {}, True),
        ("delta_table_output", {}, False),
        ("delta_table_output", {"write": "change_log"}, False),
        ("delta_table_output", {"write": "merged"}, True),
        ("iceberg_output", {}, False),
        ("iceberg_output", {"write": "merged"}, True),
        ("kafka_output", {}, False),
        ("file_output", {}, False),
        ("file_input", {}, False),
        ("nats_output", {}, False),
    ],
)
def test_which_targets_are_to_equal_their_views(transport: str, config: dict[str, Any], expected: bool) -> None:
    assert mirrors(replace(OUTPUT, transport=transport, transport_config=config)) is expected
