"""The columns of relations that programs make."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.datastream import Row, Types
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.relation_columns import canonical_name, relation_columns, sql_type_of
from airflow_pipelines.program.names import canonical
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.streams.errors import StreamProgramError


def names_and_types(schema: Any) -> list[tuple[str, str]]:
    return [(column.name, column.sql_type) for column in relation_columns(schema)]


def test_three_ways_to_say_the_same() -> None:
    expected = [("id", "BIGINT"), ("note", "VARCHAR")]
    assert names_and_types(Types.ROW_NAMED(["id", "note"], [Types.LONG(), Types.STRING()])) == expected
    assert names_and_types({"id": Types.LONG(), "note": "VARCHAR"}) == expected
    assert names_and_types("id BIGINT, note VARCHAR") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a INT", [("a", "INT")]),
        ("  a   INT  ,\n b\tINT ", [("a", "INT"), ("b", "INT")]),
        ("a DECIMAL(10, 2), b MAP<VARCHAR, INT>", [("a", "DECIMAL(10, 2)"), ("b", "MAP<VARCHAR, INT>")]),
        ("a ROW(x INT, y ROW(z INT, w INT)), b INT", [("a", "ROW(x INT, y ROW(z INT, w INT))"), ("b", "INT")]),
        ('"A, b" INT, `C``d` INT, "x ""y""" INT NOT NULL', [("A, b", "INT"), ("C`d", "INT"), ('x "y"', "INT NOT NULL")]),
        ("Mixed INT", [("mixed", "INT")]),
    ],
)
def test_texts(text: str, expected: list[tuple[str, str]]) -> None:
    assert names_and_types(text) == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("", "is no name with a type"),
        ("id", "'id' of the schema is no name with a type"),
        ("id INT,", "'' of the schema is no name"),
        ('"id INT', "is no name with a type"),
        ({}, "has no columns"),
        ({"id": 1}, "type of column 'id' cannot be 1"),
        ({"": "INT"}, "cannot have the name ''"),
        ({"id": ""}, "type of column 'id'"),
        (["id INT"], "schema of a relation cannot be"),
        (None, "schema of a relation cannot be None"),
        ("a INT, A INT", "two columns 'a'"),
        ({"id": Types.PICKLED_BYTE_ARRAY()}, "SQL has no type for"),
        ({"id": Types.LIST(Types.PICKLED_BYTE_ARRAY())}, "SQL has no type for"),
    ],
)
def test_what_is_no_schema(schema: Any, message: str) -> None:
    with pytest.raises(StreamProgramError, match=message):
        relation_columns(schema)


ALL_TYPES = [
    Types.STRING(), Types.BYTE(), Types.BOOLEAN(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(),
    Types.CHAR(), Types.BIG_INT(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT(),
    Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.PRIMITIVE_ARRAY(Types.INT()), Types.BASIC_ARRAY(Types.STRING()),
    Types.OBJECT_ARRAY(Types.ROW([Types.INT()])), Types.LIST(Types.LIST(Types.INT())), Types.MAP(Types.STRING(), Types.LONG()),
    Types.ROW([Types.INT(), Types.STRING()]), Types.ROW_NAMED(["Weird name", 'q"'], [Types.INT(), Types.LIST(Types.INT())]),
    Types.TUPLE([Types.INT(), Types.MAP(Types.INT(), Types.BOOLEAN())]),
]  # fmt: skip


@pytest.mark.parametrize("declared", ALL_TYPES, ids=str)
def test_sql_knows_the_type_of_each_type(declared: Any) -> None:
    table = parse_program(f"create table t (x {sql_type_of(declared)})").tables["t"]
    assert table.columns[0].type.nullable


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]), Row(1, "x"), {"a": 1, "b": "x"}),
        (Types.ROW_NAMED(["A"], [Types.TUPLE([Types.INT()])]), ((1,),), {"a": {"f0": 1}}),
        (Types.ROW([Types.INT()]), None, None),
        (Types.LIST(Types.ROW([Types.INT()])), [(1,), None], [{"f0": 1}, None]),
        (Types.MAP(Types.STRING(), Types.ROW([Types.INT()])), {"k": [2]}, {"k": {"f0": 2}}),
        (Types.INSTANT(), Instant(1, 1_500), datetime.datetime(1970, 1, 1, 0, 0, 1, 1, datetime.UTC)),
        (Types.INSTANT(), Instant(-1, 0), datetime.datetime(1969, 12, 31, 23, 59, 59, 0, datetime.UTC)),
        (Types.LONG(), 5, 5),
        (Types.BIG_DEC(), Decimal("1.5"), Decimal("1.5")),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab", b"ab"),
    ],
)
def test_values_become_what_columns_take(declared: Any, value: Any, expected: Any) -> None:
    (column,) = relation_columns({"x": declared})
    assert column.convert is not None
    assert column.convert(value) == expected


@given(st.text(max_size=6) | st.text('"`aA', max_size=6) | st.sampled_from(["İ", "ΑΣ", "ß", '"Q"']))
def test_names_are_those_of_sql(name: str) -> None:
    assert canonical_name(name) == canonical(name)
