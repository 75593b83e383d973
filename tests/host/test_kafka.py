"""Pipelines between topics of Kafka: the programs of the connectors' page, and stops by force."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from fastavro import parse_schema, schemaless_reader
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.fixtures.kafka import Kafka
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.host.driver import Pipeline
from tests.rows.formats.avro.encoding import encoded
from tests.rows.formats.protobuf.types import file, message_class
from tools.kafka_broker import Broker

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
READS, METADATA, WRITES, AVRO, PROTOBUF = (found[1] for found in re.finditer(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))
TABLE = READS[: READS.index("CREATE MATERIALIZED VIEW")]
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": 1}
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "part", "type": ["null", "string"]},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}
WEATHER = """
name: "{1}.proto" package: "weather" syntax: "proto3" dependency: "google/protobuf/timestamp.proto"
message_type {{
  name: "{1}"
  field {{ name: "sensor" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }}
  field {{ name: "celsius" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL }}
  field {{ name: "{0}" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }}
}}
"""
READING, MEAN = (
    message_class(
        f"weather.{name}",
        FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb),
        file(WEATHER.format(at, name)),
    )
    for at, name in (("at", "Reading"), ("newest", "means"))
)
Make = Callable[..., Pipeline]


def wait_until(holds: Callable[[], bool], pipeline: Pipeline, what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"{what}\n{pipeline.stats(include_connector_errors=True)}\n{pipeline.log}"
        time.sleep(0.05)


def orders(*rows: tuple[int, str, float]) -> list[str]:
    return [json.dumps({"id": number, "customer": customer, "amount": amount}) for number, customer, amount in rows]


def target(kafka: Kafka, topic: str) -> tuple[dict[str, tuple[int, float]], int]:
    """What the changes in a topic add up to, and how many do not follow from those before them."""
    view: dict[str, tuple[int, float]] = {}
    wrong = 0
    for record in kafka.read(topic):
        change = json.loads(record.value or b"")["payload"]
        before, after = change["before"], change["after"]
        name = (before or after)["customer"]
        wrong += view.get(name) != (None if before is None else (before["orders"], before["amount"]))
        view.pop(name, None)
        if after is not None:
            view[name] = (after["orders"], after["amount"])
    return view, wrong


@pytest.fixture
def own(new_broker: Callable[[], Broker]) -> Kafka:
    """A broker that the test may stop."""
    return Kafka(new_broker())


def test_the_programs_of_the_page(make: Make, own: Kafka) -> None:
    own.create("orders", 2)
    own.create("totals", 2)
    own.send("orders", *orders((1, "a", 1.5), (2, "b", 2), (3, "a", 3)))
    pipeline = make(TABLE + WRITES, env={"KAFKA": own.address}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2)}, 0), pipeline, "the first orders")
    # Stopped by force, which leaves no checkpoint of its own.
    pipeline.kill()
    own.send("orders", *orders((4, "c", 4)), partition=1)
    pipeline.start()
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2), "c": (1, 4)}, 0), pipeline, "what came meanwhile")
    # The broker goes while the pipeline runs, and comes back.
    own.broker.kill()
    wait_until(lambda: pipeline.stats()["inputs"][0]["health"]["status"] == "Unhealthy", pipeline, "a missing broker is shown")
    own.broker.start()
    own.send("orders", "poison", *orders((5, "c", 1)))
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2), "c": (2, 5)}, 0), pipeline, "it goes on by itself")
    [source] = pipeline.stats(include_connector_errors=True)["inputs"]
    assert source["metrics"]["num_parse_errors"] == 1
    assert "topic orders, partition 0, offset 3: malformed JSON" in source["parse_errors"][0]["message"]
    pipeline.suspend()
    # As after seven days: the checkpoint says that all was delivered, which is enough to go on.
    [group] = [each.group_id for each in own.admin.list_consumer_groups().result(30).valid if "totals" in each.group_id]
    own.admin.delete_consumer_groups([group])[group].result(30)
    own.send("orders", *orders((6, "d", 6)))
    pipeline.start()
    wait_until(lambda: target(own, "totals")[0].get("d") == (1, 6), pipeline, "after a stop with a checkpoint")
    assert target(own, "totals")[1] == 0
    stats: dict[str, Any] = pipeline.stats()
    assert [each["health"]["status"] for each in (*stats["inputs"], *stats["outputs"])] == ["Healthy", "Healthy"]
    assert pipeline.query("SELECT COUNT(*) AS n FROM totals") == [{"n": 4}]


def test_the_programs_with_metadata_with_avro_and_with_protobuf(
    make: Make, kafka: Kafka, schema_registry: SchemaRegistryServer
) -> None:
    for topic in ("clicks", "stock", "parts", "readings", "means"):
        kafka.create(topic)
    clicks = ('{"insert": {"url": "/a"}}', '{"insert": {"url": "/b", "part": null}}')
    kafka.send("clicks", *clicks, headers=[("source", "web")], timestamp=1_700_000_000_000, key="ada")
    kafka.send("clicks", '{"no url', '{"delete": {"url": "/c"}}')
    number = schema_registry.add("stock-value", ENVELOPE)

    def change(operation: str, before: Any, after: Any) -> bytes:
        return encoded(ENVELOPE, {"before": before, "after": after, "op": operation}, number)

    def stock(number: int, part: str, amount: str) -> dict[str, Any]:
        return {"id": number, "part": part, "amount": Decimal(amount)}

    kafka.send("stock", change("r", None, stock(1, "nut", "1.50")), change("c", None, stock(2, "nut", "2.00")), b"poison")
    kafka.send("stock", change("c", None, stock(3, "bolt", "9.99")))
    serialize = ProtobufSerializer(READING, SchemaRegistryClient({"url": schema_registry.url}))
    of_readings = SerializationContext("readings", MessageField.VALUE)
    readings = [
        serialize(READING(sensor=sensor, at={"seconds": at}, celsius=celsius), of_readings)
        for sensor, at, celsius in (("a", 1_700_000_000, 20.5), ("a", 1_700_000_060, 21.5), ("b", 0, -3))
    ]
    kafka.send("readings", *readings, b"poison")
    pipeline = make(
        METADATA + AVRO + PROTOBUF, env={"KAFKA": kafka.address, "REGISTRY": schema_registry.url}, fault_tolerance=EXACTLY_ONCE
    )
    pipeline.start()

    def parts() -> dict[str, Decimal]:
        found: dict[str, Decimal] = {}
        for record in kafka.read("parts"):
            assert record.key is not None
            name = decoded(record.key)["part"]
            found.pop(name, None)
            if record.value is not None:
                found[name] = decoded(record.value)["amount"]
        return found

    def decoded(data: bytes) -> Any:
        schema = parse_schema(schema_registry.schema(int.from_bytes(data[1:5], "big")))
        return schemaless_reader(io.BytesIO(data[5:]), schema, None)

    wait_until(lambda: parts() == {"nut": Decimal("3.50"), "bolt": Decimal("9.99")}, pipeline, "what was captured before")
    wait_until(lambda: len(kafka.read("means")) == 2, pipeline, "means of readings")
    mean = ProtobufDeserializer(MEAN, {"use.deprecated.format": False}, SchemaRegistryClient({"url": schema_registry.url}))
    means = [mean(record.value, SerializationContext("means", MessageField.VALUE)) for record in kafka.read("means")]
    assert sorted((each.sensor, each.celsius, each.newest.seconds) for each in means) == [("a", 21, 1_700_000_060), ("b", -3, 0)]
    kafka.send(
        "stock", change("d", stock(3, "bolt", "9.99"), None), None, change("u", stock(1, "nut", "1.50"), stock(1, "nut", "0.25"))
    )
    wait_until(lambda: parts() == {"nut": Decimal("2.25")}, pipeline, "an update, and a row that went")
    assert [record.value for record in kafka.read("parts") if decoded(record.key or b"")["part"] == "bolt"][-1] is None
    # A message needs a schema that is not known yet, and the registry is away.
    schema_registry.status = 503
    newer = schema_registry.add("stock-value", {**ENVELOPE, "doc": "newer"})
    added = {"before": None, "after": stock(4, "nut", "1.00"), "op": "c"}
    kafka.send("stock", change("c", None, stock(5, "gear", "7.00")), encoded(ENVELOPE, added, newer))

    def health() -> str:
        [source] = [each for each in pipeline.stats()["inputs"] if each["endpoint_name"] == "stock.topic"]
        return str(source["health"]["status"])

    wait_until(lambda: health() == "Unhealthy", pipeline, "a missing registry is shown")
    schema_registry.status = None
    wait_until(
        lambda: parts() == {"nut": Decimal("3.25"), "gear": Decimal("7.00")}, pipeline, "it goes on, and reads nothing twice"
    )
    assert health() == "Healthy"
    wait_until(lambda: pipeline.query("SELECT COUNT(*) AS n FROM clicks") == [{"n": 3}], pipeline, "the clicks")
    at = "2023-11-14T22:13:20"
    first, second, third = pipeline.query("SELECT * FROM clicks ORDER BY url")
    assert first == {
        "url": "/a",
        "topic": "clicks",
        "part": 0,
        "place": 0,
        "at": at,
        "visitor": "ada",
        "source": "web",
        "gone": None,
    }
    assert second == {**first, "url": "/b", "part": None, "place": 1}
    assert (third["place"], third["visitor"], third["source"], third["gone"]) == (3, None, None, True)
    errors = {
        source["endpoint_name"]: [error["message"].split(": ")[0] for error in source["parse_errors"]]
        for source in pipeline.stats(include_connector_errors=True)["inputs"]
    }
    assert errors == {
        "clicks.topic": ["topic clicks, partition 0, offset 2"],
        "readings.topic": ["topic readings, partition 0, offset 3"],
        "stock.topic": ["topic stock, partition 0, offset 2"],
    }
