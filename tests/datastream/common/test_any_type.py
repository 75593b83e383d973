"""Values of any type are coerced once, written as text, and come back from JSON and CSV."""

from __future__ import annotations

import pickle
from datetime import UTC
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream.common.csv_row import CsvRowDeserializationSchema, CsvRowSerializationSchema
from airflow_pipelines.datastream.common.json_row import JsonRowDeserializationSchema, JsonRowSerializationSchema
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo, Types

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_BASIC: list[tuple[TypeInformation, st.SearchStrategy[Any]]] = [
    (Types.STRING(), _TEXT),
    (Types.BYTE(), st.integers()),
    (Types.SHORT(), st.integers()),
    (Types.INT(), st.integers()),
    (Types.LONG(), st.integers(-(2**63), 2**63 - 1)),
    (Types.BIG_INT(), st.integers()),
    (Types.BOOLEAN(), st.booleans()),
    (Types.FLOAT(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    (Types.DOUBLE(), _FLOATS),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates()),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes()),
    (Types.INSTANT(), st.datetimes().map(lambda value: Instant.of_datetime(value.replace(tzinfo=UTC)))),
]


_NULL, _BETWEEN = "\x00null", "\x01"
_FEW = settings(max_examples=40, deadline=None)


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def _flat(draw: st.DrawFn) -> tuple[TypeInformation, st.SearchStrategy[Any]]:
    type_, values = draw(st.sampled_from(_BASIC))
    match draw(st.sampled_from(["basic", "basic", "list", "bytes"])):
        case "list":
            return Types.LIST(type_), st.lists(_or_none(values), max_size=3)
        case "bytes":
            return Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=4) | st.lists(st.integers(-200, 300), max_size=3)
    return type_, values


@st.composite
def _nested(draw: st.DrawFn, depth: int = 2) -> tuple[TypeInformation, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["flat", "list", "map", "row"])) if depth else "flat"
    if kind == "flat":
        return draw(_flat())
    if kind == "row":
        return draw(_rows(_nested(depth - 1)))
    type_, values = draw(_nested(depth - 1))
    if kind == "list":
        return Types.OBJECT_ARRAY(type_), st.lists(_or_none(values), max_size=3)
    key, keys = draw(st.sampled_from(_BASIC))
    return Types.MAP(key, type_), st.dictionaries(keys.filter(lambda each: key.convert(each) == each), _or_none(values), max_size=3)


@st.composite
def _rows(draw: st.DrawFn, fields: st.SearchStrategy[Any]) -> tuple[RowTypeInfo, st.SearchStrategy[Any]]:
    drawn = draw(st.lists(fields, min_size=1, max_size=4))
    names = draw(st.lists(_TEXT.filter(bool), min_size=len(drawn), max_size=len(drawn), unique=True))
    return Types.ROW_NAMED(names, [type_ for type_, _ in drawn]), st.tuples(*[_or_none(values) for _, values in drawn])


@st.composite
def _typed(draw: st.DrawFn, types: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    type_, values = draw(types)
    return type_, draw(values)


@_FEW
@given(_typed(_nested(3)))
def test_coercion_is_done_once_and_text_is_written(typed: tuple[TypeInformation, Any]) -> None:
    type_, value = typed
    converted = type_.convert(value)
    assert type_.convert(converted) == converted
    assert isinstance(type_.to_text(converted), str)
    assert pickle.loads(pickle.dumps(type_)).convert(value) == converted


@_FEW
@given(_typed(_rows(_nested())))
def test_rows_come_back_from_json(typed: tuple[RowTypeInfo, Any]) -> None:
    type_, value = typed
    row = type_.convert(value)
    written = JsonRowSerializationSchema.builder().with_type_info(type_).build().serialize(value)
    assert JsonRowDeserializationSchema.builder().type_info(type_).build().deserialize(written) == row


@_FEW
@given(_typed(_rows(_flat())))
def test_rows_come_back_from_csv(typed: tuple[RowTypeInfo, Any]) -> None:
    type_, value = typed
    row = type_.convert(value)
    writer = CsvRowSerializationSchema.Builder(type_).set_null_literal(_NULL).set_array_element_delimiter(_BETWEEN)
    reader = CsvRowDeserializationSchema.Builder(type_).set_null_literal(_NULL).set_array_element_delimiter(_BETWEEN)
    read = reader.build().deserialize(writer.build().serialize(value))
    for type_of, before, after in zip(type_.get_field_types(), row, read, strict=True):
        if isinstance(before, list) and not _is_plain(before):
            continue  # an empty list, an empty text and None are the same within a field that is a list
        assert after == before, type_of


def _is_plain(values: list[Any]) -> bool:
    return bool(values) and all(value is not None and value != "" and _BETWEEN not in str(value) for value in values)
