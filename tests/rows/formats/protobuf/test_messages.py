"""Rows from messages in Protobuf: types, presence, changes of Debezium, what is malformed, and where types are."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.type import date_pb2, decimal_pb2, timeofday_pb2

from airflow_pipelines.rows.changes import OP, Op
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.messages import MessageParser, Messages, ParsedMessages
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.protobuf.definition import PROTOBUF
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.types import decimal_file
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.rows.formats.protobuf.types import PERSON, SHOP, compiled, file, headed, in_options, message_class, person

pytestmark = pytest.mark.core

TABLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"))
OF_PEOPLE = {"descriptor_set": in_options(SHOP), "message": "shop.Person"}
FIELD = 'field {{ name: "{0}" number: {1} type: {2} label: LABEL_OPTIONAL }}'


def parser(table: RelationSchema = TABLE, **options: Any) -> MessageParser:
    made = PROTOBUF.new_parser(table, ProtobufOptions.model_validate(options), wall_clock) if PROTOBUF.new_parser else None
    assert isinstance(made, MessageParser)
    return made


def read(values: Sequence[bytes | None], table: RelationSchema = TABLE, **options: Any) -> ParsedMessages:
    return parser(table, **options).parse_messages(Messages(values, lambda number: None))


def rows(parsed: ParsedMessages) -> list[dict[str, Any]]:
    return [] if parsed.changes is None else parsed.changes.rows.drop_columns([OP]).to_pylist()


def bare(table: RelationSchema, values: Sequence[bytes], text: str) -> list[dict[str, Any]]:
    """Rows of messages of the first type of a file."""
    kind = file(text)
    name = f"{kind.package}.{kind.message_type[0].name}"
    parsed = read(values, table, descriptor_set=in_options(text), message=name, skip_schema_id=True)
    assert parsed.errors == ()
    return rows(parsed)


def test_a_type_in_the_options(tmp_path: Path) -> None:
    values = [headed(person(number, f"n{number}"), 9) for number in range(3)]
    expected = [{"id": number, "name": f"n{number}"} for number in range(3)]
    assert rows(read(values, **OF_PEOPLE)) == expected
    # Whatever the indexes say: it is the only type.
    assert rows(read([headed(person(1), 9, b"\0"), headed(person(2), 9, b"\4\2\0")], **OF_PEOPLE)) == [
        {"id": 1, "name": None},
        {"id": 2, "name": None},
    ]
    assert rows(read([person(7)], **OF_PEOPLE, skip_schema_id=True)) == [{"id": 7, "name": None}]
    path = tmp_path / "types.bin"
    path.write_bytes(base64.b64decode(OF_PEOPLE["descriptor_set"]))
    assert rows(read(values, descriptor_file=str(path), message="shop.Person")) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**OF_PEOPLE, "message": "shop.Peson"}, "no type 'shop.Peson' in 'descriptor_set'; it has 'shop.Other', 'shop.Person'"),
        ({**OF_PEOPLE, "message": "shop.Other"}, "shop.Other has no field for any column of the table"),
        ({"descriptor_set": "AAAA", "message": "a"}, "it is no FileDescriptorSet"),
        ({"descriptor_set": "", "message": "a"}, "at least 1 character"),
        ({"descriptor_file": "/no/such", "message": "a"}, "'descriptor_file' .* cannot be read where the pipeline runs"),
        (
            {"descriptor_set": in_options('name: "a" dependency: "b/c.proto"'), "message": "a"},
            "'a' imports 'b/c.proto', which is m",
        ),
    ],
)
def test_types_that_cannot_be_had_end_the_input(options: dict[str, Any], says: str) -> None:
    with pytest.raises((FormatFailure, ValueError), match=says):
        read([b""], TABLE, **options)


def test_malformed_messages_cost_no_other() -> None:
    good = headed(person(1, "a"))
    bad_text = headed(b"\x12\x02\xff\xff")
    values = [good, None, b"", b'{"id": 1}', good[:-1], good[:6], headed(person(2, "b")), bad_text, good[:5] + b"\xfe" * 12]
    parsed = read(values, **OF_PEOPLE)
    assert rows(parsed) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    said = {error.index: error.message for error in parsed.errors}
    assert sorted(said) == [1, 2, 3, 4, 5, 7, 8]
    assert "tombstone" in said[1]
    assert all("does not begin with a zero" in said[each] for each in (2, 3))
    assert "the message is no shop.Person" in said[4]
    assert all("does not say which type of its schema it has" in said[each] for each in (5, 8))
    assert "UTF-8" in said[7]
    assert parsed.num_errors == 7


def test_scalars_are_what_columns_take() -> None:
    kinds = {
        "i": "TYPE_SINT32",
        "l": "TYPE_SFIXED64",
        "ui": "TYPE_FIXED32",
        "ul": "TYPE_UINT64",
        "f": "TYPE_FLOAT",
        "d": "TYPE_DOUBLE",
        "b": "TYPE_BOOL",
        "s": "TYPE_STRING",
        "y": "TYPE_BYTES",
    }
    fields = " ".join(FIELD.format(name, number, kind) for number, (name, kind) in enumerate(kinds.items(), 1))
    text = f'name: "a.proto" package: "a" syntax: "proto3" message_type {{ name: "All" {fields} }}'
    table = relation(
        col("i", "TINYINT"),
        col("L", "BIGINT"),
        col("ui", "UINTEGER"),
        col("ul", "UBIGINT"),
        col("f", "REAL"),
        col("d", "DOUBLE"),
        col("b", "BOOLEAN"),
        col("s", "VARCHAR"),
        col("y", "VARBINARY"),
    )
    values = {"i": -128, "l": -(2**63), "ui": 2**32 - 1, "ul": 2**64 - 1, "f": 1.5, "d": -0.1, "b": True, "s": "ä", "y": b"\0\xff"}
    kind = message_class("a.All", file(text))
    found = bare(table, [kind(**values).SerializeToString(), b""], text)
    whole = {**{name: value for name, value in values.items() if name != "l"}, "L": values["l"], "ul": Decimal(2**64 - 1)}
    assert found[0] == whole
    # A field without presence has its default when it is not there.
    assert found[1] == {"i": 0, "L": 0, "ui": 0, "ul": 0, "f": 0, "d": 0, "b": False, "s": "", "y": b""}
    options = {"descriptor_set": in_options(text), "message": "a.All", "skip_schema_id": True}
    bad = [kind(**{**values, **each}).SerializeToString() for each in ({"i": 128}, {"d": float("nan")}, {})]
    parsed = read(bad, table, **options)
    assert ([str(row["d"]) for row in rows(parsed)], [error.index for error in parsed.errors]) == (["nan", "-0.1"], [0])
    assert rows(parsed)[1] == whole
    assert "128" in parsed.errors[0].message


def test_enums_are_names_or_numbers() -> None:
    enum = 'enum_type { name: "E" value { name: "NONE" number: 0 } value { name: "SOME" number: 7 } }'
    field = 'field {{ name: "{0}" number: {1} type: TYPE_ENUM type_name: ".a.E" label: {2} }}'
    fields = (
        field.format("e", 1, "LABEL_OPTIONAL") + field.format("n", 2, "LABEL_OPTIONAL") + field.format("all", 3, "LABEL_REPEATED")
    )
    text = f'name: "a.proto" package: "a" syntax: "proto3" {enum} message_type {{ name: "M" {fields} }}'
    table = relation(col("e", "VARCHAR"), col("n", "INTEGER"), col("all", "ARRAY", component=ColumnType("VARCHAR")))
    kind = message_class("a.M", file(text))
    values = [kind(e=7, n=7, all=[0, 7]), kind(e=9, n=9, all=[8])]
    assert bare(table, [each.SerializeToString() for each in values], text) == [
        {"e": "SOME", "n": 7, "all": ["NONE", "SOME"]},
        {"e": "9", "n": 9, "all": ["8"]},
    ]


NESTED = """
name: "n.proto" package: "n" syntax: "proto3"
message_type {
  name: "N"
  field { name: "one" number: 1 type: TYPE_MESSAGE type_name: ".n.Part" label: LABEL_OPTIONAL }
  field { name: "many" number: 2 type: TYPE_MESSAGE type_name: ".n.Part" label: LABEL_REPEATED }
  field { name: "numbers" number: 3 type: TYPE_INT32 label: LABEL_REPEATED }
  field { name: "named" number: 4 type: TYPE_MESSAGE type_name: ".n.N.NamedEntry" label: LABEL_REPEATED }
  field { name: "text" number: 5 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "part" number: 6 type: TYPE_MESSAGE type_name: ".n.Part" label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "matrix" number: 7 type: TYPE_MESSAGE type_name: ".n.Line" label: LABEL_REPEATED }
  oneof_decl { name: "choice" }
  nested_type {
    name: "NamedEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".n.Part" label: LABEL_OPTIONAL }
  }
}
message_type {
  name: "Part"
  field { name: "x" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "again" number: 2 type: TYPE_MESSAGE type_name: ".n.N" label: LABEL_OPTIONAL }
}
message_type { name: "Line" field { name: "values" number: 1 type: TYPE_INT32 label: LABEL_REPEATED } }
"""


def test_what_is_in_messages() -> None:
    part = ColumnType("STRUCT", fields=(("X", ColumnType("BIGINT")),))
    table = relation(
        col("one", part),
        col("many", "ARRAY", component=part),
        col("numbers", "ARRAY", component=ColumnType("BIGINT")),
        col("named", "MAP", key=ColumnType("INTEGER", False), value=part),
        col("text", "VARCHAR"),
        col("part", part),
        col("matrix", "ARRAY", component=ColumnType("ARRAY", component=ColumnType("INTEGER"))),
    )
    kind = message_class("n.N", file(NESTED))
    whole = kind(one={"x": 1}, many=[{"x": 2}, {}], numbers=[3, 4], part={"x": 6}, matrix=[{"values": [1, 2]}, {}])
    whole.named[5].x = 50
    found = bare(table, [each.SerializeToString() for each in (whole, kind(text=""), kind())], NESTED)
    empty = {"one": None, "many": [], "numbers": [], "named": [], "text": None, "part": None, "matrix": []}
    assert found == [
        {
            "one": {"X": 1},
            "many": [{"X": 2}, {"X": 0}],
            "numbers": [3, 4],
            "named": [(5, {"X": 50})],
            "text": None,
            "part": {"X": 6},
            "matrix": [[1, 2], []],
        },
        {**empty, "text": ""},
        empty,
    ]
    # Only what is taken needs a counterpart: the type goes round in circles.
    endless = relation(col("one", "VARIANT"))
    with pytest.raises(FormatFailure, match=r"n\.N contains itself, and no column type does"):
        read([b""], endless, descriptor_set=in_options(NESTED), message="n.N", skip_schema_id=True)


WELL_KNOWN = """
name: "w.proto" package: "w" syntax: "proto3"
dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto"
dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/wrappers.proto"
dependency: "google/type/date.proto" dependency: "google/type/timeofday.proto"
dependency: "google/type/decimal.proto" dependency: "confluent/type/decimal.proto" dependency: "confluent/meta.proto"
message_type {
  name: "W"
  %s
}
"""
NAMES = {
    "at": "google.protobuf.Timestamp",
    "zoned": "google.protobuf.Timestamp",
    "took": "google.protobuf.Duration",
    "anything": "google.protobuf.Value",
    "json": "google.protobuf.Struct",
    "count": "google.protobuf.Int64Value",
    "day": "google.type.Date",
    "clock": "google.type.TimeOfDay",
    "price": "google.type.Decimal",
    "amount": "confluent.type.Decimal",
}
TEXT = WELL_KNOWN % " ".join(
    f'field {{ name: "{name}" number: {number} type: TYPE_MESSAGE type_name: ".{kind}" label: LABEL_OPTIONAL }}'
    for number, (name, kind) in enumerate(NAMES.items(), 1)
)
OF_W = {"descriptor_set": in_options(TEXT), "message": "w.W", "skip_schema_id": True}
WELL_KNOWN_TABLE = relation(
    col("at", "TIMESTAMP"),
    col("zoned", "TIMESTAMP_TZ"),
    col("took", "INTERVAL_SECOND"),
    col("anything", "VARCHAR"),
    col("json", "VARCHAR"),
    col("count", "INTEGER"),
    col("day", "DATE"),
    col("clock", "TIME"),
    col("price", "DECIMAL", precision=10, scale=2),
    col("amount", "DECIMAL", precision=38, scale=3),
)


def of_w(**values: Any) -> bytes:
    imported = [
        FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for module in (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2, date_pb2, timeofday_pb2, decimal_pb2)
    ]
    made: bytes = message_class("w.W", *imported, decimal_file(), file('name: "confluent/meta.proto"'), file(TEXT))(
        **values
    ).SerializeToString()
    return made


def test_well_known_types() -> None:
    value = of_w(
        at={"seconds": -62135596800, "nanos": 1999},
        zoned={"seconds": 1_700_000_000, "nanos": 123_456_789},
        took={"seconds": -1, "nanos": -500_000_999},
        anything={"list_value": {"values": [{"number_value": 1}, {"null_value": 0}]}},
        json={"a": "ä"},
        count={},
        day={"year": 2024, "month": 2, "day": 29},
        clock={"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999_999_999},
        price={"value": "-12.50"},
        amount={"value": (-1500).to_bytes(2, "big", signed=True), "precision": 4, "scale": 3},
    )
    [row, empty] = rows(read([value, b""], WELL_KNOWN_TABLE, **OF_W))
    assert (json.loads(row.pop("anything")), json.loads(row.pop("json"))) == ([1, None], {"a": "ä"})
    assert row == {
        "at": dt.datetime(1, 1, 1, 0, 0, 0, 1),
        "zoned": dt.datetime(2023, 11, 14, 22, 13, 20, 123456, dt.UTC),
        "took": -dt.timedelta(seconds=1, microseconds=500_000),
        "count": 0,
        "day": dt.date(2024, 2, 29),
        "clock": dt.time(23, 59, 59, 999999),
        "price": Decimal("-12.50"),
        "amount": Decimal("-1.500"),
    }
    assert set(empty.values()) == {None}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"at": {"seconds": -62135596801}}, "no google.protobuf.Timestamp"),
        ({"at": {"nanos": -1}}, "no google.protobuf.Timestamp"),
        ({"took": {"seconds": 1, "nanos": -1}}, "no google.protobuf.Duration"),
        ({"day": {"year": 2023, "month": 2, "day": 29}}, "are no date"),
        ({"day": {"year": 2023}}, "are no date"),
        ({"clock": {"hours": 24}}, "no time of day"),
        ({"price": {"value": "much"}}, "column 'price'"),
        ({"amount": {"value": b"\1", "scale": 100_000_000}}, "fits into no column"),
        ({"amount": {"value": b"\x7f" * 5000}}, "cannot be taken"),
        ({"count": {"value": 2**31}}, "column 'count'"),
        ({"anything": {"number_value": float("inf")}}, "cannot be written as JSON"),
    ],
)
def test_values_that_are_none(values: dict[str, Any], says: str) -> None:
    parsed = read([of_w(count={"value": 1}), of_w(**values), of_w(count={"value": 2})], WELL_KNOWN_TABLE, **OF_W)
    assert [row["count"] for row in rows(parsed)] == [1, 2]
    [error] = parsed.errors
    assert error.index == 1
    assert says in error.message


def test_what_older_types_say_of_absent_fields() -> None:
    text = """
    name: "o.proto" package: "o"
    message_type {
      name: "Old"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_REQUIRED }
      field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "kind" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL default_value: "plain" }
    }
    """
    table = relation(col("id", "BIGINT"), col("name", "VARCHAR"), col("kind", "VARCHAR"))
    kind = message_class("o.Old", file(text))
    lacking = kind(name="x").SerializePartialToString()
    parsed = read(
        [kind(id=1).SerializeToString(), lacking], table, descriptor_set=in_options(text), message="o.Old", skip_schema_id=True
    )
    assert rows(parsed) == [{"id": 1, "name": None, "kind": "plain"}]
    assert [error.message for error in parsed.errors] == ["the message is no o.Old: it lacks id"]


def test_fields_that_a_reader_does_not_know_are_passed_over_and_missing_columns_get_their_default() -> None:
    table = relation(col("id", "BIGINT"), col("name", "VARCHAR"), col("kind", "VARCHAR", default="'new'"))
    newer = person(1, "a") + b"\xa2\x06\x03abc"
    assert rows(read([newer], table, **OF_PEOPLE, skip_schema_id=True)) == [{"id": 1, "name": "a", "kind": "new"}]
    required = relation(col("id", "BIGINT"), col("name", "VARCHAR", null=False))
    parsed = read([person(1), person(2, "b")], required, **OF_PEOPLE, skip_schema_id=True)
    assert (rows(parsed), [error.index for error in parsed.errors]) == ([{"id": 2, "name": "b"}], [0])


def test_each_message_has_its_schema_and_its_type(schema_registry: SchemaRegistryServer) -> None:
    old = schema_registry.add("people-value", compiled(SHOP), schemaType="PROTOBUF")
    renamed = SHOP.replace('name: "name" number: 2', 'name: "NAME" number: 9').replace('"shop.proto"', '""')
    new = schema_registry.add("people-value", compiled(renamed), schemaType="PROTOBUF")
    later = message_class("shop.Person", file(renamed.replace('name: ""', 'name: "a"')))(id=2, NAME="b").SerializeToString()
    values = [
        headed(person(1, "a"), old),
        headed(later, new),
        headed(PERSON.Inner(id=3).SerializeToString(), old, b"\4\2\0"),
        headed(person(9), 77),
        headed(b"", old, b"\0"),
        headed(b"", old, b"\2\4"),
        headed(b"", old, b"\2\1"),
        headed(person(4, "d"), old),
    ]
    made = parser(registry_urls=[schema_registry.url + "/"])
    for _ in range(2):
        parsed = made.parse_messages(Messages(values, lambda number: None))
        assert rows(parsed) == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}, {"id": 4, "name": "d"}]
        assert [(error.index, error.message) for error in parsed.errors] == [
            (3, f"the schema registry at {schema_registry.url} has no schema with the number 77"),
            (4, f"schema {old} cannot be read: shop.Other has no field for any column of the table"),
            (5, f"schema {old} cannot be read: it has no type with the indexes [2]"),
            (6, f"schema {old} cannot be read: it has no type with the indexes [-1]"),
        ]
    assert schema_registry.requests == [("GET", f"/schemas/ids/{number}") for number in (old, new, 77)], "each once"


def test_types_that_import_others(schema_registry: SchemaRegistryServer) -> None:
    schema_registry.add("deep", compiled(NESTED), schemaType="PROTOBUF")
    middle = 'name: "m.proto" dependency: "n.proto" public_dependency: 0'
    deep = {"name": "n.proto", "subject": "deep", "version": 1}
    schema_registry.add("middle", compiled(middle), schemaType="PROTOBUF", references=[deep])
    outer = """
    name: "o.proto" package: "o" syntax: "proto3" dependency: "m.proto" dependency: "google/protobuf/timestamp.proto"
    message_type {
      name: "O" field { name: "part" number: 1 type: TYPE_MESSAGE type_name: ".n.Part" label: LABEL_OPTIONAL }
      field { name: "at" number: 2 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
    }
    """
    references = [
        {"name": "m.proto", "subject": "middle", "version": 1},
        {"name": "google/protobuf/timestamp.proto", "subject": "never asked", "version": 1},
    ]
    number = schema_registry.add("outer", compiled(outer), schemaType="PROTOBUF", references=references)
    table = relation(col("part", "STRUCT", fields=(("x", ColumnType("BIGINT")),)), col("at", "TIMESTAMP"))
    value = headed(b"\x0a\x02\x08\x05", number, b"\0")
    assert rows(read([value], table, registry_urls=[schema_registry.url])) == [{"part": {"x": 5}, "at": None}]
    missing = schema_registry.add(
        "lost", compiled(outer), schemaType="PROTOBUF", references=[{**references[0], "version": "9"}][:0]
    )
    [error] = read([headed(b"", missing, b"\0")], table, registry_urls=[schema_registry.url]).errors
    assert error.message == (
        f"schema {missing} cannot be read: 'o.proto' imports 'm.proto', which is missing; protoc adds it with --include_imports"
    )


def test_schemas_of_another_kind_are_poison_and_source_text_ends_the_input(schema_registry: SchemaRegistryServer) -> None:
    number = schema_registry.add("j", '{"type": "object"}', schemaType="JSON")
    parsed = read([headed(b"", number)] * 3, TABLE, registry_urls=[schema_registry.url])
    assert [error.message for error in parsed.errors] == [f"schema {number} is one of JSON, and not of Protobuf"] * 3
    assert len(schema_registry.requests) == 1
    text = schema_registry.add("t", 'syntax = "proto3"; message M { int64 id = 1; }', schemaType="PROTOBUF")
    with pytest.raises(FormatFailure, match=rf"gives schema {text} as source text.*give the file as 'descriptor_file'") as refused:
        read([headed(b"", text)], TABLE, registry_urls=[schema_registry.url])
    assert not isinstance(refused.value, TransientFormatFailure)
    schema_registry.status = 503
    with pytest.raises(TransientFormatFailure, match="answered 503"):
        read([headed(b"", text)], TABLE, registry_urls=[schema_registry.url])


def test_changes_of_debezium() -> None:
    envelope = (
        SHOP.replace('"shop.proto"', '"e.proto"')
        + """
    message_type {
      name: "Envelope"
      field { name: "before" number: 1 type: TYPE_MESSAGE type_name: ".shop.Person" label: LABEL_OPTIONAL }
      field { name: "after" number: 2 type: TYPE_MESSAGE type_name: ".shop.Person" label: LABEL_OPTIONAL }
      field { name: "op" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
    }
    """
    )
    kind = message_class("shop.Envelope", file(envelope))

    def change(operation: str, before: Any, after: Any) -> bytes:
        made: bytes = kind(op=operation, before=before, after=after).SerializeToString()
        return made

    one, two = {"id": 1, "name": "a"}, {"id": 1}
    values = [
        change("r", None, one),
        change("u", one, two),
        None,
        change("d", two, None),
        change("x", one, one),
        change("d", None, None),
    ]
    options = {"message": "shop.Envelope", "skip_schema_id": True, "update_format": "debezium"}
    parsed = read(values, TABLE, descriptor_set=in_options(envelope), **options)
    assert parsed.changes is not None
    assert [Op(each) for each in parsed.changes.rows.column(OP).to_pylist()] == [Op.INSERT, Op.DELETE, Op.INSERT, Op.DELETE]
    assert [row["name"] for row in rows(parsed)] == ["a", "a", None, None]
    assert [error.message for error in parsed.errors] == [
        "'x' is no operation of Debezium; wanted 'c', 'u', 'd', 'r' or 't'",
        "the row that goes ('before') is missing",
    ]
    unsent = {"id": 1, "name": "__debezium_unavailable_value"}
    keyed = RelationSchema("t", TABLE.columns, ("id",))
    values = [change("u", None, unsent), change("u", one, unsent), change("c", None, unsent)]
    parsed = read(values, keyed, descriptor_set=in_options(envelope), **options)
    assert parsed.changes is not None
    assert [Op(each) for each in parsed.changes.rows.column(OP).to_pylist()] == [Op.UPDATE, Op.DELETE, Op.INSERT]
    assert [row["name"] for row in rows(parsed)] == [None, "a", "a"]
    assert "column 'name': its value is large and was not changed" in parsed.errors[0].message
    parsed = read([change("t", None, None)], keyed, descriptor_set=in_options(envelope), **options)
    assert parsed.changes is not None
    assert parsed.changes.truncates
    with pytest.raises(FormatFailure, match=r"shop\.Person is none of Debezium's changes"):
        read(values, TABLE, **{**OF_PEOPLE, "update_format": "debezium"})


def test_a_list_of_numbers_that_debezium_did_not_send() -> None:
    envelope = """
    name: "e.proto" package: "shop" syntax: "proto2"
    message_type {
      name: "Row"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
      field { name: "marks" number: 2 type: TYPE_INT32 label: LABEL_REPEATED }
    }
    message_type {
      name: "Envelope"
      field { name: "before" number: 1 type: TYPE_MESSAGE type_name: ".shop.Row" label: LABEL_OPTIONAL }
      field { name: "after" number: 2 type: TYPE_MESSAGE type_name: ".shop.Row" label: LABEL_OPTIONAL }
      field { name: "op" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
    }
    """
    unsent = {"id": 1, "marks": list(b"__debezium_unavailable_value")}
    message = message_class("shop.Envelope", file(envelope))(op="u", after=unsent).SerializeToString()
    columns = (TABLE.columns[0], col("marks", "ARRAY", component=ColumnType("INTEGER")))
    options = {"message": "shop.Envelope", "skip_schema_id": True, "update_format": "debezium"}
    parsed = read([message], RelationSchema("t", columns, ("id",)), descriptor_set=in_options(envelope), **options)
    assert parsed.changes is not None
    assert [Op(each) for each in parsed.changes.rows.column(OP).to_pylist()] == [Op.UPDATE]


def test_files_have_no_such_format() -> None:
    made: Any = parser(**OF_PEOPLE)
    with pytest.raises(InvalidOptionError, match="is for the messages of a queue"):
        made.parse(person(1))
