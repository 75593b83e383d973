"""Event time of topics: up to the end of those that are read to a place, and no further before."""

from __future__ import annotations

import pytest

from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import KafkaOffsetsInitializer, KafkaSource
from tests.fixtures.kafka import Kafka
from tests.streams.ends_of_sources import LINES, RUNS, USES, timed

pytestmark = pytest.mark.core


@pytest.mark.parametrize("at_source", [True, False], ids=["at source", "after it"])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("is_bounded", [True, False], ids=["bounded", "unbounded"])
def test_all_that_is_due_of_a_topic_comes(kafka: Kafka, is_bounded: bool, run: str, at_source: bool) -> None:
    topic = kafka.topic()
    for line in LINES:
        kafka.send(topic, line)
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.address).set_topics(topic)
    builder = builder.set_value_only_deserializer(SimpleStringSchema())
    builder = builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
    source = (builder.set_bounded(KafkaOffsetsInitializer.latest()) if is_bounded else builder).build()
    for define, before, at_end in USES.values():
        found = RUNS[run](define(timed(source, at_source, 1)), is_bounded)
        assert found == sorted([*before, *at_end] if is_bounded else before)
