"""Declarations that compile: whether a pipeline starts with them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_pipelines.common.references import References
from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.opening import open_input, open_output
from airflow_pipelines.connectors.planned_transports import PLANNED_TRANSPORTS
from airflow_pipelines.connectors.start_check import check_usable
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Index
from tests.connectors.contexts import PIPELINE
from tests.connectors.relations import GRADES

INPUT = Connector("grades", "c", ConnectorDirection.INPUT, "file_input", {"path": "/data/g.csv"}, "csv")
OUTPUT = Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", {"path": "/data/out"}, "json")


def test_what_can_start() -> None:
    buffer = {"enable_output_buffer": True, "max_output_buffer_time_millis": 10, "send_snapshot": True}
    foreign = {"paused": True, "start_after": [], "preprocessor": [{"name": "decrypt"}]}
    for declared in (
        INPUT,
        OUTPUT,
        replace(OUTPUT, options={**buffer, **foreign}),
        replace(INPUT, options={**buffer, "index": "i", "preprocessor": []}),
        replace(INPUT, transport="empty_input", format="avro"),
    ):
        check_usable(declared, GRADES)


@pytest.mark.parametrize("name", sorted(PLANNED_TRANSPORTS))
def test_what_is_not_there_yet_compiles_and_does_not_start(name: str) -> None:
    direction = PLANNED_TRANSPORTS[name].direction
    declared = Connector("v", "o", direction, name, {"any": {"thing": [1]}}, "avro", {"registry_urls": ["http://x"]})
    validate(declared, GRADES)
    with pytest.raises(Problem, match=f"Connector 'v.o' cannot start: transport '{name}' is not part of this release") as refused:
        check_usable(declared, GRADES)
    wanted = ErrorCode.UNKNOWN_INPUT_TRANSPORT if direction is ConnectorDirection.INPUT else ErrorCode.UNKNOWN_OUTPUT_TRANSPORT
    assert refused.value.code is wanted
    assert refused.value.details == {"connector": "v.o", "transport": name}


@pytest.mark.parametrize("direction", list(ConnectorDirection))
def test_a_topic_without_brokers_compiles_and_does_not_start(direction: ConnectorDirection) -> None:
    name = "kafka_input" if direction is ConnectorDirection.INPUT else "kafka_output"
    declared = Connector("grades", "k", direction, name, {"topic": "t"}, "json")
    validate(declared, GRADES)
    with pytest.raises(Problem, match=f"'grades.k' cannot start: {name}: option 'bootstrap.servers' is missing") as refused:
        check_usable(declared, GRADES)
    assert refused.value.code is ErrorCode.INVALID_TRANSPORT_CONFIG
    check_usable(replace(declared, transport_config={"topic": "t", "bootstrap.servers": "here:9092"}), GRADES)
    # What references stand for is known only when it is opened.
    referring = replace(declared, transport_config={"topic": "${env:TOPIC}"})
    validate(referring, GRADES)
    known = References({"TOPIC": "t"})
    make = open_input if direction is ConnectorDirection.INPUT else open_output
    with pytest.raises(ConnectorFailure, match=r"option 'bootstrap\.servers' is missing"):
        make(referring, GRADES, known, PIPELINE)


def test_the_index_of_an_output_is_one_of_its_view() -> None:
    indexed = replace(OUTPUT, options={"index": "By_Class"})
    check_usable(indexed, GRADES, [Index("by_class", "v", ("class",))])
    message = re.escape("v has no index 'By_Class'; its indexes: \"By_Class\". Declare one with CREATE INDEX By_Class ON v")
    with pytest.raises(Problem, match=message):
        check_usable(indexed, GRADES, [Index("by_class", "w", ("class",)), Index("By_Class", "v", ("class",))])


def test_a_plan_for_a_column_that_is_not_there_compiles_and_does_not_start() -> None:
    declared = replace(INPUT, transport="datagen", transport_config={"plan": [{"fields": {"grades": {}}}]}, format=None)
    validate(declared, GRADES)
    with pytest.raises(Problem, match="table 'grades' has no column or field 'grades'; there are: student_id, class") as refused:
        check_usable(declared, GRADES)
    assert refused.value.code is ErrorCode.INVALID_TRANSPORT_CONFIG
    check_usable(replace(declared, transport_config={"plan": [{"fields": {"GRADE": {}}}]}), GRADES)


@pytest.mark.parametrize(
    ("declared", "code", "message"),
    [
        (replace(OUTPUT, format="orc"), ErrorCode.UNKNOWN_OUTPUT_FORMAT, "What there is instead: csv, json, parquet"),
        (
            replace(OUTPUT, transport="http_output", transport_config={"path": "http://x"}, format="parquet"),
            ErrorCode.UNKNOWN_OUTPUT_FORMAT,
            "What there is instead: csv, json",
        ),
        (replace(OUTPUT, options={"index": "i"}), ErrorCode.INVALID_TRANSPORT_CONFIG, "v has no index 'i'; its indexes: none"),
        (
            replace(OUTPUT, format="json", format_config={"update_format": "raw"}),
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            "'raw' of format 'json' cannot be written",
        ),
        (
            replace(INPUT, options={"preprocessor": [{"name": "decrypt", "message_oriented": True, "config": {}}]}),
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            "option 'preprocessor' is not part of this release",
        ),
        (
            replace(OUTPUT, options={"postprocessor": [{"name": "zip"}]}),
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            "option 'postprocessor' is not part of this release",
        ),
    ],
)
def test_what_is_not_there_for_a_transport_that_is(declared: Connector, code: ErrorCode, message: str) -> None:
    validate(declared, GRADES)
    with pytest.raises(Problem, match=message) as refused:
        check_usable(declared, GRADES)
    assert refused.value.code is code
