"""The body of an ingress request and the chunks of an egress stream."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors import changes
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.http import EgressData, encode_egress, frame_chunk, frame_empty_chunk, parse_ingress
from airflow_pipelines.rows.formats.delta import JsonChanges
from airflow_pipelines.rows.formats.flavors import JsonFlavor
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.option_errors import UnknownOptionError
from tests.connectors.relations import GRADES, rows

DELTA = pa.table(
    {
        "student_id": [2, 1, 3, 1],
        "class": ["b", "a", None, "a"],
        "grade": pa.array([Decimal("97.00"), None, Decimal("1.50"), Decimal("2.00")], pa.decimal128(5, 2)),
        "class_date": pa.nulls(4, pa.date32()),
        "__weight": [1, -1, 2, 1],
    }
)


def test_ingress_formats_and_options_as_texts() -> None:
    assert rows(parse_ingress(GRADES, b"1,a,1,\n"))[0]["student_id"] == 1
    options = {"array": "true", "update_format": "raw", "json_flavor": "default"}
    assert parse_ingress(GRADES, b'[{"student_id": 1}, {"student_id": 2}]', "json", options).records == 2
    sink = io.BytesIO()
    pq.write_table(pa.table({"student_id": [5]}), sink)
    assert parse_ingress(GRADES, sink.getvalue(), "parquet").records == 1


@pytest.mark.parametrize(
    ("format_name", "options", "message"),
    [
        ("jsn", {}, "unknown format 'jsn'; known formats: avro, csv, json, orc, parquet, protobuf, raw; did you mean 'json'?"),
        ("json", {"arry": "true"}, "unknown option 'arry' of format 'json'; known options: array, .*did you mean 'array'"),
        ("protobuf", {}, "format 'protobuf' is for the messages of a queue"),
        ("json", {"update_format": "snowflake"}, "option 'update_format' of format 'json': .*'insert_delete', 'raw'"),
    ],
)
def test_bad_requests(format_name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownOptionError, match=message.replace("?", "\\?")):
        parse_ingress(GRADES, b"", format_name, options)


def test_options_of_other_formats_are_passed_over() -> None:
    options = {"array": "true", "update_format": "raw", "json_flavor": "default", "mode": "lines"}
    assert parse_ingress(GRADES, b"1;a;1;\n", "csv", {**options, "delimiter": ";"}).records == 1
    assert parse_ingress(GRADES, b'[{"student_id": 1}]', "json", {**options, "delimiter": ";"}).records == 1


def test_egress_is_ordered_and_repeats_by_weight() -> None:
    (data,) = encode_egress(ChangesInMemory(DELTA))
    assert data.records == 5
    assert json.loads(data.text, parse_float=Decimal) == [
        {"delete": {"student_id": 1, "class": "a", "grade": None, "class_date": None}},
        {"insert": {"student_id": 1, "class": "a", "grade": Decimal("2.00"), "class_date": None}},
        {"insert": {"student_id": 2, "class": "b", "grade": Decimal("97.00"), "class_date": None}},
        {"insert": {"student_id": 3, "class": None, "grade": Decimal("1.50"), "class_date": None}},
        {"insert": {"student_id": 3, "class": None, "grade": Decimal("1.50"), "class_date": None}},
    ]
    assert '"grade":97.00' in data.text
    options = JsonOptions(update_format="weighted", json_flavor=JsonFlavor.SNOWFLAKE)
    (other,) = encode_egress(ChangesInMemory(DELTA), "json", JsonChanges(options))
    assert json.loads(other.text)[0] == {
        "weight": -1,
        "data": {"student_id": 1, "class": "a", "grade": None, "class_date": None},
    }
    assert json.loads(other.text)[1]["data"]["grade"] == "2.00"
    (lines,) = encode_egress(ChangesInMemory(DELTA), "csv")
    assert lines.text == "1,a,,,-1\n1,a,2.00,,1\n2,b,97.00,,1\n3,,1.50,,1\n3,,1.50,,1\n"


def test_the_order_does_not_depend_on_how_rows_came() -> None:
    shuffled = DELTA.take(pa.array([3, 2, 0, 1]))
    assert list(encode_egress(ChangesInMemory(shuffled))) == list(encode_egress(ChangesInMemory(DELTA)))
    values = pa.table({"a": pa.array([{"x": 2}, {"x": 1}]), "l": [1, 1], "__weight": [1, 1]})
    assert [json.loads(data.text)[0]["insert"]["a"] for data in encode_egress(ChangesInMemory(values))] == [{"x": 1}]


def test_large_deltas_are_cut_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ROWS_AT_ONCE", 2)
    chunks = list(encode_egress(ChangesInMemory(DELTA)))
    assert [len(json.loads(data.text)) for data in chunks] == [data.records for data in chunks] == [2, 2, 1]
    assert list(encode_egress(ChangesInMemory(DELTA.slice(0, 0)))) == []
    with pytest.raises(UnknownOptionError, match="known formats: csv, json"):
        list(encode_egress(ChangesInMemory(DELTA), "avro"))


def test_frames() -> None:
    assert json.loads(frame_chunk(3, EgressData("[1]", 1), snapshot=True)) == {
        "sequence_number": 3,
        "snapshot": True,
        "json_data": [1],
    }
    assert json.loads(frame_chunk(4, EgressData('1,"a"\n', 1), "csv"))["text_data"] == '1,"a"\n'


def test_what_opens_a_stream_has_no_number_and_no_data() -> None:
    assert frame_empty_chunk() == b'{"snapshot":false,"json_data":[]}\r\n'
    assert json.loads(frame_empty_chunk("csv", snapshot=True)) == {"snapshot": True, "text_data": ""}
