"""Topics of a real broker as sources of programs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airflow_pipelines.datastream import Duration, KeyedProcessFunction, WatermarkStrategy
from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import (
    ConsumerRecord,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner, Snapshot
from tests.datastream.programs import environment
from tests.fixtures.kafka import Kafka

NO_TIME = WatermarkStrategy.no_watermarks()


def builder(kafka: Kafka) -> KafkaSourceBuilder:
    return KafkaSource.builder().set_bootstrap_servers(kafka.address).set_value_only_deserializer(SimpleStringSchema())


class _Timed(KeyedProcessFunction):
    """Each element with the watermark that it finds."""

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timer_service().current_watermark()


class Run:
    """A program that reads a source, step by step."""

    def __init__(self, source: KafkaSource, snapshot: Snapshot | None = None, parallelism: int = 1, time: Any = None) -> None:
        env = environment(parallelism)
        self.sink, self.clock = CollectSink(), ManualClock(0)
        stream = env.from_source(source, time or NO_TIME, "topic").uid("topic")
        if time is not None:
            stream = stream.key_by(lambda _: 0).process(_Timed()).uid("timed")
        node = stream.sink_to(self.sink).uid("sink")._node
        env._take_sinks()
        self.runner = LocalRunner(plan_of(env.graph, [node.id], Defaults(parallelism)), snapshot=snapshot, clock=self.clock)

    def until(self, kafka: Kafka, number: int) -> list[Any]:
        """What is read until there were so many elements, or the program has ended."""
        found: list[Any] = []

        def is_enough() -> bool:
            self.clock.advance(200)
            self.runner.step()
            found.extend(self.sink.values)
            self.sink.values.clear()
            return len(found) >= number or self.runner.has_ended

        kafka.until(is_enough)
        return found

    def to_the_end(self, kafka: Kafka) -> list[Any]:
        found = self.until(kafka, 10**9)
        self.runner.close()
        return sorted(found)

    def checkpoint(self) -> Snapshot:
        kept = self.runner.snapshot().to_bytes()
        self.runner.notify_checkpoint_complete()
        return Snapshot.from_bytes(kept)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """Two partitions: ``a0`` to ``a4`` of the times 1000 to 1004, and ``b0`` to ``b2`` of 2000 to 2002."""
    name = kafka.topic(2)
    for number in range(5):
        kafka.send(name, f"a{number}", partition=0, timestamp=1000 + number)
    for number in range(3):
        kafka.send(name, f"b{number}", partition=1, timestamp=2000 + number)
    return name


def values(letter: str, *numbers: int) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def places(topic: str, *offsets: int) -> dict[KafkaTopicPartition, int]:
    return {KafkaTopicPartition(topic, number): offset for number, offset in enumerate(offsets)}


@pytest.mark.core
def test_begins_and_ends_at_every_kind_of_place(kafka: Kafka, topic: str) -> None:
    def read(starting: KafkaOffsetsInitializer, stopping: KafkaOffsetsInitializer, group: str = "") -> list[str]:
        build = builder(kafka).set_topics(topic).set_starting_offsets(starting).set_bounded(stopping)
        return Run((build.set_group_id(group) if group else build).build(), parallelism=3).to_the_end(kafka)

    offsets = KafkaOffsetsInitializer
    everything = values("a", 0, 1, 2, 3, 4) + values("b", 0, 1, 2)
    assert read(offsets.earliest(), offsets.latest()) == everything
    assert read(offsets.latest(), offsets.latest()) == []
    assert read(offsets.timestamp(1003), offsets.latest()) == values("a", 3, 4) + values("b", 0, 1, 2)
    assert read(offsets.earliest(), offsets.timestamp(2001)) == values("a", 0, 1, 2, 3, 4) + values("b", 0)
    assert read(offsets.timestamp(9999), offsets.latest()) == []
    assert read(offsets.offsets(places(topic, 4, 0)), offsets.offsets(places(topic, 5, 2))) == values("a", 4) + values("b", 0, 1)
    some = offsets.offsets({KafkaTopicPartition(topic, 1): 1})
    assert read(some, offsets.latest()) == values("a", 0, 1, 2, 3, 4) + values("b", 1, 2)
    none = offsets.offsets({KafkaTopicPartition(topic, 1): 1}, KafkaOffsetResetStrategy.LATEST)
    assert read(none, offsets.latest()) == values("b", 1, 2)
    group = f"group-of-{topic}"
    with pytest.raises(StreamProgramError, match=rf"the group '{group}' has committed no offset for partition 0 of {topic}"):
        read(offsets.committed_offsets(), offsets.latest(), group)
    assert read(offsets.committed_offsets(KafkaOffsetResetStrategy.EARLIEST), offsets.latest(), group) == everything


@pytest.mark.core
def test_a_group_has_the_offsets_of_the_newest_checkpoint_and_another_program_may_begin_there(kafka: Kafka, topic: str) -> None:
    group = f"group-of-{topic}"
    run = Run(builder(kafka).set_topics(topic).set_group_id(group).build())
    run.until(kafka, 8)
    assert kafka.committed(group, topic) == {}
    run.checkpoint()
    kafka.send(topic, "a5")
    run.until(kafka, 1)
    kafka.until(lambda: kafka.committed(group, topic) == {0: 5, 1: 3})
    run.runner.close()
    committed = KafkaOffsetsInitializer.committed_offsets()
    again = builder(kafka).set_topics(topic).set_group_id(group).set_starting_offsets(committed)
    assert Run(again.set_bounded(KafkaOffsetsInitializer.latest()).build()).to_the_end(kafka) == ["a5"]
    assert kafka.committed(group, topic) == {0: 5, 1: 3}


@pytest.mark.core
@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (3, 2)])
def test_goes_on_from_a_checkpoint_with_any_number_of_tasks(kafka: Kafka, topic: str, before: int, after: int) -> None:
    source = builder(kafka).set_topics(topic).set_starting_offsets(KafkaOffsetsInitializer.latest()).build()
    run = Run(source, parallelism=before)
    kafka.send(topic, "a5", "a6")
    assert run.until(kafka, 2) == ["a5", "a6"]
    kept = run.checkpoint()
    kafka.send(topic, "a7")
    kafka.send(topic, "b3", partition=1)
    assert sorted(run.until(kafka, 2)) == ["a7", "b3"]
    run.runner.abort()
    again = Run(source, kept, after)
    # Also the partition of which nothing was read begins where "latest" was at the first start.
    assert sorted(again.until(kafka, 2)) == ["a7", "b3"]
    again.runner.abort()


def test_new_partitions_and_topics_are_found_while_it_runs_and_after_a_restart(kafka: Kafka, topic: str) -> None:
    build = builder(kafka).set_topic_pattern(f"{topic}(-more)?").set_property("partition.discovery.interval.ms", "20")
    source = build.set_starting_offsets(KafkaOffsetsInitializer.latest()).build()
    run = Run(source, parallelism=2)
    kafka.grow(topic, 3)
    kafka.send(topic, "c0", partition=2)
    assert run.until(kafka, 1) == ["c0"]
    kept = run.checkpoint()
    run.runner.abort()
    kafka.create(f"{topic}-more")
    kafka.send(f"{topic}-more", "d0")
    kafka.send(topic, "c1", partition=2)
    again = Run(source, kept)
    assert sorted(again.until(kafka, 2)) == ["c1", "d0"]
    again.runner.abort()


def test_a_pattern_that_nothing_matches_yet_waits_for_a_topic(kafka: Kafka) -> None:
    name = kafka.topic() + "-later"
    run = Run(builder(kafka).set_topic_pattern(name).set_property("partition.discovery.interval.ms", "20").build())
    run.runner.step()
    assert not run.runner.has_ended
    kafka.create(name)
    kafka.send(name, "x")
    assert run.until(kafka, 1) == ["x"]
    run.runner.abort()


@pytest.mark.core
def test_chosen_partitions_are_read_and_no_others(kafka: Kafka, topic: str) -> None:
    build = builder(kafka).set_partitions([KafkaTopicPartition(topic, 1)]).set_bounded(KafkaOffsetsInitializer.latest())
    assert Run(build.build()).to_the_end(kafka) == values("b", 0, 1, 2)
    missing = builder(kafka).set_partitions([KafkaTopicPartition(topic, 2)]).build()
    with pytest.raises(StreamProgramError, match=f"there is no partition {topic}/2"):
        Run(missing)


@pytest.mark.core
def test_each_partition_has_a_watermark_of_its_own(kafka: Kafka, topic: str) -> None:
    source = builder(kafka).set_topics(topic).build()
    run = Run(source, time=WatermarkStrategy.for_monotonous_timestamps())
    run.until(kafka, 8)
    kafka.send(topic, "a", timestamp=5000)
    run.until(kafka, 1)
    kafka.send(topic, "b", partition=1, timestamp=2500)
    # Partition 1 was at 2002, however far partition 0 is.
    assert run.until(kafka, 1) == [("b", 2001)]
    kafka.send(topic, "b", partition=1, timestamp=6000)
    assert run.until(kafka, 1) == [("b", 2499)]
    kafka.send(topic, "a", timestamp=7000)
    # Its own element is not counted yet, and partition 0 was at 5000.
    assert run.until(kafka, 1) == [("a", 4999)]
    run.runner.abort()


@pytest.mark.core
def test_an_idle_partition_holds_nobody_back(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(1000))
    run = Run(builder(kafka).set_topics(topic).build(), time=strategy)
    kafka.send(topic, "a", timestamp=1000)
    run.until(kafka, 1)
    for _ in range(6):
        run.clock.advance(200)
        kafka.send(topic, "a", timestamp=2000)
        run.until(kafka, 1)
    kafka.send(topic, "a", timestamp=3000)
    assert run.until(kafka, 1) == [("a", 1999)]
    run.runner.abort()


class _Whole(KafkaRecordDeserializationSchema):
    def deserialize(self, record: ConsumerRecord) -> Any:
        return None if record.key == b"skip" else record


@pytest.mark.core
def test_what_is_left_is_known_after_the_first_answer(kafka: Kafka, topic: str) -> None:
    source = builder(kafka).set_topics(topic).set_starting_offsets(KafkaOffsetsInitializer.offsets(places(topic, 1, 0)))
    made = source.set_unbounded(KafkaOffsetsInitializer.offsets(places(topic, 4, 3))).build()
    first, second = (made.open(split, None) for split in made.splits(1) or ())
    assert (first.left(), second.left()) == (None, None)
    read: list[Any] = []

    def is_known() -> bool:
        first.poll(2)
        return first.left() is not None

    kafka.until(is_known)
    assert first.next_offset + (first.left() or 0) == 4, "what comes after the place where it ends is not read"

    def is_at_its_end() -> bool:
        read.extend(second.poll(1).values)
        return len(read) == 3 and second.left() == 0

    kafka.until(is_at_its_end)
    assert read == values("b", 0, 1, 2)
    for reader in (first, second):
        reader.close()


@pytest.mark.core
def test_whole_records_have_all_that_they_were_written_with(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, None, key="k", headers=[("h", "v"), ("n", None)], timestamp=77)
    kafka.send(topic, "x", key="skip")
    kafka.send(topic, b"\xff")
    build = KafkaSource.builder().set_bootstrap_servers(kafka.address).set_topics(topic).set_deserializer(_Whole())
    run = Run(build.set_bounded(KafkaOffsetsInitializer.latest()).build())
    first, second = run.until(kafka, 2)
    run.runner.close()
    assert first == ConsumerRecord(topic, 0, 0, 77, b"k", None, (("h", b"v"), ("n", None)))
    assert (second.offset, second.key, second.value, second.headers) == (2, None, b"\xff", ())


@pytest.mark.core
def test_a_record_that_cannot_be_read_says_where_it_is(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "fine", None, b"\xff")
    run = Run(builder(kafka).set_topics(topic).build())
    with pytest.raises(ValueError, match="no text in UTF-8") as raised:
        run.until(kafka, 2)
    assert f"in topic {topic}, partition 0, offset 2" in raised.value.__notes__
    run.runner.abort()


@pytest.mark.core
def test_ends_behind_marks_of_transactions_and_leaves_out_what_was_aborted(kafka: Kafka) -> None:
    from confluent_kafka import Producer

    topic = kafka.topic()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions()
    for value, ends in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush()
        ends()
    build = builder(kafka).set_topics(topic).set_bounded(KafkaOffsetsInitializer.latest())
    assert Run(build.build()).to_the_end(kafka) == ["kept"]
    everything = build.set_property("isolation.level", "read_uncommitted")
    assert Run(everything.build()).to_the_end(kafka) == ["dropped", "kept"]


@pytest.mark.core
def test_records_that_were_removed_before_they_were_read_are_an_error_unless_it_is_told_to_go_on(
    kafka: Kafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(builder(kafka).set_partitions([KafkaTopicPartition(topic, 0)]).build())
    run.until(kafka, 5)
    kept = run.checkpoint()
    run.runner.abort()
    kafka.send(topic, *values("a", 5, 6, 7))
    kafka.expire(topic, 0, 7)
    again = Run(builder(kafka).set_partitions([KafkaTopicPartition(topic, 0)]).build(), kept)
    with pytest.raises(StreamProgramError, match=rf"offset 5 of partition 0 of {topic} comes next, and the topic has 7 to 8"):
        again.until(kafka, 1)
    again.runner.abort()
    goes_on = builder(kafka).set_partitions([KafkaTopicPartition(topic, 0)]).set_property("auto.offset.reset", "earliest")
    with caplog.at_level(logging.WARNING):
        last = Run(goes_on.build(), kept)
        assert last.until(kafka, 1) == ["a7"]
    kept = last.checkpoint()
    last.runner.abort()
    kafka.send(topic, "a8")
    then = Run(builder(kafka).set_partitions([KafkaTopicPartition(topic, 0)]).build(), kept)
    assert then.until(kafka, 1) == ["a8"]
    then.runner.abort()
    assert f"offset 5 of partition 0 of {topic} is not there any more; reading goes on at 7" in caplog.text


@pytest.mark.core
def test_a_topic_that_was_made_anew_is_read_from_its_beginning_and_goes_on_there(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b", "c")
    build = builder(kafka).set_topics(topic).set_property("auto.offset.reset", "earliest")
    run = Run(build.build())
    run.until(kafka, 3)
    kept = run.checkpoint()
    run.runner.abort()
    kafka.drop(topic)
    kafka.until(lambda: topic not in kafka.admin.list_topics(timeout=5).topics)
    kafka.create(topic)
    kafka.send(topic, "x")
    again = Run(build.build(), kept)
    assert again.until(kafka, 1) == ["x"]
    kept = again.checkpoint()
    again.runner.abort()
    kafka.send(topic, "y")
    last = Run(build.build(), kept)
    assert last.until(kafka, 1) == ["y"]
    last.runner.abort()


@pytest.mark.core
def test_a_late_report_that_a_place_of_the_old_topic_is_gone_passes_over_no_record_of_the_new_one(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    build = builder(kafka).set_topics(topic).set_property("auto.offset.reset", "latest")

    def read_one() -> Any:
        """The place behind the first record of the topic."""
        source = build.build()
        reader = source.open(source.splits(1)[0], None)
        kafka.until(lambda: len(reader.poll(1).values) == 1)
        reader.close()
        return reader.position()

    kafka.send(topic, "a")
    (_, old_id), of_old = read_one(), 3
    kafka.make_anew(topic, 2)
    kafka.send(topic, "x")
    _, new_id = read_one()
    source = build.build()
    first, other = source.splits(1)
    reader = source.open(first, (of_old, old_id))
    # The client asks for the place in the old topic, and its report waits when the other partition tells of the new one.
    time.sleep(2)
    source.open(other, (0, new_id))
    kafka.send(topic, "y")
    found: list[str] = []
    kafka.until(lambda: bool(found.extend(reader.poll(10).values) or found))
    assert found == ["y"]
    reader.close()


def test_a_partition_that_is_far_ahead_of_what_is_wanted_waits_and_comes_in_order(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, *(str(number) for number in range(60_000)), partition=0)
    kafka.send(topic, "other", partition=1)
    source = builder(kafka).set_topics(topic).build()
    fast, slow = (source.open(split, None) for split in source.splits(1))
    # The other partition is asked again and again while nobody takes what comes of the first.
    kafka.until(lambda: slow.poll(10_000).values == ["other"])
    for _ in range(200):
        slow.poll(10_000)
    found: list[str] = []
    kafka.until(lambda: len(found.extend(fast.poll(10_000).values) or found) == 60_000)
    assert found == [str(number) for number in range(60_000)]
    fast.close()
    slow.close()


@pytest.mark.core
def test_what_goes_wrong_at_the_start_is_said_within_seconds(kafka: Kafka) -> None:
    with pytest.raises(StreamProgramError, match=r"topic 'no-such-topic' cannot be read at .*set_topic_pattern"):
        Run(builder(kafka).set_topics("no-such-topic").build())
    nobody = KafkaSource.builder().set_bootstrap_servers("localhost:1").set_topics("t")
    with pytest.raises(StreamProgramError, match=r"no broker at localhost:1 answers.*correct 'bootstrap\.servers' of the source"):
        Run(nobody.set_value_only_deserializer(SimpleStringSchema()).build())
    bad = builder(kafka).set_topics("t").set_property("fetch.min.bytes", "many").build()
    with pytest.raises(StreamProgramError, match=r"no value that Kafka's client accepts: .*fetch.min.bytes"):
        Run(bad)


@pytest.mark.core
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_topic_that_is_made_anew(kafka: Kafka, topic: str, is_stopped: bool) -> None:
    source = builder(kafka).set_topics(topic).build()
    first = Run(source)
    assert len(first.until(kafka, 8)) == 8
    kept = first.checkpoint()
    if is_stopped:
        first.runner.close()
    kafka.make_anew(topic, 2)
    for number in range(10):
        kafka.send(topic, f"new{number}", partition=0)
    run = Run(source, kept) if is_stopped else first
    with pytest.raises(StreamProgramError, match=f"topic '{topic}' was deleted and made anew"):
        run.until(kafka, 1)


@pytest.mark.core
@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("is_first_old", [True, False])
def test_a_snapshot_with_places_in_a_topic_and_in_the_one_made_anew(kafka: Kafka, reset: str, is_first_old: bool) -> None:
    topic = kafka.topic(2)

    def readers(positions: Sequence[Any]) -> list[Any]:
        source = builder(kafka).set_topics(topic).set_property("auto.offset.reset", reset).build()
        splits = sorted(source.splits(1))
        return [source.open(split, position) for split, position in zip(splits, positions, strict=True)]

    def send(*texts: str) -> None:
        for partition in (0, 1):
            kafka.send(topic, *(f"{text}{partition}" for text in texts), partition=partition)

    def read(reader: Any, number: int) -> list[Any]:
        found: list[Any] = []
        kafka.until(lambda: len(found.extend(reader.poll(100).values) or found) >= number)
        return found

    def places_after(number: int) -> list[Any]:
        made = readers([None, None])
        for reader in made:
            read(reader, number)
        found = [reader.position() for reader in made]
        for reader in made:
            reader.close()
        return found

    send("a", "b", "c")
    old = places_after(3)
    kafka.make_anew(topic, 2)
    send("x")
    new = places_after(1)
    send("y")
    assert len({topic_id for _, topic_id in (*old, *new)}) == 2
    made = readers([old[0], new[1]] if is_first_old else [new[0], old[1]])
    send("z")
    of_old, of_new = (0, 1) if is_first_old else (1, 0)
    wanted = ["x", "y", "z"] if reset == "earliest" else ["z"]
    assert read(made[of_old], len(wanted)) == [f"{text}{of_old}" for text in wanted]
    assert read(made[of_new], 2) == [f"{text}{of_new}" for text in ("y", "z")]
    assert all(reader.poll(100).values == [] for reader in made)
    assert {reader.position()[1] for reader in made} == {new[0][1]}
    for reader in made:
        reader.close()


def test_a_topic_that_was_made_anew_with_more_records_is_read_from_its_beginning(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b", "c")
    build = builder(kafka).set_topics(topic).set_property("auto.offset.reset", "earliest")
    run = Run(build.build())
    assert len(run.until(kafka, 3)) == 3
    kept = run.checkpoint()
    kafka.make_anew(topic)
    kafka.send(topic, "v", "w", "x", "y")
    assert run.until(kafka, 4) == ["v", "w", "x", "y"]
    after = run.checkpoint()
    run.runner.abort()
    again = Run(build.build(), kept)
    assert again.until(kafka, 4) == ["v", "w", "x", "y"]
    again.runner.abort()
    kafka.send(topic, "z")
    last = Run(build.build(), after)
    assert last.until(kafka, 1) == ["z"]
    last.runner.abort()
