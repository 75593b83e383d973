from __future__ import annotations

import json
import pickle
from datetime import date, datetime, time
from decimal import Decimal

import pytest

from airflow_pipelines.datastream.common.csv_row import CsvRowDeserializationSchema, CsvRowSerializationSchema
from airflow_pipelines.datastream.common.json_row import JsonRowDeserializationSchema, JsonRowSerializationSchema
from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.serialization import Encoder, SerializationError, SimpleStringSchema
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types

FLAT = {
    "s": (Types.STRING(), 'a,"b"\n;', None),
    "t": (Types.BOOLEAN(), True, False),
    "i": (Types.INT(), -5, 0),
    "l": (Types.BIG_INT(), 2**70, None),
    "d": (Types.DOUBLE(), 1e20, 0.1),
    "b": (Types.BIG_DEC(), Decimal("1.20"), Decimal("1E+3")),
    "day": (Types.SQL_DATE(), date(2021, 2, 3), None),
    "time": (Types.SQL_TIME(), time(4, 5, 6), time(4, 5, 6, 70)),
    "at": (Types.SQL_TIMESTAMP(), datetime(2021, 2, 3, 4, 5, 6), None),
    "instant": (Types.INSTANT(), Instant(1, 5_000_000), None),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x00\xff", None),
    "list": (Types.LIST(Types.INT()), [1, None, 3], None),
}
FLAT_TYPE = Types.ROW_NAMED(FLAT, [each[0] for each in FLAT.values()])
NESTED_TYPE = Types.ROW_NAMED(
    ["rows", "map"],
    [Types.OBJECT_ARRAY(Types.ROW_NAMED(["x"], [Types.LONG()])), Types.MAP(Types.INT(), Types.LIST(Types.STRING()))],
)
NESTED = Row(rows=[Row(x=1), None], map={1: ["é", None], 2: None})
PAIR = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()])


def _flat(position: int) -> Row:
    return Row(**{name: each[position] for name, each in FLAT.items()})


@pytest.mark.parametrize("row", [_flat(1), _flat(2)])
def test_rows_come_back_from_json_and_csv(row: Row) -> None:
    as_json = pickle.loads(pickle.dumps(JsonRowSerializationSchema.builder().with_type_info(FLAT_TYPE).build()))
    from_json = pickle.loads(pickle.dumps(JsonRowDeserializationSchema.builder().type_info(FLAT_TYPE).build()))
    assert from_json.deserialize(as_json.serialize(row)) == row
    as_csv = pickle.loads(pickle.dumps(CsvRowSerializationSchema.Builder(FLAT_TYPE).set_null_literal("-").build()))
    from_csv = pickle.loads(pickle.dumps(CsvRowDeserializationSchema.Builder(FLAT_TYPE).set_null_literal("-").build()))
    assert from_csv.deserialize(as_csv.serialize(row)) == row
    assert from_csv.get_produced_type() == from_json.get_produced_type() == FLAT_TYPE


def test_json_text() -> None:
    schema = JsonRowSerializationSchema.builder().with_type_info(FLAT_TYPE).build()
    assert json.loads(schema.serialize(_flat(1))) == {
        "s": 'a,"b"\n;', "t": True, "i": -5, "l": 2**70, "d": 1e20, "b": 1.2, "day": "2021-02-03", "time": "04:05:06Z",
        "at": "2021-02-03T04:05:06Z", "instant": "1970-01-01T00:00:01.005Z", "bytes": "AP8=", "list": [1, None, 3],
    }  # fmt: skip
    assert b'"b":1.20,' in schema.serialize(_flat(1))  # not rounded to a float


def test_nested_json() -> None:
    writer = JsonRowSerializationSchema.builder().with_type_info(NESTED_TYPE).build()
    assert writer.serialize(NESTED).decode() == '{"rows":[{"x":1},null],"map":{"1":["é",null],"2":null}}'
    assert JsonRowDeserializationSchema.builder().type_info(NESTED_TYPE).build().deserialize(writer.serialize(NESTED)) == NESTED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "x", "b": "7", "c": 1}', Row(a="x", b=7)),
        ('{"a": 1.50, "b": 7.0}', Row(a="1.5", b=7)),
        ('{"a": {"k": [true]}}', Row(a='{"k": [true]}', b=None)),
    ],
)
def test_json_is_read_leniently(text: str, expected: Row) -> None:
    assert JsonRowDeserializationSchema.builder().type_info(PAIR).build().deserialize(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ', "cannot be read: Expecting value"),
        ("5", "JSON needs an object there"),
        ('{"b": 1.5}', r"field 'b': '1.5' is no int, which Types.INT\(\) needs"),
        ('{"b": 2147483648}', "field 'b': 2147483648 is out of the range"),
        ('{"b": [1]}', "field 'b': .*JSON has an object or a list there"),
    ],
)
def test_json_that_does_not_fit(text: str, message: str) -> None:
    builder = JsonRowDeserializationSchema.builder().type_info(PAIR)
    with pytest.raises(SerializationError, match=message):
        builder.build().deserialize(text.encode())
    assert builder.ignore_parse_errors().build().deserialize(text.encode()) is None


