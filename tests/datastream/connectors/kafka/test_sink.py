"""Topics of a real broker as sinks of programs: exactly once, whatever is lost, and what goes wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import (
    DeliveryGuarantee,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
    ProducerRecord,
)
from airflow_pipelines.datastream.connectors.kafka import transactions
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo
from tests.datastream.programs import environment
from tests.fixtures.kafka import Kafka

TEXT = SimpleStringSchema()
EXACTLY_ONCE = DeliveryGuarantee.EXACTLY_ONCE


def sink(kafka: Kafka, topic: str, guarantee: DeliveryGuarantee = EXACTLY_ONCE, **properties: str) -> KafkaSink:
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(TEXT).build()
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(serializer)
    for name, value in properties.items():
        builder.set_property(name.replace("_", "."), value)
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(f"writes-{topic}").build()


class Task:
    """A task that writes, with the checkpoints of its program."""

    def __init__(self, sink: KafkaSink, index: int = 0, parallelism: int = 1, prepared: list[Any] | None = None) -> None:
        self.writer: SinkWriter = sink.open(SubtaskInfo("sink", index, parallelism))
        self.prepared: list[Any] = []
        for each in prepared or ():
            self.writer.commit(each)

    def write(self, *values: str) -> None:
        self.writer.write(Batch(list(values), [None] * len(values)))

    def checkpoint(self, *, commits: bool = True) -> list[Any]:
        """What a durable checkpoint has; without its commit, as when the program dies right behind it."""
        prepared = self.writer.prepare()
        self.prepared += [] if prepared is None else [prepared]
        kept = list(self.prepared)
        if commits:
            for each in self.prepared:
                self.writer.commit(each)
            self.prepared.clear()
        return kept


def written(kafka: Kafka, topic: str) -> list[str]:
    return [(record.value or b"").decode() for record in kafka.read(topic)]


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.topic()


def test_records_are_there_once_their_checkpoint_is_durable(kafka: Kafka, topic: str) -> None:
    task = Task(sink(kafka, topic))
    task.write("a", "b")
    assert written(kafka, topic) == []
    task.checkpoint()
    assert written(kafka, topic) == ["a", "b"]
    task.checkpoint()
    task.write("c")
    task.checkpoint()
    task.write("lost")
    task.writer.close()
    assert written(kafka, topic) == ["a", "b", "c"]


def test_what_a_checkpoint_has_is_written_once_wherever_the_program_died(kafka: Kafka, topic: str) -> None:
    first = Task(sink(kafka, topic))
    first.write("a")
    before_commit = first.checkpoint(commits=False)
    first.write("b")
    both = first.checkpoint(commits=False)
    assert len(both) == 2
    second = Task(sink(kafka, topic), prepared=before_commit)
    assert written(kafka, topic) == ["a"]
    # The second one was never durable for this run, which reads its elements again.
    second.write("b")
    after = second.checkpoint()
    assert written(kafka, topic) == ["a", "b"]
    third = Task(sink(kafka, topic), prepared=after)
    third.write("c")
    third.checkpoint()
    assert written(kafka, topic) == ["a", "b", "c"]
    for task in (first, second, third):
        task.writer.close()


def test_a_run_that_was_replaced_writes_nothing_more(kafka: Kafka, topic: str) -> None:
    old = Task(sink(kafka, topic))
    old.write("a")
    kept = old.checkpoint()
    new = Task(sink(kafka, topic), prepared=kept)
    new.write("b")
    new.checkpoint()
    old.write("b of the old run")
    with pytest.raises(StreamProgramError, match=r"another producer has begun with the transactional id 'writes-.*-0'"):
        old.checkpoint()
    assert written(kafka, topic) == ["a", "b"]
    old.writer.close()
    new.writer.close()


def test_a_program_that_begins_anew_writes_under_the_same_prefix(kafka: Kafka, topic: str) -> None:
    for value in ("a", "b"):
        task = Task(sink(kafka, topic))
        task.write(value)
        task.checkpoint()
        task.writer.close()
    assert written(kafka, topic) == ["a", "b"]


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_another_parallelism_writes_what_was_prepared_once_and_in_order(kafka: Kafka, topic: str, before: int, after: int) -> None:
    tasks = [Task(sink(kafka, topic), index, before) for index in range(before)]
    kept: list[list[Any]] = []
    for index, task in enumerate(tasks):
        for number in range(3):
            task.write(f"{index}-{number}")
            newest = task.checkpoint(commits=False)
        kept.append(newest)
        # As after a program that died between two commits.
        task.writer.commit(newest[0])
        task.writer.close()
    write = Write(sink(kafka, topic))
    again = [Task(write.sink, index, after, write.state_of_task(kept, index, after)) for index in range(after)]  # type: ignore[arg-type]
    assert sorted(written(kafka, topic)) == [f"{index}-{number}" for index in range(before) for number in range(3)]
    for index, task in enumerate(again):
        task.write(f"new-{index}")
        task.checkpoint()
        task.writer.close()
    assert sorted(written(kafka, topic))[-after:] == [f"new-{index}" for index in range(after)]
    assert len(written(kafka, topic)) == 3 * before + after


def forget_numbers(kafka: Kafka, topic: str) -> None:
    kafka.admin.delete_consumer_groups([f"writes-{topic}-0"])[f"writes-{topic}-0"].result(30)


def test_numbers_that_brokers_have_forgotten_are_an_error_or_records_are_left_out(
    kafka: Kafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = Task(sink(kafka, topic))
    task.write("a")
    task.checkpoint()
    task.write("b")
    kept = task.checkpoint()
    task.writer.close()
    forget_numbers(kafka, topic)
    with pytest.raises(StreamProgramError, match=r"it is not known whether 1 records of the last checkpoint were written"):
        Task(sink(kafka, topic), prepared=kept)
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(sink(kafka, topic).serializer)
    builder.set_delivery_guarantee(EXACTLY_ONCE).set_transactional_id_prefix(f"writes-{topic}")
    with caplog.at_level(logging.WARNING):
        again = Task(builder.ignore_failures_after_transaction_timeout().build(), prepared=kept)
    assert "they are left out" in caplog.text
    again.write("c")
    again.checkpoint()
    again.writer.close()
    assert written(kafka, topic) == ["a", "b", "c"]


@pytest.mark.core
def test_the_first_transaction_is_not_written_twice_when_brokers_have_forgotten_it(kafka: Kafka, topic: str) -> None:
    task = Task(sink(kafka, topic))
    task.write("a")
    kept = task.checkpoint()
    task.writer.close()
    forget_numbers(kafka, topic)
    with pytest.raises(StreamProgramError, match=r"it is not known whether 1 records of the last checkpoint were written"):
        Task(sink(kafka, topic), prepared=kept)
    assert written(kafka, topic) == ["a"]


@pytest.mark.core
def test_a_number_that_is_old_is_committed_again_before_the_next(kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(sink(kafka, topic))
    task.write("a")
    task.checkpoint()
    # As after a silence that was longer than brokers remember.
    forget_numbers(kafka, topic)
    monkeypatch.setattr(transactions, "RENEWAL_S", 0.0)
    task.write("b")
    kept = task.checkpoint(commits=False)
    task.writer.close()
    again = Task(sink(kafka, topic), prepared=kept)
    again.writer.close()
    assert written(kafka, topic) == ["a", "b"]


class _Chosen(KafkaTopicSelector):
    def __init__(self, topics: list[str]) -> None:
        self.topics = topics

    def apply(self, data: str) -> str:
        return self.topics[int(data[-1])]


def test_topics_that_are_selected_have_one_transaction(kafka: Kafka) -> None:
    topics = [kafka.topic(2), kafka.topic(2)]
    builder = KafkaRecordSerializationSchema.builder().set_topic_selector(_Chosen(topics)).set_key_serialization_schema(TEXT)
    serializer = builder.set_value_serialization_schema(TEXT).build()
    made = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(serializer)
    chosen = made.set_delivery_guarantee(EXACTLY_ONCE).set_transactional_id_prefix(topics[0]).build()
    task = Task(chosen)
    task.write("a1", "b0")
    kept = task.checkpoint()
    task.write("c1")
    more = task.checkpoint()
    task.writer.close()
    # Numbers stand with different topics.
    again = Task(chosen, prepared=[*kept, *more])
    again.writer.close()
    assert [written(kafka, topic) for topic in topics] == [["b0"], ["a1", "c1"]]
    assert {record.key for record in kafka.read(topics[1])} == {b"a1", b"c1"}


class _Own(KafkaRecordSerializationSchema):
    def __init__(self, topic: str) -> None:
        self.topic = topic

    def serialize(self, element: str, timestamp: int | None) -> ProducerRecord | None:
        if element == "skip":
            return None
        return ProducerRecord(self.topic, None, element.encode(), 1, 99, (("h", b"v"), ("n", None)))


@pytest.mark.core
@pytest.mark.rest("DeliveryGuarantee.EXACTLY_ONCE")
@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee))
def test_a_program_writes_whole_records_of_its_own(kafka: Kafka, guarantee: DeliveryGuarantee) -> None:
    topic = kafka.topic(2)
    env = environment(2)
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(_Own(topic))
    made = builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic).build()
    env.from_collection(["a", "skip", "b"]).sink_to(made)
    env.execute()
    found = kafka.read(topic)
    assert sorted((record.partition, record.key, record.value, record.timestamp) for record in found) == [
        (1, b"a", None, 99),
        (1, b"b", None, 99),
    ]
    assert {record.headers for record in found} == {(("h", b"v"), ("n", None))}


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.datastream.connectors.kafka.transactions._PATIENCE_S", 0.5)
    monkeypatch.setattr("airflow_pipelines.systems.kafka.transactions._ANSWER_S", 1.0)


@pytest.mark.usefixtures("no_patience")
def test_a_broker_that_does_not_answer_ends_the_program_in_the_end_and_nothing_is_lost(kafka: Kafka, topic: str) -> None:
    task = Task(sink(kafka, topic, bootstrap_servers="localhost:1"))
    task.write("a")
    with pytest.raises(StreamProgramError, match=r"no broker at localhost:1 answers|Local: Timed out"):
        task.checkpoint()
    task.writer.close()
    task = Task(sink(kafka, topic))
    task.write("a")
    kept = task.checkpoint(commits=False)
    task.writer.close()
    with pytest.raises(StreamProgramError):
        Task(sink(kafka, topic, bootstrap_servers="localhost:1"), prepared=kept)
    Task(sink(kafka, topic), prepared=kept).writer.close()
    assert written(kafka, topic) == ["a"]


@pytest.mark.core
def test_what_brokers_never_take_is_refused_before_a_checkpoint_has_it(kafka: Kafka, topic: str) -> None:
    task = Task(sink(kafka, topic, message_max_bytes="2000"))
    with pytest.raises(StreamProgramError, match="a record of 5000 bytes is larger than the client takes"):
        task.write("x" * 5000)
    task.writer.close()


@pytest.mark.core
@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE])
def test_what_a_topic_does_not_take_is_said(kafka: Kafka, guarantee: DeliveryGuarantee) -> None:
    topic = kafka.topic(max_message_bytes="200")
    task = Task(sink(kafka, topic, guarantee))
    task.write("x" * 1000)
    with pytest.raises(StreamProgramError, match=r"a record is larger than the client or the topic takes.*max.message.bytes"):
        task.checkpoint()
    task.writer.close()


def test_at_least_once_has_all_records_at_a_checkpoint(kafka: Kafka, topic: str) -> None:
    task = Task(sink(kafka, topic, DeliveryGuarantee.AT_LEAST_ONCE, linger_ms="60000"))
    values = [str(number) for number in range(150_000)]
    task.write(*values)
    assert task.checkpoint() == []
    found = written(kafka, topic)
    task.writer.close()
    assert found == values
