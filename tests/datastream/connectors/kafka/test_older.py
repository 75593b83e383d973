"""The older classes of Kafka are the newer ones."""

from __future__ import annotations

import pytest

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.common import SimpleStringSchema, Types
from airflow_pipelines.datastream.connectors import (
    KafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaProducer,
    KafkaSource,
    Semantic,
)
from airflow_pipelines.datastream.connectors.kafka.offsets import Start
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SubtaskInfo
from tests.fixtures.kafka import Kafka

SERVERS = {"bootstrap.servers": "host:9092", "sasl.password": "s3cret"}


def test_a_consumer_begins_where_it_is_told() -> None:
    consumer = KafkaConsumer("t", SimpleStringSchema(), {**SERVERS, "group.id": "g"})
    assert consumer.starting == KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)
    assert consumer.set_start_from_earliest().starting == KafkaOffsetsInitializer.earliest()
    assert consumer.set_start_from_latest().starting == KafkaOffsetsInitializer.latest()
    assert consumer.set_start_from_timestamp(5).starting == KafkaOffsetsInitializer.timestamp(5)
    assert consumer.set_start_from_group_offsets().starting.kind is Start.COMMITTED
    oldest = KafkaConsumer("t", SimpleStringSchema(), {**SERVERS, "group.id": "g", "auto.offset.reset": "earliest"})
    assert oldest.starting.reset_strategy is KafkaOffsetResetStrategy.EARLIEST
    assert not consumer.is_bounded
    assert consumer.get_produced_type() == Types.STRING()
    assert "s3cret" not in repr(consumer)


def test_a_consumer_goes_on_from_positions_of_the_newer_source() -> None:
    newer = KafkaSource.builder().set_bootstrap_servers("h:1").set_topics("t").set_value_only_deserializer(SimpleStringSchema())
    assert KafkaConsumer("t", SimpleStringSchema(), SERVERS).position_kind == newer.build().position_kind


def test_a_producer_keeps_its_options() -> None:
    producer = KafkaProducer("t", SimpleStringSchema(), SERVERS)
    assert (producer.semantic, producer.pool_size) == (Semantic.AT_LEAST_ONCE, 5)
    assert KafkaProducer("t", SimpleStringSchema(), SERVERS, 2, KafkaProducer.Semantic.NONE).semantic is Semantic.NONE
    assert "s3cret" not in repr(producer)


def test_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"properties needs 'bootstrap.servers', such as 'host:9092'"):
        KafkaConsumer("t", SimpleStringSchema(), {})
    with pytest.raises(TypeError, match="'batch' is none"):
        KafkaProducer("t", SimpleStringSchema(), {**SERVERS, "batch": 5})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"use SimpleStringSchema\(\)"):
        KafkaConsumer("t", "text", SERVERS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one topic"):
        KafkaConsumer([], SimpleStringSchema(), SERVERS)
    with pytest.raises(TypeError, match=r"ProducerSemantic\.EXACTLY_ONCE"):
        KafkaProducer("t", SimpleStringSchema(), SERVERS, semantic="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("semantic", list(Semantic))
def test_a_program_of_the_older_classes_reads_from_the_offsets_of_its_group_and_writes(kafka: Kafka, semantic: Semantic) -> None:
    topic, target, group = kafka.topic(2), kafka.topic(), f"group-{kafka.topic()}"
    for partition in range(2):
        kafka.send(topic, *(f"{partition}-{number}" for number in range(3)), partition=partition)

    def run(consumer: KafkaConsumer, *more: str, expected: int) -> None:
        env = StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(20)
        producer = KafkaProducer(target, SimpleStringSchema(), servers, semantic=semantic).set_write_timestamp_to_kafka(True)
        env.add_source(consumer).add_sink(producer)
        job = env.execute_async()
        kafka.send(topic, *more, partition=1, timestamp=1234)
        kafka.until(lambda: len(kafka.read(target)) >= expected and sum(kafka.committed(group, topic).values()) == expected)
        job.cancel().result()

    servers = {"bootstrap.servers": kafka.address}
    properties = {**servers, "group.id": group}
    run(KafkaConsumer(topic, SimpleStringSchema(), properties).set_start_from_earliest(), expected=6)
    run(KafkaConsumer(topic, SimpleStringSchema(), properties), "more-0", "more-1", expected=8)
    written = kafka.read(target)
    assert sorted(record.value or b"" for record in written) == sorted(
        [f"{partition}-{number}".encode() for partition in range(2) for number in range(3)] + [b"more-0", b"more-1"]
    )
    assert {record.timestamp for record in written if (record.value or b"").startswith(b"more")} == {1234}


@pytest.mark.core
def test_a_producer_may_only_log_what_cannot_be_written(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    target = kafka.topic(max_message_bytes="200")
    producer = KafkaProducer(target, SimpleStringSchema(), {"bootstrap.servers": kafka.address, "linger.ms": "0"})
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["a" * 1000, "short"]).add_sink(producer.set_log_failures_only(True))
    env.execute()
    assert "larger than the client or the topic takes" in caplog.text
    writer = producer.set_log_failures_only(False).open(SubtaskInfo("sink", 0, 1))
    writer.write(Batch(["a" * 1000], [None]))
    with pytest.raises(StreamProgramError, match="larger than the client or the topic takes"):
        writer.prepare()
    writer.close()
