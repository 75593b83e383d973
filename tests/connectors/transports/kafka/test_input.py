"""Topics of a real broker as inputs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, Lag, TransientConnectorFailure
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import InputContext, PipelineReference
from airflow_pipelines.connectors.transports.kafka import input as kafka_input
from airflow_pipelines.connectors.transports.kafka.definitions import KAFKA_INPUT
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from tests.connectors.relations import col, relation
from tests.fixtures.kafka import Kafka
from tools.kafka_broker import PASSWORD, USER, Broker

TABLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"))
PATIENCE_S = 30.0


class Reader:
    """An opened input, and what it gave."""

    def __init__(self, address: str, topic: str, position: Position | None = None, **options: Any) -> None:
        declared = {"topic": topic, "bootstrap.servers": address, "start_from": "earliest", **options}
        context = InputContext(
            endpoint="t.c",
            schema=TABLE,
            format="json",
            new_parser=lambda: JsonParser(TABLE, JsonOptions(update_format="raw")),
            now=wall_clock,
            pipeline=PipelineReference("1", "p"),
            common=ConnectorOptions(),
        )
        self.input: Any = KAFKA_INPUT.open(KAFKA_INPUT.options.model_validate(declared), context)
        self.position = position
        self.ids: list[int] = []
        self.errors: list[str] = []
        self.ended = False
        try:
            self.input.open(position)
        except ConnectorFailure:
            self.input.close()
            raise

    def read(self, timeout_s: float = 0.2, most: int = 100_000) -> InputChunk | None:
        chunk: InputChunk | None = self.input.read(most, timeout_s)
        if chunk is not None:
            self.position, self.ended = chunk.position, chunk.end_of_input
            self.errors += [error.message for error in chunk.parse_errors]
            if chunk.changes is not None:
                self.ids += chunk.changes.rows.column("id").to_pylist()
        return chunk

    def until(self, done: Callable[[], bool], most: int = 100_000) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < deadline, (self.ids, self.errors)
            self.read(most=most)

    def until_ids(self, number: int) -> list[int]:
        self.until(lambda: len(self.ids) >= number)
        return self.ids

    @property
    def places(self) -> dict[str, int]:
        assert self.position is not None
        places: dict[str, int] = self.position["offsets"]
        return places

    def close(self) -> None:
        self.input.close()


class _Scripted:
    """A consumer of two partitions that gives what it is told to, block by block."""

    def __init__(self, *blocks: list[Message]) -> None:
        self._blocks = list(blocks)

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None, 1: None})})

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return 0, 0

    def consume(self, most: int, timeout_s: float) -> list[Message]:
        if most > 1 or not self._blocks:
            return self._blocks.pop(0) if self._blocks else []
        return [self._blocks[0].pop(0)]

    def assign(self, partitions: Any) -> None:
        pass

    def close(self) -> None:
        pass


def _record(partition: int, offset: int) -> Message:
    return Message("t", partition, offset, None, json.dumps({"id": offset}).encode())


def _end(partition: int, offset: int) -> Message:
    return Message("t", partition, offset, error=KafkaError(KafkaError._PARTITION_EOF))


@pytest.mark.parametrize(
    ("block", "ended"),
    [
        ([_record(0, 0), _record(0, 1), _end(0, 2), _record(1, 0), _end(1, 1)], True),
        ([_end(1, 0), _record(0, 0), _end(0, 1), _record(1, 0)], False),
        # The second offset is the mark of a transaction.
        ([_record(0, 0), _end(0, 2), _end(1, 0)], True),
    ],
)
def test_an_end_may_come_in_a_block_with_the_last_records(
    monkeypatch: pytest.MonkeyPatch, block: list[Message], ended: bool
) -> None:
    records = sum(message.error() is None for message in block)
    consumer = _Scripted(block)
    monkeypatch.setattr(kafka_input, "new_reader", lambda *_: consumer)
    monkeypatch.setattr(kafka_input.TopicIds, "_ask", lambda *_: {})
    reader = Reader("nobody", "t", **{"enable.partition.eof": True})
    while reader.read(0.0) is not None and not reader.ended:
        pass
    assert reader.ended is ended
    assert len(reader.ids) == records


@pytest.fixture
def read(kafka: Kafka) -> Iterator[Callable[..., Reader]]:
    readers: list[Reader] = []

    def new(topic: str, position: Position | None = None, **options: Any) -> Reader:
        readers.append(Reader(options.pop("address", kafka.address), topic, position, **options))
        return readers[-1]

    yield new
    for reader in readers:
        reader.close()


Read = Callable[..., Reader]


def row(number: int) -> str:
    return json.dumps({"id": number, "name": f"n{number}"})


def rows(*numbers: int) -> list[str]:
    return [row(number) for number in numbers]


@pytest.mark.core
def test_all_partitions_are_read_to_their_ends(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(3)
    kafka.send(topic, *rows(*range(100)), partition=0)
    kafka.send(topic, *rows(*range(100, 150)), partition=2)
    reader = read(topic, **{"enable.partition.eof": True})
    reader.until(lambda: reader.ended)
    assert sorted(reader.ids) == list(range(150))
    assert reader.places == {"0": 100, "1": 0, "2": 50}
    assert reader.input.lag() == Lag(records=0)


@pytest.mark.core
def test_what_is_read_is_fetched_anew_at_once(kafka: Kafka, read: Read) -> None:
    # A client that keeps one record has enough after each fetch, and each fetch brings one of the blocks in which they were sent.
    # Librdkafka itself would look once a second whether it needs more: longer than anybody waits here.
    blocks, topic = int(PATIENCE_S) + 10, kafka.topic()
    for number in range(blocks):
        kafka.send(topic, row(number))
    reader = read(topic, **{"queued.min.messages": 1, "fetch.message.max.bytes": 1})
    assert reader.until_ids(blocks) == list(range(blocks))


@pytest.mark.core
def test_a_position_goes_on_where_it_was(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, *rows(1, 2, 3))
    first = read(topic)
    first.until_ids(3)
    kafka.send(topic, *rows(4), partition=1)
    kafka.send(topic, *rows(5))
    second = read(topic, first.position)
    assert sorted(second.until_ids(2)) == [4, 5]
    assert sorted(first.until_ids(5)) == [1, 2, 3, 4, 5]
    # A position with a partition that is not chosen any more keeps its place.
    third = read(topic, second.position, partitions=[1])
    third.read()
    assert third.places == {"0": 4, "1": 1}


@pytest.mark.core
def test_the_end_of_a_topic_is_the_same_place_after_a_restart(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    first = read(topic, start_from="latest")
    # Without any record there is a position already.
    assert first.read() is not None
    position = first.position
    kafka.send(topic, *rows(2))
    assert read(topic, position, start_from="latest").until_ids(1) == [2]
    assert first.until_ids(1) == [2]


@pytest.mark.core
def test_times_and_offsets(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    for number, time_ms in ((1, 1_000), (2, 2_000), (3, 3_000)):
        kafka.send(topic, row(number), timestamp=time_ms)
    assert read(topic, start_from={"timestamp": 1_500}).until_ids(2) == [2, 3]
    assert read(topic, start_from={"offsets": [2]}).until_ids(1) == [3]
    late = read(topic, start_from={"timestamp": 5_000})
    late.read()
    assert late.places == {"0": 3}


@pytest.mark.core
def test_records_that_say_nothing_are_errors_with_their_places(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, row(1), None, "{", "", '{"id": "x"}', *rows(2, 3), partition=1, key=b"\xff")
    reader = read(topic)
    assert reader.until_ids(3) == [1, 2, 3]
    reader.until(lambda: len(reader.errors) == 4)
    places = [f"topic {topic}, partition 1, offset {offset}" for offset in (1, 2, 3, 4)]
    assert sorted(error.split(":")[0] for error in reader.errors) == places
    assert "no payload" in "".join(error for error in reader.errors if places[0] in error)
    assert "malformed JSON" in "".join(error for error in reader.errors if places[1] in error)
    assert "column 'id'" in "".join(error for error in reader.errors if places[3] in error)


@pytest.mark.core
def test_headers_choose_records(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, row(1), headers=[("kind", "a")])
    kafka.send(topic, row(2), headers=[("kind", "b"), ("more", None)])
    kafka.send(topic, row(3))
    reader = read(topic, header_filter={"header": {"name": "kind", "pattern": "b|c"}}, **{"enable.partition.eof": True})
    reader.until(lambda: reader.ended)
    assert reader.ids == [2]
    assert reader.places == {"0": 3}


def test_new_partitions_are_read_from_their_beginnings(kafka: Kafka, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_input, "_PARTITIONS_S", 0.2)
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    reader = read(topic, start_from="latest", **{"topic.metadata.refresh.interval.ms": 200})
    reader.read()
    kafka.grow(topic, 3)
    kafka.send(topic, *rows(2), partition=2)
    assert reader.until_ids(1) == [2]
    assert reader.places == {"0": 1, "1": 0, "2": 1}
    # One that was made while nobody read is read from its beginning, too.
    kafka.grow(topic, 4)
    kafka.send(topic, *rows(3), partition=3)
    assert read(topic, reader.position, start_from="latest").until_ids(1) == [3]


def test_partitions_in_the_order_of_time(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(3)
    for number in range(60):
        kafka.send(topic, row(number), partition=number % 2, timestamp=1_000 + number)
    reader = read(topic, synchronize_partitions=True)
    assert reader.until_ids(60) == list(range(60))
    position = reader.position
    kafka.send(topic, row(61), partition=2, timestamp=3_000)
    kafka.send(topic, row(60), partition=1, timestamp=2_000)
    assert sorted(reader.until_ids(62))[60:] == [60, 61]
    again = read(topic, position, synchronize_partitions=True, **{"enable.partition.eof": True})
    again.until(lambda: again.ended)
    assert sorted(again.ids) == [60, 61]


@pytest.mark.core
def test_open_and_aborted_transactions_are_not_read(kafka: Kafka, read: Read) -> None:
    from confluent_kafka import Producer

    topic = kafka.topic()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for number, commits in ((1, True), (2, False), (3, True)):
        producer.begin_transaction()
        producer.produce(topic, row(number))
        producer.flush()
        (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_S)
    reader = read(topic, **{"enable.partition.eof": True})
    reader.until(lambda: reader.ended)
    assert reader.ids == [1, 3]
    # Past the marks of the transactions, too: nothing is left.
    assert reader.places == {"0": 6}


@pytest.mark.core
def test_a_commit_does_not_wait_for_a_read(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    reader = read(topic, **{"group.id": topic})
    reader.until_ids(1)
    ended = threading.Event()

    def read_on() -> None:
        while not ended.is_set():
            reader.read()

    thread = threading.Thread(target=read_on)
    thread.start()
    try:
        begun = time.monotonic()
        for _ in range(100):
            reader.input.commit({"offsets": {"0": 1}})
        assert time.monotonic() - begun < 5
        deadline = time.monotonic() + 30
        while kafka.committed(topic, topic) != {0: 1}:
            assert time.monotonic() < deadline, "the one that reads commits it"
            time.sleep(0.05)
    finally:
        ended.set()
        thread.join(10)


@pytest.mark.core
def test_positions_are_committed_to_the_group(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, *rows(1, 2))
    reader = read(topic, **{"group.id": topic})
    reader.until_ids(2)
    assert kafka.committed(topic, topic) == {}
    reader.input.commit(reader.position)
    deadline = time.monotonic() + PATIENCE_S
    while kafka.committed(topic, topic) != {0: 2, 1: 0}:
        assert time.monotonic() < deadline
        reader.read()
    # Without a group of its own an input writes none.
    other = read(topic)
    other.until_ids(2)
    other.input.commit(other.position)


@pytest.mark.core
def test_lag(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(*range(30)))
    reader = read(topic, start_from={"offsets": [10]})
    assert reader.input.lag() is None
    reader.read()
    chunk = reader.input.read(5, 5.0)
    assert chunk is not None
    assert chunk.records == 5
    assert reader.input.lag() == Lag(records=15)


@pytest.mark.core
def test_records_that_expired(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(*range(10)))
    kafka.expire(topic, 0, 4)
    position = {"offsets": {"0": 2}}
    with pytest.raises(ConnectorFailure, match="records 2 to 3 of partition 0 have been removed") as caught:
        read(topic, position)
    assert not isinstance(caught.value, TransientConnectorFailure)
    assert read(topic, position, resume_earliest_if_data_expires=True).until_ids(6) == list(range(4, 10))
    assert read(topic).until_ids(6) == list(range(4, 10))


@pytest.mark.core
@pytest.mark.parametrize("resumes", [True, False])
def test_records_that_expire_while_nobody_reads(kafka: Kafka, read: Read, resumes: bool) -> None:
    topic = kafka.topic()
    # More than the client fetches in advance.
    kafka.send(topic, *(json.dumps({"id": number, "name": "x" * 20_000}) for number in range(500)))
    small = {"queued.min.messages": 1, "queued.max.messages.kbytes": 64, "fetch.message.max.bytes": 100_000}
    reader = read(topic, resume_earliest_if_data_expires=resumes, **small)
    reader.read()
    reader.input.read(1, 5.0)
    kafka.expire(topic, 0, 490)
    if resumes:
        reader.until(lambda: 499 in reader.ids)
        assert 400 not in reader.ids
    else:
        with pytest.raises(ConnectorFailure, match="removed from the topic before the pipeline read them"):
            reader.until(lambda: 499 in reader.ids)


@pytest.mark.core
def test_a_topic_that_was_made_anew(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    with pytest.raises(ConnectorFailure, match="partition 0 ends at offset 0, and offset 7 comes next: the topic was deleted"):
        read(topic, {"offsets": {"0": 7}})


MADE_ANEW = "the topic was deleted and made anew, so that places in the old one mean nothing in it"


@pytest.mark.core
@pytest.mark.parametrize("synchronized", [False, True])
def test_a_topic_that_is_made_anew_while_it_is_read(kafka: Kafka, read: Read, synchronized: bool) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(*range(4)))
    reader = read(topic, synchronize_partitions=synchronized)
    assert reader.until_ids(4) == [0, 1, 2, 3]
    kafka.make_anew(topic)
    kafka.send(topic, *rows(*range(100, 110)))
    try:
        with pytest.raises(ConnectorFailure) as caught:
            reader.until_ids(5)
        if isinstance(caught.value, TransientConnectorFailure):
            # It was noticed first that there was none, and the pipeline opens the input anew.
            with pytest.raises(ConnectorFailure) as caught:
                read(topic, reader.position, synchronize_partitions=synchronized)
    finally:
        # Nothing of the new topic was given.
        assert reader.ids == [0, 1, 2, 3]
    assert MADE_ANEW in str(caught.value)


@pytest.mark.core
def test_a_topic_that_is_made_anew_while_nobody_reads(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic(2)
    for partition in range(2):
        kafka.send(topic, *rows(*range(4)), partition=partition)
    reader = read(topic, partitions=[1])
    assert reader.until_ids(4) == [0, 1, 2, 3]
    reader.close()
    kafka.make_anew(topic, 2)
    kafka.send(topic, *rows(*range(100, 110)), partition=1)
    position = reader.position
    assert position is not None
    with pytest.raises(ConnectorFailure, match=MADE_ANEW) as caught:
        read(topic, position, partitions=[1])
    assert not isinstance(caught.value, TransientConnectorFailure)
    # Positions of earlier releases do not say which topic it was.
    assert read(topic, {"offsets": position["offsets"]}, partitions=[1]).until_ids(6) == list(range(104, 110))


@pytest.mark.core
def test_a_missing_topic_is_looked_for_again(kafka: Kafka, read: Read) -> None:
    begun = time.monotonic()
    with pytest.raises(TransientConnectorFailure, match=r"nowhere: there is no such topic at 127.*correct 'topic'"):
        read("nowhere")
    assert time.monotonic() - begun < 10


@pytest.mark.core
def test_a_topic_that_is_deleted_while_it_is_read(kafka: Kafka, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_input, "_PARTITIONS_S", 0.2)
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    reader = read(topic)
    reader.until_ids(1)
    kafka.drop(topic)
    with pytest.raises(TransientConnectorFailure, match="no such topic"):
        reader.until(lambda: False)


@pytest.mark.core
@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:9092"])
def test_an_unknown_broker_is_named_within_seconds(kafka: Kafka, read: Read, address: str) -> None:
    begun = time.monotonic()
    with pytest.raises(TransientConnectorFailure, match=f"no broker at {address} answers.*'bootstrap.servers'"):
        read("t", address=address)
    assert time.monotonic() - begun < 15


SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}


def test_credentials(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    guarded = kafka.broker.guarded_address
    assert read(topic, address=guarded, **SASL, **{"sasl.password": PASSWORD}).until_ids(1) == [1]
    begun = time.monotonic()
    with pytest.raises(ConnectorFailure, match=r"Authentication failed.*Check 'security.protocol'") as caught:
        read(topic, address=guarded, **SASL, **{"sasl.password": "not-" + PASSWORD})
    assert not isinstance(caught.value, TransientConnectorFailure)
    assert PASSWORD not in str(caught.value)
    assert time.monotonic() - begun < 10


@pytest.mark.core
def test_a_property_without_a_good_value(kafka: Kafka, read: Read) -> None:
    with pytest.raises(ConnectorFailure, match=r"no value that Kafka's client accepts.*fetch.min.bytes"):
        read("t", **{"fetch.min.bytes": 0})


@pytest.mark.core
def test_a_read_comes_back_when_the_input_is_closed(kafka: Kafka, read: Read) -> None:
    reader = read(kafka.topic())
    reader.read()
    given: list[object] = []
    thread = threading.Thread(target=lambda: given.append(reader.input.read(10, 1.0)))
    thread.start()
    reader.close()
    thread.join(5)
    assert given == [None]
    reader.close()
    reader.input.commit({"offsets": {"0": 0}})


def test_a_broker_that_goes_and_comes_back(new_broker: Callable[[], Broker], read: Read) -> None:
    broker = new_broker()
    kafka = Kafka(broker)
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    reader = read(topic, address=broker.address)
    reader.until_ids(1)
    kafka.send(topic, *rows(2, 3, 4))
    reader.until(lambda: len(reader.ids) > 1, most=1)
    # The client has more rows when it says, once, that the broker is away.
    broker.kill()
    begun = time.monotonic()
    with pytest.raises(TransientConnectorFailure, match=r"no broker at .* answers"):
        reader.until(lambda: time.monotonic() > begun + 15, most=1)
    assert reader.ids == [1, 2, 3, 4]
    reader.close()
    with pytest.raises(TransientConnectorFailure, match=r"no broker at .* answers"):
        read(topic, reader.position, address=broker.address)
    broker.start()
    kafka.send(topic, *rows(5))
    assert read(topic, reader.position, address=broker.address).until_ids(1) == [5]


@pytest.mark.parametrize("ends", [Broker.kill, Broker.stop], ids=["killed", "stopped"])
def test_it_lets_go_of_a_broker_that_is_away_with_a_commit_on_its_way(
    new_broker: Callable[[], Broker], read: Read, ends: Callable[[Broker], None]
) -> None:
    broker = new_broker()
    topic = Kafka(broker).topic()
    Kafka(broker).send(topic, *rows(1))
    reader = read(topic, address=broker.address, **{"group.id": topic})
    reader.until_ids(1)
    reader.input.commit(reader.position)
    reader.input.read(10, 0.2)
    ends(broker)

    def read_on() -> None:
        for _ in range(200):
            # As with a checkpoint each time.
            reader.input.commit(reader.position)
            reader.input.read(10, 0.1)

    with pytest.raises(TransientConnectorFailure, match=r"no broker at .* answers"):
        read_on()
    reader.input.commit(reader.position)
    closing = threading.Thread(target=reader.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()


@pytest.mark.core
def test_rows_are_inserts(kafka: Kafka, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, *rows(1))
    reader = read(topic)
    reader.read()
    chunk = reader.input.read(10, 5.0)
    assert chunk is not None
    assert chunk.changes is not None
    assert chunk.changes.rows.column(OP).to_pylist() == [int(Op.INSERT)]
    assert chunk.size_bytes == len(row(1))
