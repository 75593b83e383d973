"""Topics of a real broker with messages in Avro, which Kafka's own client writes and reads as we do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.transports.kafka.declared import PEOPLE, Open, declared, opened, read
from tests.fixtures.kafka import Kafka
from tests.fixtures.schema_registry import SchemaRegistryServer

SCHEMA = '{"type": "record", "name": "p", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]}'
__all__ = ["opened"]


def test_what_another_producer_wrote(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    serialize = AvroSerializer(SchemaRegistryClient({"url": schema_registry.url}), SCHEMA)
    where = SerializationContext(topic, MessageField.VALUE)
    kafka.send(topic, *(serialize({"id": number, "name": f"n{number}"}, where) for number in range(3)))
    kafka.send(topic, b"poison", None)
    kafka.send(topic, serialize({"id": 3, "name": None}, where))
    rows, errors = read(opened(topic, config={"registry_urls": [schema_registry.url]}))
    assert rows == [*({"id": number, "name": f"n{number}"} for number in range(3)), {"id": 3, "name": None}]
    assert [error.split(": ")[0] for error in errors] == [f"topic {topic}, partition 0, offset {offset}" for offset in (3, 4)]


def test_what_another_consumer_reads(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    output = opened(topic, key=("id",), config={"registry_urls": [schema_registry.url], "update_format": "confluent_jdbc"})
    table = pa.table({"id": [1, 2, 2], "name": ["a", "b", "c"], WEIGHT: pa.array([-1, -1, 1])})
    records, size = output.write(1, ChangesInMemory(table, ("id",)))
    found = kafka.read(topic)
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": schema_registry.url}))
    of_key, of_value = (SerializationContext(topic, each) for each in (MessageField.KEY, MessageField.VALUE))
    keys = [deserialize(record.key, of_key) for record in found]
    values = [deserialize(record.value, of_value) for record in found]
    assert (keys, values) == ([{"id": 1}, {"id": 2}], [None, {"id": 2, "name": "c"}])
    assert found[0].value is None, "a tombstone, so that the topic can forget the key"
    assert (records, size) == (2, sum(len(record.key or b"") + len(record.value or b"") for record in found))


def test_what_is_written_can_be_read(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    output = opened(topic, key=(), config={"registry_urls": [schema_registry.url]})
    ids = list(range(5000))
    output.write(1, ChangesInMemory(pa.table({"id": ids, "name": [f"n{number}" for number in ids], WEIGHT: pa.array([1] * 5000)})))
    assert [dict(record.headers) for record in kafka.read(topic)[:2]] == [{"op": b"insert"}] * 2
    rows, errors = read(opened(topic, config={"registry_urls": [schema_registry.url]}))
    assert (sorted(row["id"] for row in rows), errors) == (ids, [])


@pytest.mark.core
def test_a_registry_that_is_away_is_asked_again(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    schema_registry.status = 503
    with pytest.raises(TransientConnectorFailure, match=f"kafka_output {topic}: the schema registry at .* answered 503"):
        opened(topic, key=(), config={"registry_urls": [schema_registry.url]})
    kafka.send(topic, b"\0\0\0\0\1\0")
    source = opened(topic, config={"registry_urls": [schema_registry.url]})
    with pytest.raises(TransientConnectorFailure, match=f"kafka_input {topic}: the schema registry at .* answered 503"):
        read(source)
    schema_registry.status = 403
    with pytest.raises(ConnectorFailure, match="Check 'registry_username'") as refused:
        read(opened(topic, config={"registry_urls": [schema_registry.url]}))
    assert not isinstance(refused.value, TransientConnectorFailure)


@pytest.mark.core
@pytest.mark.parametrize(
    ("direction", "options", "says"),
    [
        (ConnectorDirection.INPUT, {}, "needs 'registry_urls'"),
        (ConnectorDirection.INPUT, {"update_format": "confluent_jdbc", "schema": SCHEMA}, "can be written and not read"),
        (ConnectorDirection.OUTPUT, {"update_format": "confluent_jdbc"}, "needs an 'index'"),
        (ConnectorDirection.OUTPUT, {"registry_url": "x"}, "did you mean 'registry_urls'"),
    ],
)
def test_declarations_that_cannot_work_are_refused_at_once(
    kafka: Kafka, direction: ConnectorDirection, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        validate(declared(kafka, "t", direction, None, **options), PEOPLE)