WHOLE = {Types.BYTE(): 8, Types.SHORT(): 16, Types.INT(): 32, Types.LONG(): 64, Types.BIG_INT(): 64}


@pytest.mark.parametrize(
    ("type_", "literals"),
    [
        *(
            (type_, [str(number) for end in (1 << bits - 1,) for number in (0, end - 1, end, -end, -end - 1)])
            for type_, bits in WHOLE.items()
        ),
        (Types.DOUBLE(), ["0", "-0.0", "1.1", "0.100000000000000005551115123125782702118158340454101", "1e400", "-1E-400", "3"]),
        (Types.FLOAT(), ["1.1", "16777217", "-0.0"]),
        (Types.BIG_DEC(), ["1.20", "1E+3", "7"]),
        (Types.BOOLEAN(), ["true", "false", "1"]),
        (Types.LONG(), ["true"]),
    ],
)
def test_a_value_in_its_form_of_json_is_what_its_text_says(type_: TypeInformation, literals: list[str]) -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["v"], [type_])).ignore_parse_errors().build()
    for literal in literals:
        found, of_text = (schema.deserialize(f'{{"v": {text}}}'.encode()) for text in (literal, f'"{literal}"'))
        assert repr(found) == repr(of_text), literal


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_json_in_any_of_its_encodings(encoding: str) -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(PAIR).build()
    for text in ('{"a": "é☃", "b": 1}', ' {"a": "é☃", "b": 1}'):
        assert schema.deserialize(text.encode(encoding)) == Row(a="é☃", b=1)
    assert schema.deserialize("{}".encode(encoding)) == Row(a=None, b=None)
    with pytest.raises(SerializationError, match="cannot be read"):
        schema.deserialize("{".encode(encoding))


def test_a_field_of_a_field_that_does_not_fit_is_named() -> None:
    type_ = Types.ROW_NAMED(["x"], [Types.ROW_NAMED(["y"], [PAIR])])
    with pytest.raises(SerializationError, match=r"field 'x'.*field 'y'.*field 'b'.*'z' is no int"):
        JsonRowDeserializationSchema.builder().type_info(type_).build().deserialize(b'{"x": {"y": {"b": "z"}}}')


