"""Each format in records of a real broker: poison costs no other record, and rows that go leave tombstones."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.relations import col, relation
from tests.connectors.transports.kafka.declared import PEOPLE, Open, opened, read
from tests.fixtures.kafka import Kafka

pytestmark = pytest.mark.core

__all__ = ["opened"]
SCHEMA = {"type": "record", "name": "p", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
LINES = relation(col("line", "VARCHAR"))
PAIRS = relation(col("k", "VARCHAR"), col("v", "VARBINARY"), name="pairs")
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def debezium(row: dict[str, Any]) -> bytes:
    return json.dumps({"payload": {"op": "c", "before": None, "after": row}}).encode()


@pytest.mark.core("json changes", "debezium", "avro")
@pytest.mark.parametrize(
    ("form", "config", "schema", "good", "bad", "rows"),
    [
        ("json", {"update_format": "raw"}, PEOPLE, [json.dumps(row).encode() for row in ROWS], b'{"id": "x"}', ROWS),
        ("json", {}, PEOPLE, [json.dumps({"insert": row}).encode() for row in ROWS], b'{"insert": 5}', ROWS),
        ("json", {"update_format": "debezium"}, PEOPLE, [debezium(row) for row in ROWS], b'{"payload": {"op": "?"}}', ROWS),
        ("csv", {}, PEOPLE, [b"1,a", b"2,b"], b"x,a", ROWS),
        ("raw", {}, LINES, [b"a", "\u00e4".encode()], b"\xff", [{"line": "a"}, {"line": "\u00e4"}]),
        ("avro", {"schema": json.dumps(SCHEMA)}, PEOPLE, [b"\0\0\0\0\1\2\2a", b"\0\0\0\0\1\4\2b"], b"\0\0\0\0\1\2\x10a", ROWS),
    ],
    ids=["json rows", "json changes", "debezium", "csv", "raw", "avro"],
)
def test_a_poison_record_costs_no_other(
    kafka: Kafka,
    opened: Open,
    form: str,
    config: dict[str, Any],
    schema: RelationSchema,
    good: list[bytes],
    bad: bytes,
    rows: list[Any],
) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, good[0], bad, bad, good[1], partition=1)
    found, errors = read(opened(topic, schema=schema, form=form, config=config))
    assert found == rows
    places = [f"topic {topic}, partition 1, offset {offset}" for offset in (1, 2)]
    assert [error.split(": ")[0] for error in errors] == places


@pytest.mark.parametrize(
    ("form", "config", "schema", "columns", "expected"),
    [
        (
            "json",
            {"update_format": "raw"},
            PEOPLE,
            ([1, 2, 2], ["a", "b", "c"]),
            [(b'{"id":1}', None), (b'{"id":2}', b'{"id":2,"name":"c"}')],
        ),
        ("raw", {}, PAIRS, (["x", "y", "y"], [b"a", b"b", b"\0"]), [(b"x", None), (b"y", b"\0")]),
    ],
    ids=["json", "raw"],
)
def test_rows_that_go_are_tombstones(
    kafka: Kafka, opened: Open, form: str, config: dict[str, Any], schema: RelationSchema, columns: Any, expected: list[Any]
) -> None:
    topic = kafka.topic()
    key = schema.column_names[:1]
    output = opened(topic, key=key, schema=schema, form=form, config=config)
    output.write(1, ChangesInMemory(pa.table([*columns, [-1, -1, 1]], names=[*schema.column_names, WEIGHT]), key))
    assert [(record.key, record.value) for record in kafka.read(topic)] == expected
