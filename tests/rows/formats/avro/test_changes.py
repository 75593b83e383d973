"""Changes of a view as messages in Avro: schemas that are made and registered, keys, shapes, and what fits into none."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_reader

from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.avro.changes import avro_changes
from airflow_pipelines.rows.formats.avro.definition import AvroParser
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.avro.schemas import record_schema
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.messages import Messages, WrittenMessage
from airflow_pipelines.rows.formats.registered.changes import RegisteredChanges
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.relations import NESTED, SCALARS, col, relation
from tests.fixtures.schema_registry import SchemaRegistryServer

pytestmark = pytest.mark.core

VIEW = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="people")
KEY = ("id",)


def changes(*rows: tuple[int, str | None, int], key: tuple[str, ...] = KEY) -> ChangesInMemory:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, kind) for values, kind in zip(columns, (pa.int64(), pa.string(), pa.int64()), strict=True)]
    return ChangesInMemory(pa.table(arrays, names=["id", "name", WEIGHT]), key)


def opened(view: RelationSchema = VIEW, key: tuple[str, ...] = KEY, topic: str = "t", **options: Any) -> RegisteredChanges:
    made = avro_changes(view, AvroOptions.model_validate(options), key)
    made.open(topic)
    return made


def written(encoder: RegisteredChanges, given: ChangesInMemory) -> list[WrittenMessage]:
    return [message for table in given.tables() for message in encoder.messages(table)]


def decoded(data: bytes | None, schema: Any) -> Any:
    if data is None:
        return None
    assert data[0] == 0
    return schemaless_reader(io.BytesIO(data[5:]), parse_schema(schema), None)


def test_rows_and_what_became_of_them(schema_registry: SchemaRegistryServer) -> None:
    encoder = opened(registry_urls=[schema_registry.url])
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, None, 1)))
    assert schema_registry.subjects == {"people": [1], "people_key": [2]}
    value, key = schema_registry.schema(1), schema_registry.schema(2)
    assert value == record_schema(VIEW.columns, "people", None)
    assert [decoded(message.value, value) for message in messages] == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": "c"},
        {"id": 3, "name": None},
    ]
    assert [decoded(message.key, key) for message in messages] == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert [message.headers for message in messages] == [(("op", each),) for each in (b"delete", b"update", b"insert")]
    assert [(message.value or b"")[1:5] for message in messages] == [b"\0\0\0\1"] * 3
    assert (messages[0].key or b"")[1:5] == b"\0\0\0\2"


def test_shape_of_confluents_sink(schema_registry: SchemaRegistryServer) -> None:
    encoder = opened(registry_urls=[schema_registry.url], update_format="confluent_jdbc", topic="a/b", namespace="shop.x")
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, "d", 1)))
    assert list(schema_registry.subjects) == ["a/b-value", "a/b-key"]
    assert [schema_registry.schema(number)["namespace"] for number in (1, 2)] == ["shop.x"] * 2
    assert [decoded(message.value, schema_registry.schema(1)) for message in messages] == [
        None,
        {"id": 2, "name": "c"},
        {"id": 3, "name": "d"},
    ]
    assert [decoded(message.key, schema_registry.schema(2)) for message in messages] == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert not any(message.headers for message in messages)


def test_the_operation_as_a_field() -> None:
    encoder = opened(cdc_field="kind")
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, "d", 1)))
    schema = record_schema(VIEW.columns, "people", None, [{"name": "kind", "type": "string"}])
    assert [decoded(message.value, schema)["kind"] for message in messages] == ["D", "U", "I"]
    assert {(message.value or b"")[:5] for message in messages} == {b"\0\0\0\0\0"}, "without a registry the number is 0"


@pytest.mark.parametrize(("key", "options"), [((), {}), (KEY, {"key_mode": "none"})])
def test_messages_without_keys(key: tuple[str, ...], options: dict[str, Any]) -> None:
    messages = written(opened(key=key, skip_schema_id=True, **options), changes((1, "a", -1), (1, "b", 1), key=key))
    assert [message.key for message in messages] == [None] * len(messages)
    assert [message.value for message in messages] == [b"\x02\x02\x02a", b"\x02\x02\x02b"][-len(messages) :]
    assert len(messages) == 2 - len(key)


@pytest.mark.parametrize(
    ("strategy", "subjects"),
    [
        ("topic_name", ["t-value", "t-key"]),
        ("record_name", ["n.people", "n.people_key"]),
        ("topic_record_name", ["t-n.people", "t-n.people_key"]),
    ],
)
def test_subjects(schema_registry: SchemaRegistryServer, strategy: str, subjects: list[str]) -> None:
    opened(registry_urls=[schema_registry.url], subject_name_strategy=strategy, namespace="n")
    assert list(schema_registry.subjects) == subjects


def test_a_schema_of_ones_own(schema_registry: SchemaRegistryServer) -> None:
    own = {"type": "record", "name": "mine", "fields": [{"name": "NAME", "type": "string"}, {"name": "id", "type": "int"}]}
    encoder = opened(schema=json.dumps(own), registry_urls=[schema_registry.url])
    assert schema_registry.schema(1) == own
    [message] = written(encoder, changes((1, "a", 1)))
    assert decoded(message.value, own) == {"NAME": "a", "id": 1}
    with pytest.raises(FormatFailure, match="does not fit into the schema"):
        written(encoder, changes((1, None, 1)))
    other = {**own, "fields": [*own["fields"], {"name": "x", "type": "int"}]}
    with pytest.raises(FormatFailure, match="fields that the view does not have: 'x'"):
        opened(schema=json.dumps(other))
    with pytest.raises(FormatFailure, match="none of a record"):
        opened(schema='"string"')


def test_all_types_come_back_as_they_were() -> None:
    names = ("b", "i8", "i16", "i32", "i64", "r", "f", "dec", "s", "d", "t", "ts", "tz", "u")
    columns = [column for column in (*SCALARS.columns, *NESTED.columns) if column.name in (*names, "bin", "arr", "st", "v")]
    more = [
        col("ub", "UBIGINT"),
        col("texts", "MAP", key=ColumnType("VARCHAR", False), value=ColumnType("TIMESTAMP")),
        col("at", "STRUCT", fields=(("x", ColumnType("TIMESTAMP")), ("y", ColumnType("VARCHAR")))),
        col("ats", "ARRAY", component=ColumnType("TIMESTAMP")),
    ]
    table = relation(*columns, *more, name="all")
    text = (
        '{"b": true, "i8": -128, "i16": 1, "i32": -5, "i64": 9007199254740993, "r": 1.5, "f": -0.1, "dec": 123456789.125, "s": "ä",'
        '"d": "1969-12-31", "t": "23:59:59.999999", "ts": "0001-01-01 00:00:00.000001", "tz": "2024-01-01T00:00:00Z",'
        '"u": "0199c0de-0000-7000-8000-000000000000", "bin": [0, 255], "arr": [1, null], "st": {"x": "2024-02-29", "y": ["a"]},'
        '"v": {"a": [1, "x", null]}, "ub": 18446744073709551615, "texts": {"k": "2024-01-01 00:00:00"},'
        '"at": {"x": "2024-01-01 00:00:00", "y": null}, "ats": ["2024-01-01 00:00:00", null]}\n{"i64": 0}'
    )
    parsed = JsonParser(table, JsonOptions(update_format="raw")).parse(text.encode())
    assert parsed.changes is not None, parsed.errors
    rows = parsed.changes.rows.drop_columns([OP])
    given = ChangesInMemory(rows.append_column(WEIGHT, pa.array([1, 1])))
    messages = written(opened(table, key=()), given)
    schema = json.dumps(record_schema(table.columns, "all", None))
    reader = AvroParser(table, AvroOptions.model_validate({"schema": schema}), wall_clock)
    read = reader.parse_messages(Messages([message.value for message in messages], lambda number: None))
    assert read.changes is not None, read.errors
    # A VARIANT goes as JSON text, and comes back as a text.
    kept = [name for name in rows.column_names if name != "v"]
    back = read.changes.rows.drop_columns([OP]).select(kept).to_pylist()
    assert sorted(back, key=str) == sorted(rows.select(kept).to_pylist(), key=str)
    values = [decoded(message.value, json.loads(schema)) for message in messages]
    [whole] = [value for value in values if value["i64"]]
    assert json.loads(whole["v"]) == {"a": [1, "x", None]}
    assert (whole["ub"], whole["dec"]) == (Decimal(2**64 - 1), Decimal("123456789.125"))
    assert whole["ts"] == dt.datetime(1, 1, 1, 0, 0, 0, 1, dt.UTC)


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (relation(col("a b", "INTEGER", quoted=True)), "column 'a b' has a name that Avro cannot have"),
        (
            relation(col("m", "MAP", key=ColumnType("INTEGER", False), value=ColumnType("INTEGER"))),
            "column 'm' is a map whose keys are no texts",
        ),
    ],
)
def test_columns_that_avro_does_not_have(view: RelationSchema, says: str) -> None:
    with pytest.raises(FormatFailure, match=says):
        avro_changes(view, AvroOptions(), ())


def test_a_registry_that_is_away_or_refuses(schema_registry: SchemaRegistryServer) -> None:
    schema_registry.status = 500
    with pytest.raises(TransientFormatFailure, match="answered 500"):
        opened(registry_urls=[schema_registry.url])
    schema_registry.status = 409
    with pytest.raises(FormatFailure, match=r"answered 409.*Change the view, or the subject's compatibility") as refused:
        opened(registry_urls=[schema_registry.url])
    assert not isinstance(refused.value, TransientFormatFailure)
