"""Rows from messages in Avro: schemas of their own for each message, types, changes of Debezium, and what is malformed."""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.rows.changes import GIVEN, OP, Op
from airflow_pipelines.rows.formats.avro.definition import AVRO
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.messages import MessageParser, Messages, ParsedMessages
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.rows.formats.avro.encoding import encoded

pytestmark = pytest.mark.core

TABLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"))
SCHEMA = {
    "type": "record",
    "name": "person",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.people",
    "fields": [
        {"name": "before", "type": ["null", {**SCHEMA, "name": "Value"}], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}


def parser(table: RelationSchema = TABLE, **options: Any) -> MessageParser:
    made = AVRO.new_parser(table, AvroOptions.model_validate(options), wall_clock) if AVRO.new_parser else None
    assert isinstance(made, MessageParser)
    return made


def read(values: Sequence[bytes | None], table: RelationSchema = TABLE, **options: Any) -> ParsedMessages:
    return parser(table, **options).parse_messages(Messages(values, lambda number: None))


def rows(parsed: ParsedMessages) -> list[dict[str, Any]]:
    return [] if parsed.changes is None else parsed.changes.rows.drop_columns([OP]).to_pylist()


def operations(parsed: ParsedMessages) -> list[Op]:
    return [] if parsed.changes is None else [Op(each) for each in parsed.changes.rows.column(OP).to_pylist()]


def person(number: int, name: str | None = None) -> dict[str, Any]:
    return {"id": number, "name": name}


def test_a_schema_in_the_options() -> None:
    values = [encoded(SCHEMA, person(number, f"n{number}"), 9) for number in range(3)]
    parsed = read(values, TABLE, schema=json.dumps(SCHEMA))
    assert rows(parsed) == [person(number, f"n{number}") for number in range(3)]
    bare = [encoded(SCHEMA, person(7), None)]
    assert rows(read(bare, TABLE, schema=json.dumps(SCHEMA), skip_schema_id=True)) == [person(7)]
    with pytest.raises(FormatFailure, match="no schema of Avro"):
        read(bare, TABLE, schema='{"type": "nothing"}')


def test_malformed_messages_cost_no_other() -> None:
    good = encoded(SCHEMA, person(1, "a"))
    values = [good, None, b"", b'{"id": 1}', good[:-1], good + b"x", good[:6], encoded(SCHEMA, person(2, "b"))]
    values.append(good[:-1] + b"\xff")
    parsed = read(values, TABLE, schema=json.dumps(SCHEMA))
    assert rows(parsed) == [person(1, "a"), person(2, "b")]
    assert [error.index for error in parsed.errors] == [1, 2, 3, 4, 5, 6, 8]
    said = [error.message for error in parsed.errors]
    assert "tombstone" in said[0]
    assert all("does not begin with a zero" in each for each in said[1:3])
    assert "no record of the schema" in said[3]
    assert "1 bytes are left over" in said[4]
    assert parsed.num_errors == 7


def test_a_row_that_the_table_does_not_take_is_named() -> None:
    schema = {**SCHEMA, "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "name", "type": "string"}]}
    values = [encoded(schema, {"id": number or None, "name": "x"}) for number in range(3)]
    parsed = read(values, TABLE, schema=json.dumps(schema))
    assert [row["id"] for row in rows(parsed)] == [1, 2]
    assert [(error.index, error.message) for error in parsed.errors] == [(0, "column 'id' is NOT NULL, but the value is null")]


def test_types_of_avro_are_those_of_columns() -> None:
    table = relation(
        col("amount", "DECIMAL", precision=10, scale=2),
        col("day", "DATE"),
        col("at", "TIMESTAMP"),
        col("clock", "TIME"),
        col("u", "UUID"),
        col("wide", "BIGINT"),
    )
    names = {"amount": "decimal", "day": "date", "at": "timestamp-millis", "clock": "time-micros", "u": "uuid"}
    of = {"amount": "bytes", "day": "int", "at": "long", "clock": "long", "u": "string"}
    fields: list[Any] = [
        {"name": name, "type": {"type": of[name], "logicalType": logical, "precision": 10, "scale": 2}}
        for name, logical in names.items()
    ]
    schema = {
        "type": "record",
        "name": "r",
        "fields": [*fields, {"name": "wide", "type": "int"}, {"name": "extra", "type": "string"}],
    }
    moment = dt.datetime(2024, 2, 29, 12, 30, 0, 5000, dt.UTC)
    record = {
        "amount": Decimal("-1.50"),
        "day": dt.date(2024, 2, 29),
        "at": moment,
        "clock": dt.time(1, 2, 3, 4),
        "u": "0199c0de-0000-7000-8000-000000000000",
        "wide": 5,
        "extra": "passed over",
    }
    [row] = rows(read([encoded(schema, record)], table, schema=json.dumps(schema)))
    assert row == {**{name: record[name] for name in record if name != "extra"}, "at": moment.replace(tzinfo=None)}


def test_each_message_is_read_with_its_schema(schema_registry: SchemaRegistryServer) -> None:
    old = schema_registry.add("people-value", SCHEMA)
    renamed = {**SCHEMA, "fields": [{"name": "more", "type": "int"}, {"name": "ID", "type": "int"}]}
    new = schema_registry.add("people-value", renamed)
    values = [encoded(SCHEMA, person(1, "a"), old), encoded(renamed, {"more": 0, "ID": 2}, new), encoded(SCHEMA, person(3), old)]
    values.insert(1, encoded(SCHEMA, person(9), 77))
    made = parser(registry_urls=[schema_registry.url + "/"])
    for _ in range(2):
        parsed = made.parse_messages(Messages(values, lambda number: None))
        assert rows(parsed) == [person(1, "a"), person(2), person(3)]
        [error] = parsed.errors
        assert error.index == 1
        assert error.message == f"the schema registry at {schema_registry.url} has no schema with the number 77"
    assert schema_registry.requests == [("GET", f"/schemas/ids/{number}") for number in (old, 77, new)], "each once"


def test_a_schema_that_refers_to_others(schema_registry: SchemaRegistryServer) -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "shop", "fields": [{"name": "x", "type": "int"}]}
    outer = {
        "type": "record",
        "name": "outer",
        "fields": [{"name": "id", "type": "long"}, {"name": "st", "type": ["null", "shop.Inner"]}],
    }
    schema_registry.add("inner", inner)
    reference = {"name": "shop.Inner", "subject": "inner", "version": 1}
    number = schema_registry.add("outer", outer, references=[reference])
    whole = {**outer, "fields": [outer["fields"][0], {"name": "st", "type": ["null", inner]}]}
    table = relation(
        col("id", "BIGINT"), col("st", col("x", "INTEGER").type.__class__("STRUCT", fields=(("x", col("x", "INTEGER").type),)))
    )
    parsed = read([encoded(whole, {"id": 1, "st": {"x": 5}}, number)], table, registry_urls=[schema_registry.url])
    assert rows(parsed) == [{"id": 1, "st": {"x": 5}}]


def test_schemas_that_no_table_has_are_poison(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("s", {"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "r"]}]})
    other = schema_registry.add("p", '"string"')
    parsed = read([struct.pack(">bI", 0, number), struct.pack(">bI", 0, other)], TABLE, registry_urls=[schema_registry.url])
    assert [error.message.split(":")[0] for error in parsed.errors] == [f"schema {each} cannot be read" for each in (number, other)]


def test_schemas_of_another_kind_are_asked_for_once(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("j", '{"type": "object"}', schemaType="JSON")
    parsed = read([struct.pack(">bI", 0, number)] * 3, TABLE, registry_urls=[schema_registry.url])
    assert [error.message for error in parsed.errors] == [f"schema {number} is one of JSON, and not of Avro"] * 3
    assert len(schema_registry.requests) == 1


def test_changes_of_debezium(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("people-value", ENVELOPE)

    def change(operation: str, before: Any, after: Any) -> bytes:
        return encoded(ENVELOPE, {"before": before, "after": after, "op": operation, "ts_ms": 1}, number)

    values = [
        change("r", None, person(1, "a")),
        change("u", person(1, "a"), person(1, "b")),
        change("d", person(1, "b"), None),
        None,
        change("c", None, person(2)),
        change("u", None, person(2, "c")),
        change("x", None, None),
        change("d", None, None),
        change("c", person(3), None),
    ]
    parsed = read(values, TABLE, registry_urls=[schema_registry.url], update_format="debezium")
    comes, goes = Op.INSERT, Op.DELETE
    assert operations(parsed) == [comes, goes, comes, goes, comes, comes]
    assert [row["name"] for row in rows(parsed)] == ["a", "a", "b", "b", None, "c"]
    assert [(error.index, error.message) for error in parsed.errors] == [
        (6, "'x' is no operation of Debezium; wanted 'c', 'u', 'd', 'r' or 't'"),
        (7, "the row that goes ('before') is missing"),
        (8, "the row that comes ('after') is missing"),
    ]
    parsed = read(
        [encoded(SCHEMA, person(1), schema_registry.add("x", SCHEMA))],
        TABLE,
        registry_urls=[schema_registry.url],
        update_format="debezium",
    )
    assert "none of Debezium's changes" in parsed.errors[0].message


def test_values_that_debezium_did_not_send_and_truncations() -> None:
    table = RelationSchema("t", TABLE.columns, ("id",))
    options = {"schema": json.dumps(ENVELOPE), "update_format": "debezium"}

    def change(operation: str, before: Any, after: Any) -> bytes:
        return encoded(ENVELOPE, {"before": before, "after": after, "op": operation, "ts_ms": 1}, 1)

    unsent = person(1, "__debezium_unavailable_value")
    values = [change("c", None, person(1, "long")), change("u", None, unsent), change("u", person(1, "x"), unsent)]
    parsed = read([*values, change("c", None, unsent)], table, **options)
    assert operations(parsed) == [Op.INSERT, Op.UPDATE, Op.DELETE, Op.INSERT]
    assert [(row["id"], row["name"], row[GIVEN]) for row in rows(parsed)] == [
        (1, "long", None),
        (1, None, ["id"]),
        (1, "x", None),
        (1, "x", None),
    ]
    assert [(error.index, "column 'name'" in error.message) for error in parsed.errors] == [(3, True)]
    parsed = read([*values, change("t", None, None), change("c", None, person(2))], table, **options)
    assert parsed.changes is not None
    assert (parsed.changes.truncates, rows(parsed)) == (True, [person(2)])


def test_a_list_of_numbers_that_debezium_did_not_send() -> None:
    of_row = {
        "type": "record",
        "name": "Row",
        "fields": [{"name": "id", "type": "long"}, {"name": "marks", "type": ["null", {"type": "array", "items": "int"}]}],
    }
    fields = [{"name": "before", "type": ["null", of_row]}, {"name": "after", "type": ["null", "Row"]}]
    envelope = {"type": "record", "name": "Envelope", "fields": [*fields, {"name": "op", "type": "string"}]}
    table = relation(col("id", "BIGINT"), col("marks", "ARRAY", component=ColumnType("INTEGER")))
    unsent = {"id": 1, "marks": list(b"__debezium_unavailable_value")}
    message = encoded(envelope, {"before": None, "after": unsent, "op": "u"})
    parsed = read([message], replace(table, primary_key=("id",)), schema=json.dumps(envelope), update_format="debezium")
    assert operations(parsed) == [Op.UPDATE]
    assert [row[GIVEN] for row in rows(parsed)] == [["id"]]


def test_times_of_debezium() -> None:
    table = relation(col("d", "DATE"), col("t", "TIME"), col("ms", "TIMESTAMP"), col("us", "TIMESTAMP"), col("z", "TIMESTAMP"))
    kinds = {"d": ("int", "Date"), "t": ("long", "MicroTime"), "ms": ("long", "Timestamp"), "us": ("long", "MicroTimestamp")}
    fields: list[Any] = [
        {"name": name, "type": ["null", {"type": kind, "connect.version": 1, "connect.name": f"io.debezium.time.{meaning}"}]}
        for name, (kind, meaning) in kinds.items()
    ]
    fields.append({"name": "z", "type": {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}})
    schema = {"type": "record", "name": "r", "fields": fields}
    record = {
        "d": 19782,
        "t": 3_723_000_004,
        "ms": 1_700_000_000_123,
        "us": 1_700_000_000_123_456,
        "z": "2024-01-01T01:00:00+01:00",
    }
    [row] = rows(read([encoded(schema, record)], table, schema=json.dumps(schema)))
    assert row == {
        "d": dt.date(2024, 2, 29),
        "t": dt.time(1, 2, 3, 4),
        "ms": dt.datetime(2023, 11, 14, 22, 13, 20, 123000),
        "us": dt.datetime(2023, 11, 14, 22, 13, 20, 123456),
        "z": dt.datetime(2024, 1, 1),
    }


def test_deletes_of_a_key_give_no_more_than_it() -> None:
    table = RelationSchema("t", (col("id", "BIGINT", null=False), col("name", "VARCHAR", null=False)), ("id",))
    value = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
    envelope = {**ENVELOPE, "fields": [{"name": "before", "type": ["null", value]}, *ENVELOPE["fields"][1:]]}
    change = encoded(envelope, {"before": person(4), "after": None, "op": "d", "ts_ms": None})
    parsed = read([change], table, schema=json.dumps(envelope), update_format="debezium")
    assert (rows(parsed), operations(parsed)) == ([person(4)], [Op.DELETE])


def test_who_asks_and_what_a_registry_refuses(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("s", SCHEMA)
    value = encoded(SCHEMA, person(1), number)
    assert rows(read([value], TABLE, registry_urls=[schema_registry.url], registry_username="u", registry_password="p")) == [
        person(1)
    ]
    read([value], TABLE, registry_urls=[schema_registry.url], registry_authorization_token="t0k", registry_headers={"X-Team": "a"})
    first, second = schema_registry.headers
    assert first["Authorization"] == "Basic dTpw"
    assert (second["Authorization"], second["X-Team"]) == ("Bearer t0k", "a")
    schema_registry.status = 401
    with pytest.raises(FormatFailure, match=r"answered 401. Check 'registry_username'") as refused:
        read([value], TABLE, registry_urls=[schema_registry.url])
    assert not isinstance(refused.value, TransientFormatFailure)
    schema_registry.status = 503
    with pytest.raises(TransientFormatFailure, match="answered 503"):
        read([value], TABLE, registry_urls=[schema_registry.url])


def test_the_next_registry_is_asked_when_one_is_away(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("s", SCHEMA)
    away = SchemaRegistryServer()
    away.close()
    value = encoded(SCHEMA, person(1), number)
    assert rows(read([value], TABLE, registry_urls=[away.url, schema_registry.url])) == [person(1)]
    with pytest.raises(TransientFormatFailure, match="cannot be reached"):
        read([value], TABLE, registry_urls=[away.url.replace("http://", "http://user:s3cret@")], registry_timeout_secs=2)
    made = parser(registry_urls=[schema_registry.url], registry_proxy=away.url)
    with pytest.raises(TransientFormatFailure, match="cannot be reached"):
        made.parse_messages(Messages([value], lambda number: None))


def test_defaults_read_what_is_known_of_each_message() -> None:
    class Described:
        columns = frozenset({"place"})

        def rows(self, now: int, metadata: pa.Table) -> list[dict[str, Any]]:
            places = zip(metadata.column("offset").to_pylist(), metadata.column("is_delete").to_pylist(), strict=True)
            return [{"place": -offset if goes else offset} for offset, goes in places]

    columns = (*TABLE.columns, col("place", "BIGINT", default="CAST(connector_metadata()['offset'] AS BIGINT)"))
    table = RelationSchema("t", columns, defaults={"place": None}, described=Described())
    values = [encoded(SCHEMA, person(1)), b"poison", encoded(SCHEMA, person(2))]
    known = pa.table({"offset": [7, 8, 9]})
    parsed = parser(table, schema=json.dumps(SCHEMA)).parse_messages(Messages(values, lambda number: None, known))
    assert rows(parsed) == [{**person(1), "place": 7}, {**person(2), "place": 9}]
    change = encoded(ENVELOPE, {"before": person(1, "a"), "after": person(1, "b"), "op": "u", "ts_ms": None})
    changes = parser(table, schema=json.dumps(ENVELOPE), update_format="debezium")
    parsed = changes.parse_messages(Messages([change], lambda number: None, pa.table({"offset": [7]})))
    assert [(row["name"], row["place"]) for row in rows(parsed)] == [("a", -7), ("b", 7)]
