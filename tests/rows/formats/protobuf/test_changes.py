"""Changes of a view as messages in Protobuf: types that are made and registered, keys, shapes, and what fits into none."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.formats.messages import Messages, ParsedMessages, WrittenMessage
from airflow_pipelines.rows.formats.protobuf.definition import PROTOBUF
from airflow_pipelines.rows.formats.protobuf.messages import protobuf_messages
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.formats.protobuf.schemas import row_file
from airflow_pipelines.rows.formats.protobuf.types import pool_of
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.relations import NESTED, SCALARS, col, relation
from tests.fixtures.schema_registry import SchemaRegistryServer
from tests.rows.formats.protobuf.types import SHOP, file, in_options, message_class

pytestmark = pytest.mark.core

VIEW = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="people")
KEY = ("id",)


def changes(*rows: tuple[int, str | None, int], key: tuple[str, ...] = KEY) -> ChangesInMemory:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, kind) for values, kind in zip(columns, (pa.int64(), pa.string(), pa.int64()), strict=True)]
    return ChangesInMemory(pa.table(arrays, names=["id", "name", WEIGHT]), key)


def opened(view: RelationSchema = VIEW, key: tuple[str, ...] = KEY, topic: str = "t", **options: Any) -> Any:
    assert PROTOBUF.new_message_encoder is not None
    made = PROTOBUF.new_message_encoder(view, ProtobufOptions.model_validate(options), key)
    made.open(topic)
    return made


def written(encoder: Any, delivered: ChangesInMemory) -> list[WrittenMessage]:
    return [message for table in delivered.tables() for message in encoder.messages(table)]


def decoded(data: bytes | None, kind: Any) -> Any:
    if data is None:
        return None
    assert (data[0], data[5]) == (0, 0)
    message = kind.FromString(data[6:])
    return {
        field.name: getattr(message, field.name) if not field.has_presence or message.HasField(field.name) else None
        for field in kind.DESCRIPTOR.fields
    }


def registered(registry: SchemaRegistryServer, number: int, name: str) -> Any:
    schema = registry.schemas[number - 1]
    assert schema["schemaType"] == "PROTOBUF"
    return GetMessageClass(
        pool_of([FileDescriptorProto.FromString(base64.b64decode(schema["schema"]))]).FindMessageTypeByName(name)
    )


def read_back(view: RelationSchema, messages: Sequence[WrittenMessage], registry: SchemaRegistryServer) -> ParsedMessages:
    options = ProtobufOptions.model_validate({"registry_urls": [registry.url]})
    values = Messages([message.value for message in messages], lambda number: None)
    return protobuf_messages(view, options, wall_clock).parse_messages(values)


def test_rows_and_what_became_of_them(schema_registry: SchemaRegistryServer) -> None:
    encoder = opened(registry_urls=[schema_registry.url])
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, None, 1)))
    assert schema_registry.subjects == {"people": [1], "people_key": [2]}
    value, key = registered(schema_registry, 1, "people"), registered(schema_registry, 2, "people_key")
    assert [(field.name, field.number, field.type, field.has_presence) for field in value.DESCRIPTOR.fields] == [
        ("id", 1, FieldDescriptor.TYPE_INT64, False),
        ("name", 2, FieldDescriptor.TYPE_STRING, True),
    ]
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
    encoder = opened(registry_urls=[schema_registry.url], update_format="confluent_jdbc", topic="a/b", package="shop.x")
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1)))
    assert list(schema_registry.subjects) == ["a/b-value", "a/b-key"]
    value = registered(schema_registry, 1, "shop.x.people")
    assert [decoded(message.value, value) for message in messages] == [None, {"id": 2, "name": "c"}]
    assert not any(message.headers for message in messages)


@pytest.mark.parametrize(
    ("strategy", "subjects"),
    [
        ("topic_name", ["t-value", "t-key"]),
        ("record_name", ["n.people", "n.people_key"]),
        ("topic_record_name", ["t-n.people", "t-n.people_key"]),
    ],
)
def test_subjects(schema_registry: SchemaRegistryServer, strategy: str, subjects: list[str]) -> None:
    opened(registry_urls=[schema_registry.url], subject_name_strategy=strategy, package="n")
    assert list(schema_registry.subjects) == subjects


@pytest.mark.parametrize(("key", "options"), [((), {}), (KEY, {"key_mode": "none"})])
def test_messages_without_keys_and_numbers(key: tuple[str, ...], options: dict[str, Any]) -> None:
    messages = written(opened(key=key, skip_schema_id=True, **options), changes((1, "a", -1), (1, "b", 1), key=key))
    assert [message.key for message in messages] == [None] * len(messages)
    assert [message.value for message in messages] == [b"\x08\x01\x12\x01a", b"\x08\x01\x12\x01b"][-len(messages) :]
    assert len(messages) == 2 - len(key)
    [bare] = written(opened(key=()), changes((1, None, 1), key=()))
    assert bare.value == b"\0\0\0\0\0\0\x08\x01", "without a registry the number is 0"


def test_the_operation_as_a_field(schema_registry: SchemaRegistryServer) -> None:
    encoder = opened(cdc_field="kind", registry_urls=[schema_registry.url])
    messages = written(encoder, changes((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, "d", 1)))
    value = registered(schema_registry, 1, "people")
    assert [decoded(message.value, value)["kind"] for message in messages] == ["D", "U", "I"]
    with pytest.raises(FormatFailure, match="give its columns other names"):
        opened(cdc_field="name")


OWN = SHOP.replace("TYPE_INT64", "TYPE_UINT32").replace('name: "name" number: 2', 'name: "NAME" number: 2')


def test_a_type_of_ones_own(schema_registry: SchemaRegistryServer) -> None:
    own = {"descriptor_set": in_options(OWN), "message": "shop.Person"}
    encoder = opened(**own, registry_urls=[schema_registry.url], key=())
    [message] = written(encoder, changes((1, "a", 1), key=()))
    assert list(schema_registry.subjects) == ["shop.Person"]
    assert (message.value or b"")[:7] == b"\0\0\0\0\1\2\2", "the second type of its file"
    assert message_class("shop.Person", file(OWN)).FromString((message.value or b"")[7:]).NAME == "a"
    with pytest.raises(FormatFailure, match=r"does not fit into shop\.Person .* column 'id': Value out of range: -1"):
        written(encoder, changes((-1, "a", 1), key=()))
    nested = {**own, "message": "shop.Person.Inner", "skip_schema_id": False}
    encoder = opened(relation(col("id", "INTEGER"), name="v"), key=(), **nested)
    [message] = written(encoder, ChangesInMemory(pa.table({"id": [5], WEIGHT: [1]})))
    assert message.value == b"\0\0\0\0\0\4\2\0\x08\x05"


def test_types_that_are_imported_are_registered_first(schema_registry: SchemaRegistryServer) -> None:
    outer = """
    name: "o.proto" package: "o" syntax: "proto3" dependency: "shop.proto" dependency: "google/protobuf/timestamp.proto"
    message_type { name: "O" field { name: "who" number: 1 type: TYPE_MESSAGE type_name: ".shop.Person" label: LABEL_OPTIONAL } }
    """
    view = relation(col("who", "STRUCT", fields=(("id", ColumnType("BIGINT")), ("name", ColumnType("VARCHAR")))))
    encoder = opened(view, (), descriptor_set=in_options(SHOP, outer), message="o.O", registry_urls=[schema_registry.url])
    assert schema_registry.subjects == {"shop.proto": [1], "o.O": [2]}
    assert schema_registry.schemas[1]["references"] == [{"name": "shop.proto", "subject": "shop.proto", "version": 1}]
    who = [{"id": 1, "name": None}, None]
    kind = pa.struct([("id", pa.int64()), ("name", pa.string())])
    messages = written(encoder, ChangesInMemory(pa.table({"who": pa.array(who, kind), WEIGHT: [1, 1]})))
    parsed = read_back(view, messages, schema_registry)
    assert parsed.changes is not None
    assert sorted(parsed.changes.rows.column("who").to_pylist(), key=str) == sorted(who, key=str)


def test_enums_and_single_values_of_ones_own() -> None:
    text = """
    name: "e.proto" package: "e" dependency: "google/protobuf/wrappers.proto" dependency: "google/protobuf/struct.proto"
    dependency: "google/type/decimal.proto"
    enum_type { name: "E" value { name: "NONE" number: 0 } value { name: "SOME" number: 7 } }
    message_type {
      name: "M"
      field { name: "e" number: 1 type: TYPE_ENUM type_name: ".e.E" label: LABEL_REQUIRED }
      field { name: "n" number: 2 type: TYPE_ENUM type_name: ".e.E" label: LABEL_OPTIONAL }
      field { name: "w" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" label: LABEL_OPTIONAL }
      field { name: "d" number: 4 type: TYPE_MESSAGE type_name: ".google.type.Decimal" label: LABEL_OPTIONAL }
      field { name: "j" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.Value" label: LABEL_OPTIONAL }
    }
    """
    view = relation(
        col("e", "VARCHAR"), col("n", "INTEGER"), col("w", "BIGINT"), col("d", "DECIMAL", precision=9, scale=2), col("j", "VARCHAR")
    )
    options: dict[str, Any] = {"descriptor_set": in_options(text), "message": "e.M", "skip_schema_id": True}
    encoder = opened(view, (), **options)

    def delivered(**values: Any) -> ChangesInMemory:
        row = {"e": "SOME", "n": 7, "w": 0, "d": Decimal("-1.50"), "j": '{"a":[1.5,null]}', **values}
        kinds = (pa.string(), pa.int32(), pa.int64(), pa.decimal128(9, 2), pa.string())
        arrays = [pa.array([row[name]], kind) for name, kind in zip("enwdj", kinds, strict=True)]
        return ChangesInMemory(pa.table([*arrays, pa.array([1])], names=[*"enwdj", WEIGHT]))

    messages = written(encoder, delivered())
    parsed = protobuf_messages(view, ProtobufOptions.model_validate(options), wall_clock).parse_messages(
        Messages([messages[0].value], lambda number: None)
    )
    assert parsed.changes is not None
    assert parsed.changes.rows.drop_columns([OP]).to_pylist() == [
        {"e": "SOME", "n": 7, "w": 0, "d": Decimal("-1.50"), "j": '{"a":[1.5,null]}'}
    ]
    for bad, says in (
        ({"e": "OTHER"}, "'OTHER' is no value of e.E"),
        ({"n": 8}, "column 'n'"),
        ({"j": "{"}, "column 'j': it is no JSON"),
    ):
        with pytest.raises(FormatFailure, match=says):
            written(encoder, delivered(**bad))
    with pytest.raises(FormatFailure, match=r"does not fit into the type.*required"):
        written(encoder, delivered(e=None))


@pytest.mark.parametrize(
    ("view", "options", "says"),
    [
        (relation(col("a b", "INTEGER", quoted=True)), {}, "column 'a b' has a name that Protobuf cannot have"),
        (
            relation(col("m", "MAP", key=ColumnType("DATE", False), value=ColumnType("INTEGER"))),
            {},
            "column 'm' is a map whose keys are DATE",
        ),
        (
            relation(col("id", "VARCHAR"), col("NAME", "VARCHAR")),
            {},
            r"column 'id' has the type STRING, which field 'id' of shop.P",
        ),
        (relation(col("id", "BIGINT"), col("x", "VARCHAR")), {}, r"shop\.Person has no field for column 'x'"),
        (relation(col("id", "ARRAY", component=ColumnType("BIGINT"))), {}, "has the type ARRAY<BIGINT>, which field 'id'"),
    ],
)
def test_views_that_do_not_fit(view: RelationSchema, options: dict[str, Any], says: str) -> None:
    is_own = "shop" in says or "field" in says
    own = {"descriptor_set": in_options(OWN), "message": "shop.Person"} if is_own else {}
    with pytest.raises(FormatFailure, match=says):
        opened(view, (), **{**own, **options})


def test_a_null_in_an_array_is_not_lost_in_silence() -> None:
    view = relation(col("a", "ARRAY", component=ColumnType("INTEGER")))
    rows = pa.table({"a": pa.array([[1, None]], pa.list_(pa.int32())), WEIGHT: [1]})
    with pytest.raises(FormatFailure, match="column 'a' holds a NULL, which no array and no map of Protobuf has"):
        written(opened(view, ()), ChangesInMemory(rows))


def test_a_registry_that_is_away_or_refuses(schema_registry: SchemaRegistryServer) -> None:
    schema_registry.status = 500
    with pytest.raises(TransientFormatFailure, match="answered 500"):
        opened(registry_urls=[schema_registry.url])
    schema_registry.status = 409
    with pytest.raises(FormatFailure, match=r"answered 409.*Change the view, or the subject's compatibility") as refused:
        opened(registry_urls=[schema_registry.url])
    assert not isinstance(refused.value, TransientFormatFailure)


ALL = relation(
    *(column for column in SCALARS.columns if column.name != "s3"),
    *(column for column in NESTED.columns if column.name in ("bin", "st", "v")),
    col("ub", "UBIGINT"),
    col("ui", "UINTEGER"),
    col("took", "INTERVAL_DAY_SECOND"),
    col("numbers", "ARRAY", component=ColumnType("INTEGER", False)),
    col("matrix", "ARRAY", component=ColumnType("ARRAY", component=ColumnType("TIMESTAMP"))),
    col("texts", "MAP", key=ColumnType("VARCHAR", False), value=ColumnType("DECIMAL", precision=5, scale=2)),
    col("lists", "MAP", key=ColumnType("BIGINT", False), value=ColumnType("ARRAY", component=ColumnType("VARCHAR"))),
    col("people", "ARRAY", component=ColumnType("STRUCT", fields=(("name", ColumnType("VARCHAR")), ("day", ColumnType("DATE"))))),
    name="all",
)
WHOLE = (
    '{"b": true, "i8": -128, "i16": 1, "i32": -5, "i64": 9007199254740993, "r": 1.5, "f": -0.1, "dec": -123456789.125, "s": "ä",'
    '"d": "1969-12-31", "t": "23:59:59.999999", "ts": "0001-01-01 00:00:00.000001", "tz": "9999-12-31T23:59:59.999999Z",'
    '"u": "0199c0de-0000-7000-8000-000000000000", "bin": [0, 255], "st": {"x": "2024-02-29", "y": ["a"]},'
    '"v": {"a": [1, "x", null]}, "ub": 18446744073709551615, "ui": 4294967295, "numbers": [1, 0, -1],'
    '"matrix": [["2024-01-01 00:00:00"], []], "texts": {"k": 1.25, "": 0}, "lists": {"-1": ["x", ""], "2": []},'
    '"people": [{"name": null, "day": "2024-02-29"}, {"name": ""}]}\n{"i64": 0}'
)


def test_all_types_come_back_as_they_were(schema_registry: SchemaRegistryServer) -> None:
    parsed = JsonParser(ALL, JsonOptions(update_format="raw")).parse(WHOLE.encode())
    assert parsed.changes is not None, parsed.errors
    rows = parsed.changes.rows.drop_columns([OP])
    delivered = ChangesInMemory(rows.drop_columns(["took"]).append_column(WEIGHT, pa.array([1, 1])))
    view = relation(*(column for column in ALL.columns if column.name != "took"), name="all")
    messages = written(opened(view, (), registry_urls=[schema_registry.url]), delivered)
    read = read_back(view, messages, schema_registry)
    assert read.changes is not None, read.errors
    assert read.num_errors == 0
    collections = {"numbers", "matrix", "texts", "lists", "people"}
    # A VARIANT goes as JSON text, and comes back as a text; an array or a map that is NULL comes back without members.
    kept = [name for name in rows.column_names if name not in ("v", "took")]
    expected = [
        {name: [] if value is None and name in collections else value for name, value in row.items()}
        for row in rows.select(kept).to_pylist()
    ]
    back = read.changes.rows.select(kept).to_pylist()
    for row in (*expected, *back):
        row["lists"].sort()
        row["texts"].sort()
    assert sorted(back, key=lambda row: row["i64"]) == sorted(expected, key=lambda row: row["i64"])
    kind = registered(schema_registry, 1, "all")
    [whole] = [each for each in (kind.FromString((message.value or b"")[6:]) for message in messages) if each.i64]
    assert json.loads(whole.v) == {"a": [1, "x", None]}
    assert (whole.dec.value, whole.dec.precision, whole.dec.scale) == ((-123456789125).to_bytes(5, "big", signed=True), 12, 3)
    assert (whole.ts.seconds, whole.ts.nanos) == (-62135596800, 1000)


MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
DECIMALS = st.integers(1 - 10**38, 10**38 - 1).map(lambda number: Decimal(f"{number}e-9"))
MANY = relation(
    col("id", "BIGINT", null=False),
    col("b", "BOOLEAN"),
    col("f", "DOUBLE"),
    col("s", "VARCHAR"),
    col("y", "VARBINARY"),
    col("at", "TIMESTAMP"),
    col("day", "DATE"),
    col("clock", "TIME"),
    col("amount", "DECIMAL", precision=38, scale=9),
    col("all", "ARRAY", component=ColumnType("BIGINT")),
    name="many",
)
ROW = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.booleans(),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "s": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "y": st.none() | st.binary(),
        "at": st.none() | MOMENTS,
        "day": st.none() | st.dates(),
        "clock": st.none() | st.times(),
        "amount": st.none() | DECIMALS,
        "all": st.lists(st.integers(-(2**63), 2**63 - 1)),
    }
)
MADE = FileDescriptorSet(file=[row_file([(column.name, column.type) for column in MANY.columns], "many", None)])
OF_MANY = {"descriptor_set": base64.b64encode(MADE.SerializeToString()).decode(), "message": "many", "skip_schema_id": True}


@pytest.mark.rest
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROW, min_size=1, max_size=4), cut=st.none() | st.integers(0, 40))
def test_any_row_comes_back_and_a_cut_message_costs_no_other(rows: list[dict[str, Any]], cut: int | None) -> None:
    table = pa.Table.from_pylist(rows, MANY.arrow.remove_metadata())
    encoder = opened(MANY, (), skip_schema_id=True)
    values = [message.value for message in encoder.messages(table.append_column(WEIGHT, pa.array([1] * len(rows))))]
    if cut is not None:
        # It may be a message all the same; if it is, it is its own.
        values.insert(len(values) // 2, (values[0] or b"")[:cut])
    reader = protobuf_messages(MANY, ProtobufOptions.model_validate(OF_MANY), wall_clock)
    parsed = reader.parse_messages(Messages(values, lambda number: None))
    found = [] if parsed.changes is None else parsed.changes.rows.drop_columns([OP]).to_pylist()
    assert len(found) + parsed.num_errors == len(values)
    if cut is not None and len(found) > len(rows):
        del found[len(rows) // 2]
    assert found == table.to_pylist()
