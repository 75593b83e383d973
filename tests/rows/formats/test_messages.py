"""Messages of a queue: each is a document of its own, and a bad one costs no other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.messages import Messages, ParsedMessages, message_parser
from airflow_pipelines.rows.formats.parquet import parquet_parser
from airflow_pipelines.rows.formats.parsed import Parser, RecordProblem
from airflow_pipelines.rows.formats.raw import RawOptions, RawParser
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation

TABLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"))
MANY = 1000
RAW = JsonOptions(update_format="raw")


def read(parser: Parser, values: Sequence[bytes | None], schema: Any = TABLE) -> ParsedMessages:
    return message_parser(schema, parser).parse_messages(Messages(values, lambda number: None))


def rows(parsed: ParsedMessages) -> list[dict[str, Any]]:
    return [] if parsed.changes is None else parsed.changes.rows.drop_columns([OP]).to_pylist()


def documents(number: int) -> list[bytes]:
    return [json.dumps({"id": each, "name": f"n{each}"}).encode() for each in range(number)]


@pytest.mark.parametrize("number", [0, 1, 16, 17, MANY])
def test_each_object_is_a_row(number: int) -> None:
    parsed = read(JsonParser(TABLE, RAW), documents(number))
    assert rows(parsed) == [{"id": each, "name": f"n{each}"} for each in range(number)]
    assert (parsed.records, parsed.num_errors) == (number, 0)


@pytest.mark.parametrize("number", [3, MANY])
def test_a_byte_order_mark_is_left_out_of_each_message(number: int) -> None:
    mark = b"\xef\xbb\xbf"
    texts = relation(col("name", "VARCHAR"))
    lines: list[bytes | None] = [mark + f"n{each}".encode() if each % 2 else f"n{each}".encode() for each in range(number)]
    expected = [{"name": f"n{each}"} for each in range(number)]
    assert rows(read(CsvParser(texts), lines, texts)) == expected
    objects: list[bytes | None] = [mark + each if number % 2 else each for number, each in enumerate(documents(number))]
    assert rows(read(JsonParser(TABLE, RAW), objects)) == [{"id": each, **row} for each, row in enumerate(expected)]


@pytest.mark.parametrize("bad", [[0], [MANY - 1], [3, 4, 500, 999], list(range(0, MANY, 7))])
def test_a_bad_message_costs_no_other(bad: list[int]) -> None:
    values: list[bytes | None] = list(documents(MANY))
    for place in bad:
        values[place] = b'{"id": "x"}'
    parsed = read(JsonParser(TABLE, RAW), values)
    assert [row["id"] for row in rows(parsed)] == [each for each in range(MANY) if each not in bad]
    assert [error.index for error in sorted(parsed.errors, key=lambda error: error.index)] == bad
    assert all("column 'id'" in error.message and not error.message.startswith("record 0") for error in parsed.errors[:1])


@pytest.mark.parametrize(
    "halves",
    [
        (b'{"id": 1, "name": "a', b'"}'),
        (b'{"id": 1', b', "name": "a"}'),
        (b'{"id": 1, "name": "a}', b'{"}'),
        (b'{"id":', b"1}"),
        (b'{"id": 1, "x": {}', b'{"id": 2}}'),
    ],
)
def test_two_messages_are_never_read_as_one(halves: tuple[bytes, bytes]) -> None:
    values: list[bytes | None] = [*documents(MANY), *halves, b'{"id": 7, "name": "b"} {"id": 8, "name": "c"}']
    parsed = read(JsonParser(TABLE, RAW), values)
    assert {error.index for error in parsed.errors} == {MANY, MANY + 1}
    assert rows(parsed)[-2:] == [{"id": 7, "name": "b"}, {"id": 8, "name": "c"}]


def test_a_message_without_payload_is_an_error_but_after_deletes_of_debezium() -> None:
    values = [*documents(2), None, b""]
    parsed = read(JsonParser(TABLE, RAW), values)
    assert [(error.index, "no payload" in error.message) for error in parsed.errors] == [(2, True), (3, True)]
    assert parsed.records == 2
    delete = b'{"payload": {"op": "d", "before": {"id": 1}, "after": null}}'
    parsed = read(JsonParser(TABLE, JsonOptions(update_format="debezium")), [delete, None])
    assert (parsed.records, parsed.num_errors) == (1, 0)


def test_a_changed_default_form_needs_no_plain_values() -> None:
    changes = [b'{"insert": {"id": %d}}' % each for each in range(50)] + [
        b'{"delete": {"id": 3}}',
        b'{"update": {"id": 1, "name": "z"}}',
    ]
    parsed = read(JsonParser(TABLE), changes)
    assert parsed.changes is not None
    assert parsed.changes.rows.column(OP).to_pylist()[-3:] == [0, 1, 2] or parsed.records == 52
    assert parsed.num_errors == 0


def test_arrays_have_several_rows_each() -> None:
    values = [json.dumps([{"id": each}, {"id": -each}]).encode() for each in range(30)]
    parsed = read(JsonParser(TABLE, JsonOptions(update_format="raw", array=True)), values)
    assert [row["id"] for row in rows(parsed)] == [number for each in range(30) for number in (each, -each)]


def test_records_of_csv() -> None:
    values: list[bytes | None] = [b'%d,"a ""quoted"", name"\r\n' % each for each in range(200)]
    values[70] = b'70,"open'
    values[71] = b'71,b"'
    values[72] = b"72,x\n73,y"
    parsed = read(CsvParser(TABLE), values)
    assert {error.index for error in parsed.errors} == {70, 71} or {error.index for error in parsed.errors} == {70}
    ids = [row["id"] for row in rows(parsed)]
    assert [each for each in ids if each not in (70, 71)] == [*range(70), 72, 73, *range(73, 200)]
    assert rows(parsed)[0]["name"] == 'a "quoted", name'


def test_each_message_of_csv_has_its_own_header() -> None:
    parsed = read(CsvParser(TABLE, CsvOptions(headers=True)), [b"name,id\na,1\nb,2", b"id,name\n3,c"])
    assert rows(parsed) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]


def test_raw_messages() -> None:
    text, binary = relation(col("line", "VARCHAR")), relation(col("data", "VARBINARY"))
    values = [b"line %d" % each for each in range(100)]
    assert rows(read(RawParser(text), values, text)) == [{"line": value.decode()} for value in values]
    values[50] = b"\xff"
    parsed = read(RawParser(text), values, text)
    assert parsed.records == 99
    assert [error.index for error in parsed.errors] == [50]
    assert rows(read(RawParser(binary), values, binary))[50] == {"data": b"\xff"}
    lines = read(RawParser(text, RawOptions(mode="lines")), [b"a\nb\n", b"c"], text)
    assert rows(lines) == [{"line": "a"}, {"line": "b"}, {"line": "c"}]


def test_a_format_of_files_has_no_messages() -> None:
    with pytest.raises(RecordProblem, match="cannot be read from messages"):
        message_parser(TABLE, parquet_parser(TABLE))


class _Described:
    """DEFAULTs that read what is known of a record, as the compiler evaluates them."""

    columns = frozenset({"place", "source"})

    def __init__(self) -> None:
        self.asked: list[int] = []

    def rows(self, now: int, metadata: pa.Table) -> list[dict[str, Any]]:
        self.asked.append(metadata.num_rows)
        offsets = metadata.column("offset").to_pylist()
        if 13 in offsets:
            raise ValueError("13 is no good")
        gone = metadata.column("is_delete").to_pylist()
        return [
            {"place": offset, "source": f"{'gone' if goes else 'at'} {offset}"} for offset, goes in zip(offsets, gone, strict=True)
        ]


def described(null: bool = True) -> RelationSchema:
    columns = (
        col("id", "BIGINT", null=False),
        col("place", "BIGINT", null=null, default="CAST(connector_metadata()['offset'] AS BIGINT)"),
        col("source", "VARCHAR", default="'at ' || CAST(connector_metadata()['offset'] AS STRING)"),
    )
    return RelationSchema("t", columns, defaults={"place": None, "source": None}, described=_Described())


def places(schema: RelationSchema, values: Sequence[bytes | None], offsets: Sequence[int | None] | None) -> ParsedMessages:
    known = None if offsets is None else pa.table({"offset": pa.array(offsets, pa.int64())})
    parser = message_parser(schema, JsonParser(schema, RAW))
    parser.parse_messages(Messages([b'{"id": 0}'], lambda number: None, pa.table({"offset": pa.array([99], pa.int64())})))
    return parser.parse_messages(Messages(values, lambda number: None, known))


def test_defaults_read_what_is_known_of_each_message() -> None:
    schema = described()
    values = [json.dumps({"id": number}).encode() for number in range(MANY)]
    values[3], values[5] = b"poison", b'{"id": 5, "place": null, "source": "own"}'
    parsed = places(schema, values, range(1000, 1000 + MANY))
    found = {row["id"]: (row["place"], row["source"]) for row in rows(parsed)}
    expected = {number: (1000 + number, f"at {1000 + number}") for number in range(MANY) if number != 3}
    assert found == {**expected, 5: (None, "own")}
    assert isinstance(schema.described, _Described)
    assert schema.described.asked == [1, MANY], "once for all of them"
    assert [row["place"] for row in rows(places(described(), [b'{"id": 1}'], None))] == [None], "nothing is known"


def test_a_default_that_fails_costs_its_message_only() -> None:
    parsed = places(described(), [b'{"id": 1}', b'{"id": 2}', b'{"id": 3}'], [12, 13, 14])
    assert [(row["id"], row["place"]) for row in rows(parsed)] == [(1, 12), (3, 14)]
    [error] = parsed.errors
    assert (error.index, error.message.split(" in ")[0]) == (1, "a DEFAULT cannot be evaluated: 13 is no good")


def test_a_default_that_is_null_where_no_null_may_be() -> None:
    parsed = places(described(null=False), [b'{"id": 1}', b'{"id": 2}'], [None, 5])
    assert [row["place"] for row in rows(parsed)] == [5]
    assert "its DEFAULT is NULL" in parsed.errors[0].message


@pytest.mark.parametrize("number", [2, MANY])
def test_what_is_known_of_a_message_is_null_for_one_that_deletes_nothing(number: int) -> None:
    class Noted(_Described):
        def rows(self, now: int, metadata: pa.Table) -> list[dict[str, Any]]:
            known.update(metadata.column("is_delete").to_pylist())
            return super().rows(now, metadata)

    known: set[bool | None] = set()
    schema = replace(described(), described=Noted())
    values = [json.dumps({"insert": {"id": each}}).encode() for each in range(number)]
    offsets = pa.table({"offset": pa.array(range(20, 20 + number), pa.int64()), "is_delete": pa.nulls(number, pa.bool_())})
    parser = message_parser(schema, JsonParser(schema, JsonOptions()))
    parser.parse_messages(Messages(values, lambda number: None, offsets))
    assert known == {None}
    parser.parse_messages(Messages([b'{"delete": {"id": 1}}'], lambda number: None, offsets.slice(0, 1)))
    assert True in known


@pytest.mark.parametrize("number", [2, MANY])
def test_a_default_knows_whether_its_row_goes(number: int) -> None:
    schema = described()
    values = [json.dumps({("delete" if each % 2 else "insert"): {"id": each}}).encode() for each in range(number)]
    known = pa.table({"offset": range(100, 100 + number)})
    parsed = message_parser(schema, JsonParser(schema, JsonOptions())).parse_messages(Messages(values, lambda _: None, known))
    assert [row["source"] for row in rows(parsed)] == [f"{'gone' if each % 2 else 'at'} {100 + each}" for each in range(number)]
    assert [row["place"] for row in rows(parsed)] == list(range(100, 100 + number))
    assert isinstance(schema.described, _Described)
    assert schema.described.asked == [number, number], "once for rows that come, and once for those that go"
