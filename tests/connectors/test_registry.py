"""Declarations: what is accepted, and that everything else is named with what there is instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.connectors.registry import connector_options, open_input, open_output, validate
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.connectors.transports.null_output import NullOutput
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.references import NO_REFERENCES, References
from airflow_pipelines.secret_files import SecretFiles
from tests.connectors.relations import GRADES, col, relation

PIPELINE = PipelineReference("0190-1", "p")
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
    assert isinstance(open_output(OUTPUT, GRADES, NO_REFERENCES, PIPELINE), FileOutput)
    assert isinstance(
        open_output(replace(OUTPUT, transport="null_output", transport_config={}, format=None), GRADES, NO_REFERENCES, PIPELINE),
        NullOutput,
    )


def test_a_format_that_a_transport_does_not_need_is_passed_over() -> None:
    for transport in ("datagen", "empty_input"):
        validate(replace(INPUT, transport=transport, transport_config={}, format="avro", format_config={"any": "thing"}), GRADES)
    validate(replace(OUTPUT, transport="null_output", transport_config={}), GRADES)


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


def test_environment_references(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("1,a,1,\n")
    declared = replace(INPUT, transport_config={"path": "${env:FOLDER}/g.csv"})
    source = open_input(declared, GRADES, References({"FOLDER": str(tmp_path)}), PIPELINE)
    source.open(None)
    chunk = source.read(10, 1)
    assert chunk is not None
    assert chunk.records == 1
    with pytest.raises(
        ConnectorFailure, match=r"\$\{env:FOLDER\} has no value: give the pipeline.*AIRFLOW_PIPELINES_CONNECTOR_ENV"
    ):
        open_input(declared, GRADES, NO_REFERENCES, PIPELINE)
    with pytest.raises(ConnectorFailure, match="references of kind 'vault' are not supported"):
        open_input(replace(INPUT, transport_config={"path": "${vault:a/b}"}), GRADES, NO_REFERENCES, PIPELINE)


def test_references_to_secrets(tmp_path: Path) -> None:
    secrets = SecretFiles(tmp_path / "secrets")
    secrets.write("kubernetes/store/folder", str(tmp_path))
    declared = replace(INPUT, transport_config={"path": "${secret:kubernetes:store/folder}/g.csv"})
    (tmp_path / "g.csv").write_text("1,a,1,\n")
    source = open_input(declared, GRADES, References(secrets=secrets), PIPELINE)
    source.open(None)
    chunk = source.read(10, 1)
    assert chunk is not None
    assert chunk.records == 1
    for references in (NO_REFERENCES, References(secrets=SecretFiles(tmp_path / "none"))):
        with pytest.raises(ConnectorFailure, match=r"\$\{secret:kubernetes:store/folder\} has no value"):
            open_input(declared, GRADES, references, PIPELINE)
    output = replace(OUTPUT, transport_config={"path": "${secret:kubernetes:store/folder}/o.csv"})
    made = open_output(output, GRADES, References(secrets=secrets), PIPELINE)
    made.open(resumed=False)
    made.close()
    assert (tmp_path / "o.csv").exists()


def test_what_references_stand_for_is_checked_when_the_connector_is_opened(tmp_path: Path) -> None:
    declared = replace(OUTPUT, transport_config={"path": "${env:WHERE}"}, format="parquet")
    validate(declared, GRADES)
    open_output(declared, GRADES, References({"WHERE": f"{tmp_path}/out/"}), PIPELINE)
    with pytest.raises(ConnectorFailure, match="file_output writes Parquet as a folder of files"):
        open_output(declared, GRADES, References({"WHERE": f"{tmp_path}/out"}), PIPELINE)
    follow = replace(INPUT, transport_config={"path": "x", "buffer_size_bytes": "${env:SIZE}"})
    validate(follow, GRADES)
    with pytest.raises(ConnectorFailure, match="option 'buffer_size_bytes' of transport 'file_input'") as error:
        open_input(follow, GRADES, References({"SIZE": "hunter2"}), PIPELINE)
    assert "hunter2" not in str(error.value)
    open_input(follow, GRADES, References({"SIZE": "100"}), PIPELINE)
