"""Rows as Avro records, and messages and schemas that are none."""

import datetime as dt
import io
import json
import pickle
import sys
from decimal import Decimal

import fastavro
import pytest

from airflow_pipelines.datastream.common import (
    AvroNotAvailableError,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    Row,
    SerializationError,
    Types,
)

ID = "0b9b2c4e-5a0f-4c0e-9d55-0c4d9c1f7a11"
NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123_000)
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}


def schema(**fields):
    return json.dumps({"type": "record", "name": "Made", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]})


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def written(text, value):
    return AvroRowSerializationSchema(avro_schema_string=text).serialize(value)


def read(text, message):
    return AvroRowDeserializationSchema(avro_schema_string=text).deserialize(message)


VALUES = [
    ("boolean", Types.BOOLEAN(), True),
    ("int", Types.INT(), -5),
    ("long", Types.LONG(), 2**62),
    ("float", Types.FLOAT(), 1.5),
    ("double", Types.DOUBLE(), 0.1),
    ("bytes", Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\xff\0"),
    ("string", Types.STRING(), "äß"),
    ({"type": "string"}, Types.STRING(), ""),
    ({"type": "fixed", "name": "Two", "size": 2}, Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab"),
    ({"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, Types.STRING(), "B"),
    (logical("int", "date"), Types.SQL_DATE(), NOON.date()),
    (logical("int", "time-millis"), Types.SQL_TIME(), NOON.time()),
    (logical("long", "timestamp-millis"), Types.SQL_TIMESTAMP(), NOON),
    (logical("long", "timestamp-micros"), Types.SQL_TIMESTAMP(), NOON.replace(microsecond=7)),
    (logical("long", "local-timestamp-micros"), Types.SQL_TIMESTAMP(), NOON),
    (logical("bytes", "decimal", precision=6, scale=2), Types.BIG_DEC(), Decimal("-12.50")),
    (logical("string", "uuid"), Types.STRING(), ID),
    (["null", "int"], Types.INT(), None),
    (["null", logical("long", "timestamp-millis")], Types.SQL_TIMESTAMP(), NOON),
    (["int", "string", "null"], Types.PICKLED_BYTE_ARRAY(), "either"),
    ({"type": "array", "items": ["null", "int"]}, Types.OBJECT_ARRAY(Types.INT()), [1, None]),
    ({"type": "map", "values": INNER}, Types.MAP(Types.STRING(), Types.ROW_NAMED(["x"], [Types.INT()])), {"k": Row(x=1)}),
    ({"type": "array", "items": INNER}, Types.OBJECT_ARRAY(Types.ROW_NAMED(["x"], [Types.INT()])), [Row(x=1), Row(x=2)]),
]


@pytest.mark.parametrize(("kind", "type_info", "value"), VALUES)
def test_what_is_written_is_read(kind, type_info, value):
    text = schema(a=kind)
    assert AvroRowDeserializationSchema(avro_schema_string=text).get_produced_type() == Types.ROW_NAMED(["a"], [type_info])
    assert read(text, written(text, (value,))) == Row(a=value)


def test_a_time_means_utc_wherever_the_program_runs(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    text = schema(at=logical("long", "timestamp-millis"))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(text), {"at": NOON.replace(tzinfo=dt.UTC)})
    assert written(text, (NOON,)) == out.getvalue()


def test_rows_may_be_given_by_name_and_a_type_by_its_name():
    text = schema(first=INNER, second=["null", "Inner"])
    expected = Row(first=Row(x=1), second=None)
    for element in ({"first": {"x": 1}}, Row(second=None, first=Row(x=1)), ((1,), None)):
        assert read(text, written(text, element)) == expected


def test_a_schema_travels():
    writes = pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=schema(a="int"))))
    reads = pickle.loads(pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=schema(a="int"))))
    assert reads.deserialize(writes.serialize((3,))) == Row(a=3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda message: b"", "cannot be read: EOFError"),
        (lambda message: message[:-1], "cannot be read"),
        (lambda message: message + b"x", "1 bytes are left: it was written with another schema"),
        (lambda message: b"\0\0\0\0\1" + message, "schema registry have five more bytes"),
    ],
)
def test_a_message_that_is_no_record_of_the_schema_is_refused(change, says):
    text = schema(a="int", b="string")
    with pytest.raises(SerializationError, match=says):
        read(text, change(written(text, (300, "text"))))


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("int", "5", "field 'a': Types.INT"),
        ("int", None, "cannot be written as Avro"),
        ({"type": "enum", "name": "Kind", "symbols": ["A"]}, "B", "'B' is not in list"),
        (logical("bytes", "decimal", precision=4, scale=1), Decimal("1.25"), "Scale provided in schema does not match"),
    ],
)
def test_a_row_that_does_not_fit_the_schema_is_refused(kind, value, says):
    with pytest.raises(SerializationError, match=says):
        written(schema(a=kind), (value,))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ('"string"', "must be that of a record"),
        ('{"type": "record"}', '"name" is a required field'),
        (schema(a="what"), "what"),
        (schema(a=["null", "Made"]), "the record Made contains itself"),
    ],
)
@pytest.mark.parametrize("kind", [AvroRowSerializationSchema, AvroRowDeserializationSchema])
def test_a_schema_that_is_none_is_refused(kind, text, says):
    with pytest.raises(ValueError, match=says):
        kind(avro_schema_string=text)


@pytest.mark.parametrize("kind", [AvroRowSerializationSchema, AvroRowDeserializationSchema])
def test_what_is_missing_is_said(kind, monkeypatch):
    with pytest.raises(ValueError, match=r"needs avro_schema_string, .* record_class='a.Record' is a class of the JVM"):
        kind("a.Record")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(AvroNotAvailableError, match=r"pip install 'airflow-pipelines\[avro\]'"):
        kind(avro_schema_string=schema(a="int"))
