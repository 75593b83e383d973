"""A program goes on when its broker goes and comes back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import DeliveryGuarantee, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from tests.fixtures.kafka import Kafka
from tools.kafka_broker import Broker


def test_everything_comes_once_when_the_broker_goes_and_comes_back(
    own: Kafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_pipelines.systems.kafka.transactions._ANSWER_S", 3.0)
    source, target = own.topic(2), own.topic()
    env = StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(50)
    built = KafkaSource.builder().set_bootstrap_servers(own.address).set_topics(source).set_group_id(source)
    values = env.from_source(
        built.set_value_only_deserializer(SimpleStringSchema()).build(), WatermarkStrategy.no_watermarks(), "topic"
    )
    serializer = KafkaRecordSerializationSchema.builder().set_topic(target).set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers(own.address).set_record_serializer(serializer.build())
    values.sink_to(sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(target).build())
    job = env.execute_async()
    own.send(source, "a", "b")
    own.until(lambda: len(own.read(target)) == 2)
    # It reads, writes or commits.
    own.send(source, "c", partition=1)
    own.broker.kill()
    own.broker.start()
    own.send(source, "d")
    own.until(lambda: len(own.read(target)) >= 4)
    written = own.read(target)
    own.until(lambda: sum(own.committed(source, source).values()) == 4)
    with caplog.at_level(logging.WARNING):
        # It has nothing to do.
        own.broker.stop()
        own.until(lambda: f"KafkaSource {source}: no broker at {own.address} answers" in caplog.text)
    job.cancel().result()
    # What could not say farewell goes on trying for as long as this process lives, also where another program listens by then.
    own.broker.start()
    own.until(lambda: not any(thread.name.startswith("closes ") for thread in threading.enumerate()))
    assert sorted(record.value or b"" for record in written) == [b"a", b"b", b"c", b"d"]


@pytest.fixture
def own(new_broker: Callable[[], Broker]) -> Kafka:
    """A broker that may be stopped."""
    return Kafka(new_broker())
