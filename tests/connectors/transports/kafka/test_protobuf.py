"""Topics of a real broker with messages in Protobuf, which Kafka's own client writes and reads as we do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.transports.kafka.declared import PEOPLE, Open, declared, opened, read
from tests.fixtures.kafka import Kafka
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.rows.formats.protobuf.types import PERSON, SHOP, file, in_options, message_class

__all__ = ["opened"]
PLAIN = """
name: "{0}.proto" syntax: "proto3"
message_type {{
  name: "{0}" field {{ name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }} {1}
}}
"""
NAME = 'field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }'


def test_what_another_producer_wrote(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    client = SchemaRegistryClient({"url": schema_registry.url})
    serialize = ProtobufSerializer(PERSON, client)
    inner = ProtobufSerializer(PERSON.Inner, client)
    where = SerializationContext(topic, MessageField.VALUE)
    kafka.send(topic, *(serialize(PERSON(id=number, name=f"n{number}"), where) for number in range(3)))
    kafka.send(topic, b"poison", None)
    kafka.send(topic, serialize(PERSON(id=3), where), inner(PERSON.Inner(id=4), where))
    rows, errors = read(opened(topic, form="protobuf", config={"registry_urls": [schema_registry.url]}))
    assert rows == [
        *({"id": number, "name": f"n{number}"} for number in range(3)),
        {"id": 3, "name": None},
        {"id": 4, "name": None},
    ]
    assert [error.split(": ")[0] for error in errors] == [f"topic {topic}, partition 0, offset {offset}" for offset in (3, 4)]


@pytest.mark.core
def test_what_another_consumer_reads(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    config = {"registry_urls": [schema_registry.url], "update_format": "confluent_jdbc"}
    output = opened(topic, key=("id",), form="protobuf", config=config)
    table = pa.table({"id": [1, 2, 2], "name": ["a", "b", "c"], WEIGHT: pa.array([-1, -1, 1])})
    records, size = output.write(1, ChangesInMemory(table, ("id",)))
    found = kafka.read(topic)
    kinds = [message_class(name, file(PLAIN.format(name, more))) for name, more in (("people_key", ""), ("people", NAME))]
    client = SchemaRegistryClient({"url": schema_registry.url})
    of_key, of_value = (ProtobufDeserializer(kind, {"use.deprecated.format": False}, client) for kind in kinds)
    keys = [of_key(record.key, SerializationContext(topic, MessageField.KEY)) for record in found]
    values = [of_value(record.value, SerializationContext(topic, MessageField.VALUE)) for record in found]
    assert [key.id for key in keys] == [1, 2]
    assert values[0] is None
    assert (values[1].id, values[1].name) == (2, "c")
    assert found[0].value is None, "a tombstone, so that the topic can forget the key"
    assert (records, size) == (2, sum(len(record.key or b"") + len(record.value or b"") for record in found))


def test_what_is_written_can_be_read(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    own = {"descriptor_set": in_options(SHOP), "message": "shop.Person"}
    output = opened(topic, key=(), form="protobuf", config={**own, "registry_urls": [schema_registry.url]})
    ids = list(range(5000))
    output.write(1, ChangesInMemory(pa.table({"id": ids, "name": [f"n{number}" for number in ids], WEIGHT: pa.array([1] * 5000)})))
    assert [dict(record.headers) for record in kafka.read(topic)[:2]] == [{"op": b"insert"}] * 2
    for config in ({"registry_urls": [schema_registry.url]}, own):
        rows, errors = read(opened(topic, form="protobuf", config=config))
        assert (sorted(row["id"] for row in rows), errors) == (ids, [])


@pytest.mark.core
def test_a_registry_that_is_away_is_asked_again(kafka: Kafka, schema_registry: SchemaRegistryServer, opened: Open) -> None:
    topic = kafka.topic()
    schema_registry.status = 503
    with pytest.raises(TransientConnectorFailure, match=f"kafka_output {topic}: the schema registry at .* answered 503"):
        opened(topic, key=(), form="protobuf", config={"registry_urls": [schema_registry.url]})
    kafka.send(topic, b"\0\0\0\0\1\0")
    source = opened(topic, form="protobuf", config={"registry_urls": [schema_registry.url]})
    with pytest.raises(TransientConnectorFailure, match=f"kafka_input {topic}: the schema registry at .* answered 503"):
        read(source)
    schema_registry.status = None
    number = schema_registry.add("t", 'syntax = "proto3";', schemaType="PROTOBUF")
    assert number == 1
    with pytest.raises(ConnectorFailure, match="give the file as 'descriptor_file'") as refused:
        read(opened(topic, form="protobuf", config={"registry_urls": [schema_registry.url]}))
    assert not isinstance(refused.value, TransientConnectorFailure)


@pytest.mark.core
@pytest.mark.parametrize(
    ("direction", "options", "says"),
    [
        (ConnectorDirection.INPUT, {}, "format 'protobuf' needs 'registry_urls'"),
        (ConnectorDirection.INPUT, {"descriptor_file": "/x"}, "'message' is missing"),
        (
            ConnectorDirection.INPUT,
            {"registry_urls": ["http://x"], "package": "a"},
            "option 'package' of format 'protobuf'.*for outputs",
        ),
        (ConnectorDirection.INPUT, {"schema": "x"}, "known options: .*descriptor_set"),
        (ConnectorDirection.OUTPUT, {"update_format": "confluent_jdbc"}, "needs an 'index'"),
        (ConnectorDirection.OUTPUT, {"update_format": "debezium"}, "can be read and not written"),
    ],
)
def test_declarations_that_cannot_work_are_refused_at_once(
    kafka: Kafka, direction: ConnectorDirection, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        validate(declared(kafka, "t", direction, None, "protobuf", **options), PEOPLE)
