"""Options of the connectors of Kafka."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from airflow_pipelines.connectors.declarations import idle_transport_options
from airflow_pipelines.connectors.option_models import read_options
from airflow_pipelines.connectors.transports.kafka.options import (
    KAFKA_INPUT_OPTIONS,
    KAFKA_OUTPUT_OPTIONS,
    KafkaInputOptions,
    StartOffsets,
    StartTimestamp,
    TopicEnd,
)
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError

NEEDED = {"topic": "t", "bootstrap.servers": "here:9092"}


def inputs(**options: Any) -> KafkaInputOptions:
    return read_options(KAFKA_INPUT_OPTIONS, {**NEEDED, **options}, "transport 'kafka_input'", "c")


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({}, TopicEnd.LATEST),
        ({"start_from": "earliest"}, TopicEnd.EARLIEST),
        ({"start_from": {"offsets": [1, 2]}}, StartOffsets(offsets=(1, 2))),
        ({"start_from": {"timestamp": 5}}, StartTimestamp(timestamp=5)),
        ({"auto.offset.reset": "earliest"}, TopicEnd.EARLIEST),
        ({"auto.offset.reset": "earliest", "start_from": "latest"}, TopicEnd.LATEST),
    ],
)
def test_places_to_start_from(given: dict[str, Any], start: object) -> None:
    assert inputs(**given).start_from == start


def test_where_consumers_begin_is_no_matter_of_an_output() -> None:
    given = {**NEEDED, "auto.offset.reset": "earliest", "acks": "all"}
    options = read_options(KAFKA_OUTPUT_OPTIONS, given, "transport 'kafka_output'", "c")
    assert options.properties() == {"bootstrap.servers": "here:9092", "acks": "all"}
    declared = Connector("v", "o", ConnectorDirection.OUTPUT, "kafka_output", given, "json")
    assert idle_transport_options(declared) == ("auto.offset.reset",)
    assert idle_transport_options(replace(declared, transport_config=NEEDED)) == ()
    assert idle_transport_options(replace(declared, transport="kafka_input", direction=ConnectorDirection.INPUT)) == ()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"start_from": "begin"}, "a place to start from is"),
        ({"start_from": {"offsets": []}}, "a place to start from is"),
        ({"start_from": {"offsets": [-1]}}, "a place to start from is"),
        ({"start_from": {"offsets": [1], "timestamp": 2}}, "a place to start from is"),
        ({"start_from": {"timestamp": "now"}}, "a place to start from is"),
        ({"partitions": [1, 1]}, "each once"),
        ({"partitions": []}, "at least 1 item"),
        ({"partitions": [0, 1], "start_from": {"offsets": [1]}}, "1 offsets for 2 partitions"),
        ({"header_filter": {"kind": "a"}}, re.escape('a condition is {"header": {"name": ..., "pattern": ...}}, ')),
        ({"header_filter": {"header": {"name": "kind", "pattern": "("}}}, "header_filter.*no regular expression"),
        ({"log_level": "loud"}, "a level is one of"),
        ({"topic": ""}, "at least 1 character"),
        ({"bootstrap.servers": ""}, "at least 1 character"),
        ({"fetch.min.bytes": [1]}, "fetch.min.bytes"),
    ],
)
def test_bad_values(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        inputs(**given)


def test_properties_of_the_client_are_passed_on_by_their_names() -> None:
    given = {"sasl.password": "p", "fetch.min.bytes": 7, "group.id": "g", "log_level": "error", "enable.metrics.push": False}
    assert inputs(**given).properties() == {**given, "bootstrap.servers": "here:9092", "log_level": 3}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tpoic", "topic"),
        ("fetch.min.byte", "fetch.min.bytes"),
        ("acks", None),
        ("enable.auto.commit", None),
        ("plugin.library.paths", None),
    ],
)
def test_unknown_options_are_named_with_a_near_one(name: str, hint: str | None) -> None:
    with pytest.raises(UnknownOptionError, match=f"unknown option '{name}'") as caught:
        inputs(**{name: "1"})
    assert (f"did you mean {hint!r}" in str(caught.value)) == (hint is not None)
    # Not all two hundred of them.
    assert len(str(caught.value)) < 1000
    assert caught.value.word == name


def test_headers_of_outputs() -> None:
    headers = [{"key": "a", "value": "text"}, {"key": "b", "value": [0, 255]}, {"key": "c"}]
    options = read_options(KAFKA_OUTPUT_OPTIONS, {**NEEDED, "headers": headers, "acks": "all"}, "", "c")
    assert [each.data for each in options.headers] == [b"text", b"\x00\xff", None]
    assert options.properties()["acks"] == "all"
    with pytest.raises(InvalidOptionError, match="0 to 255"):
        read_options(KAFKA_OUTPUT_OPTIONS, {**NEEDED, "headers": [{"key": "b", "value": [256]}]}, "", "c")
