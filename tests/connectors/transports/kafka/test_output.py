"""Topics of a real broker as outputs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.base import CommitsSteps, ConnectorFailure, ForgetsSteps, TransientConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.transports.kafka.definitions import KAFKA_OUTPUT
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.definition import ChangeEncoder
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.plain import CsvEncoder, JsonEncoder
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.contexts import output_context
from tests.connectors.relations import col, relation
from tests.fixtures.kafka import Kafka
from tools.kafka_broker import PASSWORD, USER, Broker

VIEW = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")
Write = Callable[..., Any]


def changes(*rows: tuple[int, str, int], key: tuple[str, ...] = ()) -> ChangesInMemory:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    types = (pa.int64(), pa.string(), pa.int64())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return ChangesInMemory(pa.table(arrays, names=["id", "name", WEIGHT]), key)


def added(*ids: int) -> ChangesInMemory:
    return changes(*((number, f"n{number}", 1) for number in ids))


@pytest.fixture
def write(kafka: Kafka) -> Iterator[Write]:
    outputs: list[Any] = []

    def new(
        topic: str,
        *,
        key: tuple[str, ...] = (),
        encoder: ChangeEncoder | None = None,
        opens: bool = True,
        left_out: LeftOutRows | None = None,
        **options: Any,
    ) -> Any:
        declared = {"topic": topic, "bootstrap.servers": kafka.address, **options}
        writes = encoder or JsonEncoder(JsonOptions())
        # Another writer for each topic, like another pipeline.
        context = output_context(VIEW, key, new_encoder=lambda: writes, endpoint=f"v.{topic}", left_out=left_out or LeftOutRows())
        output = KAFKA_OUTPUT.open(KAFKA_OUTPUT.options.model_validate(declared), context)
        outputs.append(output)
        if opens:
            output.open(False)
        return output

    yield new
    for output in outputs:
        output.close()


def values(kafka: Kafka, topic: str, *, committed: bool = True) -> list[Any]:
    return [json.loads(record.value or b"null") for record in kafka.read(topic, committed=committed)]


def ids(kafka: Kafka, topic: str, *, committed: bool = True) -> list[int]:
    return [value["insert"]["id"] for value in values(kafka, topic, committed=committed)]


@pytest.mark.core
def test_each_change_is_a_record_with_its_row_as_key(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    output = write(topic, headers=[{"key": "a", "value": "b"}, {"key": "c", "value": [0, 255]}, {"key": "d"}])
    given = output.write(3, changes((1, "x", -1), (2, "y", 1)))
    records = kafka.read(topic)
    assert [record.value for record in records] == [b'{"delete":{"id":1,"name":"x"}}', b'{"insert":{"id":2,"name":"y"}}']
    assert [record.key for record in records] == [b'{"id":1,"name":"x"}', b'{"id":2,"name":"y"}']
    assert records[0].headers == (("a", b"b"), ("c", b"\x00\xff"), ("d", None))
    assert given == (2, sum(len(record.key or b"") + len(record.value or b"") for record in records))


@pytest.mark.core
@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        (
            JsonEncoder(JsonOptions()),
            ['{"delete":{"id":1,"name":"a"}}', '{"update":{"id":2,"name":"c"}}', '{"insert":{"id":3,"name":"d"}}'],
        ),
        (CsvEncoder(CsvOptions()), ["1,a,-1", "2,b,-1", "2,c,1", "3,d,1"]),
    ],
    ids=["json", "csv"],
)
def test_an_index_makes_keys_and_updates(kafka: Kafka, write: Write, encoder: ChangeEncoder, expected: list[str]) -> None:
    topic = kafka.topic()
    output = write(topic, key=("id",), encoder=encoder)
    output.write(0, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, "d", 1), key=("id",)))
    records = kafka.read(topic)
    assert [(record.value or b"").decode() for record in records] == expected
    assert {record.key for record in records} == {b'{"id":1}', b'{"id":2}', b'{"id":3}'}
    assert [record.key for record in records if b"2" in (record.value or b"")[:20]][-1] == b'{"id":2}'


@pytest.mark.core
@pytest.mark.parametrize("shape", ["debezium", "snowflake", "weighted"])
def test_other_shapes(kafka: Kafka, write: Write, shape: Any) -> None:
    topic = kafka.topic()
    write(topic, encoder=JsonEncoder(JsonOptions(update_format=shape))).write(0, added(7))
    (value,) = values(kafka, topic)
    assert {"debezium": ["payload"], "weighted": ["weight", "data"]}.get(shape, list(value)) == list(value)


@pytest.mark.core
def test_the_number_of_a_step_is_in_the_topic_with_its_rows(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic(3)
    output = write(topic)
    assert isinstance(output, CommitsSteps)
    assert output.committed_step() is None
    output.write(5, added(1, 2))
    output.write(7 << 40, added(3))
    assert output.committed_step() == 7 << 40
    output.close()
    assert write(topic).committed_step() == 7 << 40
    assert sorted(ids(kafka, topic)) == [1, 2, 3]


def test_a_step_that_was_not_finished_is_not_there(kafka: Kafka, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    output = write(topic)
    output.write(1, added(1))

    class Broken(ChangesInMemory):
        def tables(self) -> Iterator[pa.Table]:
            yield from super().tables()
            # What was written so far is with the broker.
            assert output._producer.client.flush(20) == 0
            raise RuntimeError("cut")

    with pytest.raises(RuntimeError):
        output.write(2, Broken(pa.table({"id": [2], "name": ["x"], WEIGHT: pa.array([1], pa.int64())})))
    # The first output is left as a crash leaves it.
    again = write(topic)
    assert again.committed_step() == 1
    again.write(2, added(3))
    assert ids(kafka, topic) == [1, 3]
    assert ids(kafka, topic, committed=False) == [1, 2, 3]


def test_a_run_that_was_replaced_writes_nothing_more(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    old = write(topic)
    old.write(1, added(1))
    new = write(topic)
    new.write(2, added(2))
    with pytest.raises(ConnectorFailure, match=r"another producer has begun with the 'transactional.id'"):
        old.write(2, added(9))
    new.write(3, added(3))
    assert ids(kafka, topic) == [1, 2, 3]
    assert new.committed_step() == 3


@pytest.mark.core
def test_two_outputs_of_one_topic_have_numbers_of_their_own(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    first, second = write(topic, **{"transactional.id": f"{topic}-1"}), write(topic, **{"transactional.id": f"{topic}-2"})
    first.write(1, added(1))
    second.write(10, added(2))
    assert (first.committed_step(), second.committed_step()) == (1, 10)


@pytest.mark.core
def test_a_number_that_the_brokers_have_forgotten(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic(2)
    name = f"{topic}-1"
    output = write(topic, **{"transactional.id": name})
    assert isinstance(output, ForgetsSteps)
    assert not output.was_written(), "nobody has written to it"
    output.write(5, added(1))
    # As after offsets.retention.minutes; then retention takes the records, too.
    kafka.admin.delete_consumer_groups([name])[name].result(20)
    kafka.expire(topic, 0, -1)
    kafka.expire(topic, 1, -1)
    assert output.committed_step() is None
    assert output.was_written()
    output.renew(5)
    assert output.committed_step() == 5
    output.write(6, added(2))
    assert output.committed_step() == 6
    assert ids(kafka, topic) == [2], "a number comes without records"


@pytest.mark.core
def test_without_transactions_records_are_there_and_no_number(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    output = write(topic, transactions=False)
    assert not isinstance(output, CommitsSteps)
    output.write(1, added(1))
    output.write(1, added(1))
    assert ids(kafka, topic) == [1, 1]


def test_many_rows_in_one_step(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic(2)
    output = write(topic, **{"queue.buffering.max.messages": 1000})
    assert output.write(1, added(*range(25_000)))[0] == 25_000
    assert sorted(ids(kafka, topic)) == list(range(25_000))
    # One key is in one partition.
    output.write(2, changes((5, "n5", -1)))
    places = [record.partition for record in kafka.read(topic) if record.key == b'{"id":5,"name":"n5"}']
    assert len(places) == 2
    assert len(set(places)) == 1


@pytest.mark.core
def test_a_missing_topic_is_looked_for_again(kafka: Kafka, write: Write) -> None:
    with pytest.raises(TransientConnectorFailure, match=r"nowhere: there is no such topic.*correct 'topic'"):
        write("nowhere")


def test_wrong_credentials_and_brokers(kafka: Kafka, write: Write) -> None:
    topic = kafka.topic()
    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
    guarded = {"bootstrap.servers": kafka.broker.guarded_address, **sasl}
    good = write(topic, **guarded, **{"sasl.password": PASSWORD})
    good.write(1, added(1))
    assert good.committed_step() == 1
    begun = time.monotonic()
    with pytest.raises(ConnectorFailure, match=r"Authentication failed.*Check 'security.protocol'") as caught:
        write(topic, **guarded, **{"sasl.password": "wrong"})
    assert not isinstance(caught.value, TransientConnectorFailure)
    with pytest.raises(TransientConnectorFailure, match=r"no broker at 127.0.0.1:1 answers"):
        write(topic, **{"bootstrap.servers": "127.0.0.1:1"})
    assert time.monotonic() - begun < 20


@pytest.mark.core
@pytest.mark.parametrize("transactions", [True, False])
def test_a_record_that_is_too_large_says_so(kafka: Kafka, write: Write, transactions: bool) -> None:
    topic = kafka.topic(max_message_bytes="1000")
    output = write(topic, transactions=transactions, left_out=LeftOutRows((), OnError.STOP))
    output.write(1, added(1))
    with pytest.raises(ConnectorFailure, match=r"larger than .* the topic takes.*'max.message.bytes'") as caught:
        output.write(2, changes((2, "x" * 5000, 1)))
    assert not isinstance(caught.value, TransientConnectorFailure)
    assert ids(kafka, topic) == [1]


@pytest.mark.core("of the client", slow_because="a producer is made for each round")
@pytest.mark.rest("transactions")
@pytest.mark.parametrize(
    ("transactions", "limits"),
    [(True, {"max_message_bytes": "1000"}), (False, {"max_message_bytes": "1000"}), (True, {})],
    ids=["transactions", "none", "of the client"],
)
def test_records_that_are_too_large_are_left_out(kafka: Kafka, write: Write, transactions: bool, limits: dict[str, str]) -> None:
    topic = kafka.topic(**limits)
    more = {} if limits else {"message.max.bytes": "1000"}
    left_out = LeftOutRows(("id",))
    output = write(topic, key=("id",), transactions=transactions, left_out=left_out, **more)
    output.write(1, changes((1, "a", 1), (2, "b", 1), key=("id",)))
    large = "x" * 5000
    # Together they are larger than the topic takes, too.
    others = [(number, "y" * 300, 1) for number in range(10, 30)]
    given = output.write(2, changes((1, "a", -1), (1, large, 1), (2, "b", -1), (2, "c", 1), (3, large, 1), *others, key=("id",)))
    errors, count = left_out.take()
    assert [error.message.partition(":")[0] for error in errors] == ["row (id = 1)", "row (id = 3)"]
    assert "larger than the client or the topic takes" in errors[0].message
    assert count == 2
    output.write(3, changes((1, large, -1), (1, "d", 1), key=("id",)))
    found = [json.dumps(value) for value in values(kafka, topic)][2:]
    expected = [
        {"delete": {"id": 1, "name": "a"}},
        {"update": {"id": 2, "name": "c"}},
        *({"insert": {"id": number, "name": "y" * 300}} for number in range(10, 30)),
        {"update": {"id": 1, "name": "d"}},
    ]
    if transactions:
        assert found == [json.dumps(value) for value in expected]
        assert given[0] == 22
        assert output.committed_step() == 3
    else:
        # What was written before it was known may come again.
        assert set(found) == {json.dumps(value) for value in expected}


def test_a_broker_that_goes_and_comes_back(new_broker: Callable[[], Broker], write: Write) -> None:
    broker = new_broker()
    kafka = Kafka(broker)
    topic = kafka.topic()
    address = {"bootstrap.servers": broker.address}
    output = write(topic, **address)
    output.write(1, added(1))
    broker.kill()
    begun = time.monotonic()
    with pytest.raises(TransientConnectorFailure):
        output.write(2, added(2))
    assert time.monotonic() - begun < 45
    output.close()
    broker.start()
    again = write(topic, **address)
    if again.committed_step() == 1:
        again.write(2, added(2))
    assert ids(kafka, topic) == [1, 2]
