"""Declarations: what is accepted, and that everything else is named with what there is instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_pipelines.connectors.declarations import connector_options
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from tests.connectors.relations import GRADES, col, relation

INPUT = Connector("grades", "c", ConnectorDirection.INPUT, "file_input", {"path": "/data/g.csv"}, "csv")
OUTPUT = Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", {"path": "/data/out"}, "json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"transport": "file_inptu"},
            "connector 'grades.c': unknown transport 'file_inptu'; known transports: .*; did you mean 'file_input'",
        ),
        ({"transport": "kafka_output"}, "'kafka_output' is an output, but the connector is on a table"),
        ({"transport": "file_output"}, "'file_output' is an output, but the connector is on a table"),
        ({"transport_config": {}}, "option 'path' of transport 'file_input' is missing"),
        (
            {"transport_config": {"pth": "x"}},
            "unknown option 'pth' of transport 'file_input'; known options: .*did you mean 'path'",
        ),
        ({"transport_config": {"path": "x", "follow": "perhaps"}}, "option 'follow' of transport 'file_input'"),
        ({"format": None}, "transport 'file_input' needs a format; known formats: avro, csv, json, orc, parquet, raw"),
        ({"format": "avrro"}, "unknown format 'avrro'; known formats: avro, csv, json, orc, parquet, raw"),
        (
            {"format_config": {"header": True}},
            "unknown option 'header' of format 'csv'; known options: .*delimiter, headers, quote; did you mean 'headers'",
        ),
        ({"format_config": {"delimiter": ";;"}}, "option 'delimiter' of format 'csv'"),
        ({"options": {"pasued": True}}, "unknown option 'pasued'; known options: .*did you mean 'paused'"),
        ({"options": {"max_batch_size": 0}}, "option 'max_batch_size'"),
        ({"transport": "url_input", "transport_config": {"path": "http://x", "pause_linger": "a while"}}, "a duration is a number"),
        (
            {"transport": "datagen", "transport_config": {"plan": [{"feilds": {}}]}},
            "unknown option 'plan.feilds' of transport 'datagen'; known options: fields, limit, .*; did you mean 'fields'",
        ),
        (
            {"transport": "datagen", "transport_config": {"plan": [{"fields": {"grade": {"value": {"sacle": 1}}}}]}},
            "unknown option 'plan.fields.grade.value.sacle' of transport 'datagen'; known options: e, .*; did you mean 'scale'",
        ),
        ({"transport": "datagen", "transport_config": {"plan": [{"rate": 0}]}}, "option 'plan.rate' of transport 'datagen'"),
        (
            {"transport": "datagen", "transport_config": {"plan": [{"fields": {"grade": {"strategy": "emial"}}}]}},
            "option 'plan.fields.grade.strategy' of transport 'datagen'",
        ),
    ],
)
def test_bad_inputs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownOptionError, match=message):
        validate(replace(INPUT, **changes), GRADES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"transport": "file_input"},
            "'file_input' is an input, but the connector is on a view; known transports here: .*file_output, .*null_output",
        ),
        ({"format": "parqet"}, "unknown format 'parqet'; known formats: csv, json"),
        ({"options": {"pause": True}}, "unknown option 'pause'.*did you mean 'paused'"),
        ({"format_config": {"update_format": "debezum"}}, "option 'update_format' of format 'json'"),
    ],
)
def test_bad_outputs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownOptionError, match=message):
        validate(replace(OUTPUT, **changes), GRADES)


def test_good_declarations() -> None:
    options = {
        "paused": True,
        "labels": ["a"],
        "start_after": "b",
        "max_batch_size": 5,
        "max_queued_records": 10,
        "soft_delete": False,
    }
    validate(replace(INPUT, options=options), GRADES)
    common = connector_options(replace(INPUT, options=options))
    assert (common.paused, common.labels, common.start_after, common.max_batch_size) == (True, ("a",), ("b",), 5)
    validate(replace(OUTPUT, options={"send_snapshot": False}), GRADES)


def test_a_format_that_a_transport_does_not_need_is_passed_over() -> None:
    for transport in ("datagen", "empty_input"):
        validate(replace(INPUT, transport=transport, transport_config={}, format="avro", format_config={"any": "thing"}), GRADES)
    validate(replace(OUTPUT, transport="null_output", transport_config={}), GRADES)


def test_soft_deletes_are_not_for_tables_with_a_key() -> None:
    soft = replace(INPUT, options={"soft_delete": True})
    validate(soft, GRADES)
    with pytest.raises(InvalidOptionError, match="not for a table with a primary key"):
        validate(soft, replace(GRADES, primary_key=("student_id",)))


def test_columns_that_no_input_can_fill() -> None:
    with pytest.raises(InvalidOptionError, match="NULL cannot be read"):
        validate(INPUT, relation(col("i", "NULL")))


def test_secrets_never_show_in_messages_about_values() -> None:
    with pytest.raises(UnknownOptionError) as error:
        validate(replace(INPUT, transport_config={"path": "x", "buffer_size_bytes": "hunter2"}), GRADES)
    assert "hunter2" not in str(error.value)
