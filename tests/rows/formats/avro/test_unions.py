"""Values of Avro that may be of several types: the column decides which of them it takes."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest

from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.avro.definition import AVRO
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.messages import MessageParser, Messages, ParsedMessages
from airflow_pipelines.rows.formats.variant import to_json
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation
from tests.rows.formats.avro.encoding import encoded


def schema_of(**types: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


def parser(table: RelationSchema, schema: dict[str, Any]) -> Any:
    assert AVRO.new_parser is not None
    return AVRO.new_parser(table, AvroOptions.model_validate({"schema": json.dumps(schema)}), wall_clock)


def read(table: RelationSchema, schema: dict[str, Any], values: Sequence[dict[str, Any]]) -> ParsedMessages:
    made = parser(table, schema)
    assert isinstance(made, MessageParser)
    return made.parse_messages(Messages([encoded(schema, value, 9) for value in values], lambda number: None))


def rows(parsed: Any) -> list[dict[str, Any]]:
    return [] if parsed.changes is None else parsed.changes.rows.drop_columns([OP]).to_pylist()


def test_a_column_takes_the_values_of_its_type_and_a_bad_one_costs_its_row_only() -> None:
    schema = schema_of(id="long", x=["string", "double"], s=["null", "double", "string"])
    table = relation(col("id", "BIGINT", null=False), col("x", "DOUBLE"), col("s", "VARCHAR"))
    values = [{"id": 1, "x": 1.5, "s": "a"}, {"id": 2, "x": "abc", "s": "b"}, {"id": 3, "x": 2.0, "s": 7.0}]
    parsed = read(table, schema, [*values, {"id": 4, "x": -0.5, "s": None}])
    assert rows(parsed) == [values[0], {"id": 4, "x": -0.5, "s": None}]
    assert [(error.index, error.message) for error in parsed.errors] == [
        (1, "column 'x': \"abc\" is not a number (DOUBLE)"),
        (2, "column 's': 7.0 is not a string"),
    ]


def test_files_are_read_in_the_same_way() -> None:
    schema = schema_of(id="long", x=["string", "double"])
    file = io.BytesIO()
    fastavro.writer(file, schema, [{"id": 1, "x": 1.5}, {"id": 2, "x": "abc"}])
    parsed = parser(relation(col("id", "BIGINT", null=False), col("x", "DOUBLE")), schema).parse(file.getvalue())
    assert rows(parsed) == [{"id": 1, "x": 1.5}]
    assert parsed.num_errors == 1


def test_a_variant_takes_all_of_them_at_any_depth() -> None:
    named = {"type": "record", "name": "point", "fields": [{"name": "x", "type": ["int", "string"]}, {"name": "y", "type": "int"}]}
    day = {"type": "int", "logicalType": "date"}
    schema = schema_of(v=["null", "string", "double", day, named, {"type": "array", "items": ["boolean", "long"]}])
    values = ["t", 2.5, dt.date(2026, 1, 2), {"x": "a", "y": 1}, {"x": 3, "y": 4}, [True, 7], None]
    parsed = read(relation(col("v", "VARIANT")), schema, [{"v": value} for value in values])
    assert parsed.errors == ()
    found = [None if row["v"] is None else json.loads(to_json(row["v"])) for row in rows(parsed)]
    assert found == ["t", 2.5, "2026-01-02", {"x": "a", "y": 1}, {"x": 3, "y": 4}, [True, 7], None]


def test_types_that_a_value_does_not_tell_apart_are_refused() -> None:
    points = [
        {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]} for name, field in (("a", "x"), ("b", "y"))
    ]
    schema = schema_of(v=points)
    with pytest.raises(FormatFailure, match=r"field 'v' may be one of several types \(record, record\), of which two cannot"):
        read(relation(col("v", "VARIANT")), schema, [{"v": {"x": 1}}])