def test_missing_json_fields() -> None:
    schema = JsonRowDeserializationSchema.builder().type_info(PAIR).fail_on_missing_field()
    with pytest.raises(SerializationError, match=r"the object has no field 'b'; its fields are \['a'\]"):
        schema.build().deserialize(b'{"a": "x"}')
    with pytest.raises(ValueError, match="exclude each other"):
        schema.ignore_parse_errors().build()
    with pytest.raises(ValueError, match=r"call type_info\(Types.ROW_NAMED"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(TypeError, match=r"use Types.ROW_NAMED"):
        JsonRowDeserializationSchema.builder().type_info(Types.STRING())  # type: ignore[arg-type]


def test_types_from_a_json_schema() -> None:
    properties = {
        "i": {"type": ["integer", "null"]}, "n": {"type": "number"}, "d": {"type": "string", "format": "date"},
        "o": {"$ref": "#/$defs/o"},
        "l": {"type": "array", "items": {"type": "boolean"}}, "b": {"type": "string", "contentEncoding": "base64"},
    }  # fmt: skip
    text = json.dumps(
        {"type": "object", "properties": properties, "$defs": {"o": {"type": "object", "properties": {"x": {"type": "string"}}}}}
    )
    types = [Types.BIG_INT(), Types.BIG_DEC(), Types.SQL_DATE(), Types.ROW_NAMED(["x"], [Types.STRING()])]
    types += [Types.OBJECT_ARRAY(Types.BOOLEAN()), Types.PRIMITIVE_ARRAY(Types.BYTE())]
    schema = JsonRowDeserializationSchema.builder().json_schema(text).build()
    assert schema.get_produced_type() == Types.ROW_NAMED(["i", "n", "d", "o", "l", "b"], types)
    for wrong, message in (
        ("{", "is no JSON"),
        ('{"type": "string"}', "must describe an object"),
        (
            '{"type": "object", "properties": {"a": {"type": "what"}}}',
            "property 'a' of the JSON schema has the unknown type 'what'",
        ),
        ('{"type": "object", "properties": {"a": {"$ref": "#/b"}}}', "refers to '#/b', which is not in it"),
    ):
        with pytest.raises(ValueError, match=message):
            JsonRowDeserializationSchema.builder().json_schema(wrong)


def test_json_has_no_number_for_nan() -> None:
    with pytest.raises(SerializationError, match="JSON has no number nan"):
        JsonRowSerializationSchema.builder().with_type_info(Types.ROW([Types.DOUBLE()])).build().serialize((float("nan"),))


def test_csv_dialects() -> None:
    builder = CsvRowSerializationSchema.Builder(PAIR).set_field_delimiter(";").set_quote_character("'").set_line_terminator("\r\n")
    assert builder.build().serialize(("x;y", None)) == b"'x;y';\r\n"
    plain = CsvRowSerializationSchema.Builder(PAIR).disable_quote_character().set_line_terminator("")
    assert plain.set_escape_character("\\").build().serialize(("x,y", 1)) == b"x\\,y,1"
    reader = (
        CsvRowDeserializationSchema.Builder(PAIR).set_field_delimiter(";").set_quote_character("'").set_allow_comments(True).build()
    )
    assert reader.deserialize(b"'x;y';7\r\n") == Row(a="x;y", b=7)
    assert reader.deserialize(b"# a comment") is None
    assert reader.deserialize(b";") == Row(a="", b=None)
    lists = Types.ROW_NAMED(["l"], [Types.LIST(Types.STRING())])
    assert CsvRowSerializationSchema.Builder(lists).set_array_element_delimiter("|").build().serialize((["a", "b"],)) == b"a|b\n"
    assert CsvRowDeserializationSchema.Builder(lists).set_array_element_delimiter("|").build().deserialize(b"a|b") == Row(
        l=["a", "b"]
    )


def test_csv_that_does_not_fit() -> None:
    builder = CsvRowDeserializationSchema.Builder(PAIR)
    for line, message in (
        (b"x", "it has 1 fields, and the type has 2"),
        (b"x,y", "field 'b': 'y' is no int"),
        (b'"x,1', "cannot be read"),
    ):
        with pytest.raises(SerializationError, match=message):
            builder.build().deserialize(line)
    assert builder.set_ignore_parse_errors(True).build().deserialize(b"x") is None
    with pytest.raises(TypeError, match="CSV has no form for"):
        CsvRowSerializationSchema.Builder(NESTED_TYPE).build()
    with pytest.raises(ValueError, match="takes one character, not ';;'"):
        builder.set_field_delimiter(";;")
    with pytest.raises(SerializationError, match="cannot be written as CSV"):
        CsvRowSerializationSchema.Builder(PAIR).disable_quote_character().build().serialize(("x,y", 1))


def test_text_in_a_character_set() -> None:
    schema = SimpleStringSchema("ISO-8859-1")
    assert schema.deserialize(schema.serialize("é")) == "é"
    assert schema.get_produced_type() == Types.STRING()
    assert Encoder.simple_string_encoder().encode("é") == b"\xc3\xa9\n"
    with pytest.raises(SerializationError, match=r"use map\(str\) before the sink"):
        schema.serialize(5)
    with pytest.raises(SerializationError, match="cannot be written in ISO-8859-1"):
        schema.serialize("€")
    with pytest.raises(SerializationError, match="is no text in UTF-8"):
        SimpleStringSchema().deserialize(b"\xff")
    with pytest.raises(ValueError, match="knows no character set 'UTF-88'"):
        Encoder.simple_string_encoder("UTF-88")


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n"])
def test_ends_of_lines_in_a_field_of_csv_are_quoted_whatever_the_end_of_the_line_is(end: str) -> None:
    type_ = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.STRING()])
    line = CsvRowSerializationSchema.Builder(type_).set_line_terminator(end).build().serialize(Row("x\ry", "\n"))
    assert line == f'"x\ry","\n"{end}'.encode()
    assert CsvRowDeserializationSchema.Builder(type_).build().deserialize(line) == Row(a="x\ry", b="\n")
