"""Values as each JSON flavor writes them, and read back."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.delta import JsonChanges
from airflow_pipelines.rows.formats.flavors import BinaryForm, JsonFlavor
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation, rows

TABLE = relation(
    col("d", "DATE"),
    col("t", "TIME"),
    col("ts", "TIMESTAMP"),
    col("tz", "TIMESTAMP_TZ"),
    col("n", "DECIMAL", precision=6, scale=2),
    col("b", "VARBINARY"),
    col("v", "VARIANT"),
    col("days", "ARRAY", component=ColumnType("DATE")),
)
TEXTS = {
    "d": "2024-02-29",
    "t": "12:34:56.5",
    "ts": "2024-02-29 12:34:56.5",
    "tz": "2024-02-29 12:34:56.5+00:00",
    "n": 12.50,
    "b": [0, 255, 10],
    "v": {"a": [1]},
    "days": ["1970-01-02"],
}
DAYS, SECONDS = 19782, 1709210096
DEBEZIUM = {"d": DAYS, "t": 45296500000, "n": "12.50", "b": "AP8K", "v": '{"a":[1]}', "days": [1]}
WRITTEN: dict[JsonFlavor, dict[str, Any]] = {
    JsonFlavor.DEFAULT: {},
    JsonFlavor.DEBEZIUM_MYSQL: {**DEBEZIUM, "ts": SECONDS * 1000 + 500, "tz": SECONDS * 1000 + 500},
    JsonFlavor.DEBEZIUM_POSTGRES: {**DEBEZIUM, "ts": SECONDS * 10**6 + 500_000, "tz": SECONDS * 10**6 + 500_000},
    JsonFlavor.SNOWFLAKE: {"ts": "2024-02-29T12:34:56.500000Z", "tz": "2024-02-29T12:34:56.500000Z", "n": "12.50", "b": "00ff0a"},
    JsonFlavor.KAFKA_CONNECT: {
        "d": DAYS,
        "t": 45296500,
        "ts": SECONDS * 1000 + 500,
        "tz": SECONDS * 1000 + 500,
        "b": "AP8K",
        "days": [1],
    },
    JsonFlavor.PANDAS: {
        "d": DAYS * 86_400_000,
        "t": 45296500,
        "ts": SECONDS * 1000 + 500,
        "tz": SECONDS * 1000 + 500,
        "days": [86_400_000],
    },
    JsonFlavor.BLOCKCHAIN: {"b": "1LQh"},
    JsonFlavor.C_HEX: {"b": "0x00ff0a"},
}


def parsed(record: dict[str, Any], flavor: JsonFlavor) -> Any:
    return JsonParser(TABLE, JsonOptions(update_format="raw", json_flavor=flavor)).parse(json.dumps(record).encode())


@pytest.mark.parametrize("flavor", list(JsonFlavor))
def test_what_is_written_is_read(flavor: JsonFlavor) -> None:
    [row] = rows(parsed(TEXTS, JsonFlavor.DEFAULT))
    del row[OP]
    changes = pa.table({name: pa.array([value], TABLE.arrow.field(name).type) for name, value in row.items()} | {"__weight": [1]})
    [text] = JsonChanges(JsonOptions(json_flavor=flavor)).texts(changes)
    written = json.loads(text)["insert"]
    assert written == {**TEXTS, "ts": "2024-02-29 12:34:56.500000", "tz": "2024-02-29 12:34:56.500000+00:00", **WRITTEN[flavor]}
    assert rows(parsed(written, flavor)) == [{**row, OP: 1}]
    # Besides, the texts of the default flavor are read in all of them.
    assert rows(parsed({**TEXTS, "v": None}, flavor)) == [{**row, "v": None, OP: 1}]


@pytest.mark.parametrize(
    ("flavor", "record", "message"),
    [
        (JsonFlavor.DEFAULT, {"d": 1}, "1 is not a date as"),
        (JsonFlavor.DEFAULT, {"b": "AP8K"}, "is not an array of byte numbers"),
        (JsonFlavor.DEBEZIUM_MYSQL, {"b": "A"}, "is not text in base64"),
        (JsonFlavor.DEBEZIUM_MYSQL, {"v": "{"}, "is not JSON"),
        (JsonFlavor.DEBEZIUM_MYSQL, {"t": 86_400_000_000}, "microseconds are out of range"),
        (JsonFlavor.KAFKA_CONNECT, {"d": 10**9}, "days are out of range"),
        (JsonFlavor.BLOCKCHAIN, {"b": "0l"}, "is not text in base58"),
        (JsonFlavor.C_HEX, {"b": "0xf"}, "is not text in hexadecimal digits after 0x"),
    ],
)
def test_what_a_flavor_does_not_read(flavor: JsonFlavor, record: dict[str, Any], message: str) -> None:
    [error] = parsed(record, flavor).errors
    assert message in error.message


def test_base58_keeps_zeros() -> None:
    for data in (b"", b"\0", b"\0\0\x01", b"\xff" * 40):
        assert BinaryForm.BASE58.read(json.loads(BinaryForm.BASE58.write(data))) == data
    assert BinaryForm.BASE58.write(b"hello world") == '"StV1DL6CwTryKyV"'


def test_update_formats() -> None:
    changes = pa.table({"x": [1, 2], "at": [dt.date(1970, 1, 2), None], "n": [Decimal("1.0"), None], "__weight": [1, -1]})
    assert list(JsonChanges(JsonOptions(update_format="weighted")).texts(changes)) == [
        '{"weight":1,"data":{"x":1,"at":"1970-01-02","n":1.0}}',
        '{"weight":-1,"data":{"x":2,"at":null,"n":null}}',
    ]
    debezium = JsonOptions(update_format="debezium", json_flavor=JsonFlavor.DEBEZIUM_MYSQL)
    assert list(JsonChanges(debezium).texts(changes)) == [
        '{"payload":{"op":"c","before":null,"after":{"x":1,"at":1,"n":"1.0"}}}',
        '{"payload":{"op":"d","before":{"x":2,"at":null,"n":null},"after":null}}',
    ]


def test_snowflake_reads_rows_that_are_numbered_in_their_stream() -> None:
    changes = pa.table({"x": [1, 2], "n": [Decimal("1.0"), None], "__weight": [-1, 1]})
    streams = [JsonChanges(JsonOptions(update_format="snowflake")) for _ in range(2)]
    first, second = ([json.loads(text) for _ in range(2) for text in stream.texts(changes)] for stream in streams)
    stream_id = first[0]["__stream_id"]
    assert first[:2] == [
        {"x": 1, "n": "1.0", "__action": "delete", "__stream_id": stream_id, "__seq_number": 1},
        {"x": 2, "n": None, "__action": "insert", "__stream_id": stream_id, "__seq_number": 2},
    ]
    assert [(change["__stream_id"], change["__seq_number"]) for change in first] == [(stream_id, n) for n in range(1, 5)]
    assert [change["__seq_number"] for change in second] == [1, 2, 3, 4]
    assert stream_id != second[0]["__stream_id"]
    [text, _] = JsonChanges(JsonOptions(update_format="snowflake", json_flavor=JsonFlavor.DEFAULT)).texts(changes)
    assert json.loads(text)["n"] == 1.0, "another flavor was asked for"
