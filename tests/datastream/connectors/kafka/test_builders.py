"""What sources and sinks of Kafka are told, before any broker is asked."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from airflow_pipelines.datastream.common import SimpleStringSchema, Types
from airflow_pipelines.datastream.connectors import (
    DeliveryGuarantee,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
    KafkaTopicSelector,
    ProducerRecord,
)


def source() -> KafkaSourceBuilder:
    return KafkaSource.builder().set_bootstrap_servers("host:9092").set_value_only_deserializer(SimpleStringSchema())


def sink() -> KafkaSinkBuilder:
    serializer = KafkaRecordSerializationSchema.builder().set_topic("t").set_value_serialization_schema(SimpleStringSchema())
    return KafkaSink.builder().set_bootstrap_servers("host:9092").set_record_serializer(serializer.build())


def test_a_source_is_what_its_builder_was_told() -> None:
    made = source().set_topics("b", "a", "b").set_group_id("g").set_properties({"sasl.password": "s3cret"}).build()
    assert made.settings.choice.topics == ("b", "a")
    assert made.settings.starting == KafkaOffsetsInitializer.earliest()
    assert (made.is_bounded, made.look_interval, made.get_produced_type()) == (False, 10.0, Types.STRING())
    assert made.settings.commits
    assert "s3cret" not in repr(made)
    assert str(made) == "KafkaSource(b, a)"
    again = pickle.loads(pickle.dumps(made))
    assert again.settings.properties == made.settings.properties
    assert again.client is not made.client


@pytest.mark.parametrize(
    ("build", "bounded", "interval"),
    [
        (lambda b: b.set_topics("t").set_bounded(KafkaOffsetsInitializer.latest()), True, None),
        (lambda b: b.set_topics("t").set_unbounded(KafkaOffsetsInitializer.timestamp(5)), False, None),
        (lambda b: b.set_partitions([KafkaTopicPartition("t", 1)]), False, None),
        (lambda b: b.set_topic_pattern("t.*").set_property("partition.discovery.interval.ms", "250"), False, 0.25),
        (lambda b: b.set_topics("t").set_property("partition.discovery.interval.ms", "0"), False, None),
    ],
    ids=["bounded", "unbounded", "partitions", "often", "never"],
)
def test_new_partitions_are_looked_for_where_reading_has_no_end(
    build: Callable[[KafkaSourceBuilder], KafkaSourceBuilder], bounded: bool, interval: float | None
) -> None:
    made = build(source()).build()
    assert (made.is_bounded, made.look_interval) == (bounded, interval)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: source().build(), r"needs topics: call set_topics\('name'\)"),
        (lambda: KafkaSource.builder().set_topics("t").build(), "needs brokers"),
        (lambda: KafkaSource.builder().set_topics("t").set_bootstrap_servers("h:1").build(), "needs a schema"),
        (lambda: source().set_topics("t").set_topic_pattern("u"), "reads t: call one of"),
        (lambda: source().set_topics(), "at least one topic"),
        (lambda: source().set_partitions([]), "at least one KafkaTopicPartition"),
        (lambda: source().set_topic_pattern("("), "no regular expression"),
        (lambda: source().set_property("groupid", "g"), r"'groupid', which is no property of librdkafka.*did you mean 'group.id'"),
        (lambda: source().set_property("sasl.jaas.config", "x"), "give 'sasl.username' and 'sasl.password'"),
        (
            lambda: source().set_topics("t").set_property("auto.offset.reset", "soon").build(),
            "takes 'earliest', 'latest' or 'none'",
        ),
        (
            lambda: source().set_topics("t").set_property("partition.discovery.interval.ms", "often").build(),
            "takes milliseconds, not 'often'",
        ),
        (
            lambda: source().set_topics("t").set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build(),
            "those of a group",
        ),
        (lambda: KafkaOffsetsInitializer.timestamp(-1), "at least 0"),
        (lambda: KafkaTopicPartition("t", -1), "at least 0"),
        (lambda: sink().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build(), "call set_transactional_id_prefix"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("h:1").build(), "needs a schema"),
        (lambda: sink().set_property("transactional.id", "x"), r"give set_transactional_id_prefix\(...\)"),
        (lambda: sink().set_property("group.id", "x"), "no property of librdkafka"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), "needs values"),
        (
            lambda: KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema()).build(),
            "needs a topic",
        ),
    ],
)
def test_what_is_missing_or_does_not_fit_is_said_when_it_is_built(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_offsets_and_partitions_are_checked() -> None:
    with pytest.raises(TypeError, match=r"use KafkaTopicPartition\('topic', 0\)"):
        KafkaOffsetsInitializer.offsets({("t", 0): 5})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"takes one of KafkaOffsetResetStrategy\.LATEST"):
        KafkaOffsetsInitializer.committed_offsets("latest")  # type: ignore[arg-type]
    given = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): 5})
    assert given.reset_strategy is KafkaOffsetResetStrategy.EARLIEST


def test_properties_of_java_that_make_no_difference_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    made = source().set_topics("t").set_property("value.deserializer", "a.b.C").build()
    assert "value.deserializer" not in made.settings.properties
    assert "'value.deserializer' of Kafka has no effect here" in caplog.text


def test_references_are_named_and_nothing_else_is() -> None:
    made = source().set_topics("t").set_property("sasl.password", "${secret:kafka}").build()
    assert list(made.references()) == ["${secret:kafka}"]
    assert list(sink().set_property("sasl.password", "${env:PASSWORD}").build().references()) == ["${env:PASSWORD}"]


class _ByLength(KafkaTopicSelector):
    def apply(self, data: str) -> str:
        return f"of-{len(data)}"


def test_records_have_a_topic_a_key_and_the_time_of_their_elements() -> None:
    builder = KafkaRecordSerializationSchema.builder().set_topic_selector(_ByLength())
    schema = builder.set_key_serialization_schema(SimpleStringSchema()).set_value_serialization_schema(SimpleStringSchema()).build()
    assert schema.serialize("ab", 5) == ProducerRecord("of-2", b"ab", b"ab", None, 5)
    assert schema.serialize("a", -1) == ProducerRecord("of-1", b"a", b"a")
    selected = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda value: value[0])
    plain = selected.set_value_serialization_schema(SimpleStringSchema("UTF-16-LE")).build()
    assert plain.serialize("xy", None) == ProducerRecord("x", b"x\0y\0")
