from __future__ import annotations

import pytest

from airflow_pipelines.datastream.common.serialization import SimpleStringSchema
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.kafka import (
    KafkaConsumer,
    KafkaNotAvailableError,
    KafkaProducer,
    Semantic,
    StartPosition,
)
from airflow_pipelines.streams.sinks import SubtaskInfo

SERVERS = {"bootstrap.servers": "host:9092", "sasl.password": "s3cret"}


def test_a_consumer_keeps_its_options() -> None:
    consumer = KafkaConsumer("t", SimpleStringSchema(), SERVERS)
    assert (consumer.topics, consumer.start_position, consumer.get_produced_type()) == (
        ["t"],
        StartPosition.GROUP_OFFSETS,
        Types.STRING(),
    )
    assert consumer.set_start_from_earliest().start_position is StartPosition.EARLIEST
    assert consumer.set_start_from_latest().start_position is StartPosition.LATEST
    assert consumer.set_start_from_timestamp(5).start_timestamp == 5
    assert consumer.set_start_from_group_offsets().start_position is StartPosition.GROUP_OFFSETS
    assert consumer.set_commit_offsets_on_checkpoints(False).commits_offsets_on_checkpoints is False
    assert not consumer.is_bounded
    assert "s3cret" not in repr(consumer)


def test_a_producer_keeps_its_options() -> None:
    producer = KafkaProducer("t", SimpleStringSchema(), SERVERS)
    assert (producer.semantic, producer.pool_size) == (Semantic.AT_LEAST_ONCE, 5)
    producer.set_log_failures_only(True).set_flush_on_checkpoint(False).set_write_timestamp_to_kafka(True)
    assert (producer.logs_failures_only, producer.flushes_on_checkpoint, producer.writes_timestamps) == (True, False, True)
    assert producer.ignore_failures_after_transaction_timeout().ignores_failures_after_timeout
    assert KafkaProducer("t", SimpleStringSchema(), SERVERS, 2, KafkaProducer.Semantic.NONE).semantic is Semantic.NONE
    assert "s3cret" not in repr(producer)


def test_say_what_is_missing_when_the_program_starts() -> None:
    with pytest.raises(
        KafkaNotAvailableError, match=r"reads a, b with Kafka, for which this release has no client. Use FileSource"
    ):
        KafkaConsumer(["a", "b"], SimpleStringSchema(), SERVERS).splits(1)
    with pytest.raises(KafkaNotAvailableError, match="writes t with Kafka"):
        KafkaProducer("t", SimpleStringSchema(), SERVERS).open(SubtaskInfo("sink", 0, 1))


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
