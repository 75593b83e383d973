"""Spark's names of types are read as column types."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.rows.spark_types import has_calendar_interval, has_floating, has_map, has_variant, spark_type
from airflow_pipelines.rows.types import SPARK_NAMES, ColumnType, decimal

INTERVALS = ["INTERVAL_YEAR", "INTERVAL_YEAR_TO_MONTH", "INTERVAL_DAY", "INTERVAL_DAY_TO_SECOND", "INTERVAL_HOUR_TO_MINUTE"]
PLAIN = ["BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE", "VARCHAR", "VARBINARY", "DATE", "TIME"]
SINGLE = st.one_of(
    st.sampled_from([*PLAIN, "TIMESTAMP", "TIMESTAMP_TZ", "VARIANT", "NULL", *INTERVALS]).map(ColumnType),
    st.integers(1, 38).flatmap(lambda precision: st.integers(0, precision).map(lambda scale: decimal(precision, scale))),
)
NAMES = st.one_of(
    st.text("abc", min_size=1), st.sampled_from(["float", "map<", "a:b", "x`y", "variant", "interval", " ", "é", "not"])
)


def _nest(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    fields = st.lists(st.tuples(NAMES, inner), max_size=3).map(tuple)
    return st.one_of(
        inner.map(lambda kind: ColumnType("ARRAY", component=kind)),
        st.tuples(inner, inner).map(lambda both: ColumnType("MAP", key=both[0].with_nullable(False), value=both[1])),
        fields.map(lambda each: ColumnType("STRUCT", fields=each)),
    )


TYPES = st.recursive(st.tuples(SINGLE, st.booleans()).map(lambda both: both[0].with_nullable(both[1])), _nest, max_leaves=6)


def _without_nullability(kind: ColumnType) -> ColumnType:
    """A type as its DDL tells it: only fields can be declared as NOT NULL."""
    match kind:
        case ColumnType(component=ColumnType() as component):
            return ColumnType("ARRAY", component=_without_nullability(component))
        case ColumnType(key=ColumnType() as key, value=ColumnType() as value):
            return ColumnType("MAP", key=_without_nullability(key).with_nullable(False), value=_without_nullability(value))
        case ColumnType(fields=tuple() as fields):
            kept = tuple((name, _without_nullability(field).with_nullable(field.nullable)) for name, field in fields)
            return ColumnType("STRUCT", fields=kept)
    return kind.with_nullable(True)


@given(TYPES)
def test_what_is_written_is_read_again(kind: ColumnType) -> None:
    assert spark_type(kind.spark_ddl()) == _without_nullability(kind)
    assert spark_type(kind.spark_ddl().lower()).name == kind.name, "in any case"


@pytest.mark.parametrize("name", sorted(set(SPARK_NAMES.values())))
def test_each_name_of_spark_is_known(name: str) -> None:
    assert spark_type(name.lower()).spark_ddl() == name


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decimal", decimal(10, 0)),
        ("DECIMAL(5)", decimal(5, 0)),
        (" decimal ( 5 , 2 ) ", decimal(5, 2)),
        ("char(3)", ColumnType("CHAR", precision=3)),
        ("varchar(3)", ColumnType("VARCHAR", precision=3)),
        ("string collate UTF8_LCASE", ColumnType("VARCHAR")),
        ("interval", ColumnType("INTERVAL")),
        ("struct<>", ColumnType("STRUCT", fields=())),
        (
            "struct<a: int NOT NULL, `b c`: string>",
            ColumnType("STRUCT", fields=(("a", ColumnType("INTEGER", False)), ("b c", ColumnType("VARCHAR")))),
        ),
        ("array<geometry(4326)>", ColumnType("ARRAY", component=ColumnType("UNKNOWN"))),
        ("examplepoint", ColumnType("UNKNOWN")),
    ],
)
def test_other_spellings(text: str, kind: ColumnType) -> None:
    assert spark_type(text) == kind


@pytest.mark.parametrize(
    "text", ["", "array", "array<int", "array<int>>", "map<int>", "struct<a int>", "decimal(x)", "decimal(1,2,3)", "int;", "a b"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a type of Spark"):
        spark_type(text)


@pytest.mark.parametrize(
    ("has_part", "kind", "is_part"),
    [
        (has_floating, "float", True),
        (has_floating, "struct<a:map<int,array<DOUBLE>>>", True),
        (has_floating, "struct<float:int,`double`:int>", False),
        (has_map, "array<struct<a:map<int,int>>>", True),
        (has_map, "struct<map:int,`map<int,int>`:int>", False),
        (has_variant, "map<string,variant>", True),
        (has_variant, "struct<variant:int,variants:string>", False),
        (has_calendar_interval, "array<interval>", True),
        (has_calendar_interval, "struct<interval:interval day to second,i:interval year>", False),
    ],
)
def test_the_name_of_a_field_is_no_type(has_part: Callable[[str], bool], kind: str, is_part: bool) -> None:
    assert has_part(kind) is is_part
