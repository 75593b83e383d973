"""Tables: the types of their columns, constraints, keys and properties."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.sql.program.parser import parse_program
from tests.sql.program.refusals import the_error


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("varchar", ColumnType("VARCHAR")),
        ("varchar(10)", ColumnType("VARCHAR", precision=10)),
        ("character varying (3)", ColumnType("VARCHAR", precision=3)),
        ("TEXT", ColumnType("VARCHAR")),
        ("string", ColumnType("VARCHAR")),
        ("char(4)", ColumnType("CHAR", precision=4)),
        ("decimal", decimal(38, 0)),
        ("numeric(7)", decimal(7, 0)),
        ("dec(7, 3)", decimal(7, 3)),
        ("int", ColumnType("INTEGER")),
        ("double  precision", ColumnType("DOUBLE")),
        ("real", ColumnType("REAL")),
        ("float", ColumnType("REAL")),
        ("byte", ColumnType("TINYINT")),
        ("short", ColumnType("SMALLINT")),
        ("long", ColumnType("BIGINT")),
        ("timestamp_ntz", ColumnType("TIMESTAMP")),
        ("timestamp_ltz", ColumnType("TIMESTAMP_TZ")),
        ("timestamp", ColumnType("TIMESTAMP")),
        ("timestamp(3) without time zone", ColumnType("TIMESTAMP")),
        ("timestamp with time zone", ColumnType("TIMESTAMP_TZ")),
        ("time", ColumnType("TIME")),
        ("uuid", ColumnType("UUID")),
        ("bytea", ColumnType("VARBINARY")),
        ("binary(16)", ColumnType("BINARY", precision=16)),
        ("variant", ColumnType("VARIANT")),
        ("interval day", ColumnType("INTERVAL_DAY")),
        ("interval day(3) to second(6)", ColumnType("INTERVAL_DAY_TO_SECOND")),
        ("interval hours to minutes", ColumnType("INTERVAL_HOUR_TO_MINUTE")),
        ("interval year to month array", ColumnType("ARRAY", component=ColumnType("INTERVAL_YEAR_TO_MONTH"))),
        ("int array", ColumnType("ARRAY", component=ColumnType("INTEGER"))),
        ("array<int not null>", ColumnType("ARRAY", component=ColumnType("INTEGER", nullable=False))),
        (
            "map<varchar, array<map<int, date>>>",
            ColumnType(
                "MAP",
                key=ColumnType("VARCHAR", nullable=False),
                value=ColumnType(
                    "ARRAY", component=ColumnType("MAP", key=ColumnType("INTEGER", nullable=False), value=ColumnType("DATE"))
                ),
            ),
        ),
        (
            'row(a int, "B" varchar null)',
            ColumnType("STRUCT", fields=(("a", ColumnType("INTEGER", nullable=False)), ("B", ColumnType("VARCHAR")))),
        ),
        (
            "struct<a: int, b: string not null>",
            ColumnType("STRUCT", fields=(("a", ColumnType("INTEGER")), ("b", ColumnType("VARCHAR", nullable=False)))),
        ),
    ],
)
def test_types(written: str, expected: ColumnType) -> None:
    table = parse_program(f"create table t (c {written}, d {written.upper()} not null)").tables["t"]
    assert table.columns[0].type == expected
    assert table.columns[1].type == expected.with_nullable(False)


@pytest.mark.parametrize(
    ("written", "at", "says"),
    [
        ("itn", "itn", "Known types: ARRAY, BIGINT"),
        ("interval", "interval", "INTERVAL YEAR, MONTH or YEAR TO MONTH"),
        ("interval week", "interval", "needs its units"),
        ("interval day to month", "month", "ends with one of HOUR, MINUTE, SECOND"),
        ("decimal(39,2)", "decimal(39,2)", "1 to 38"),
        ("decimal(3,4)", "decimal(3,4)", "at most the precision"),
        ("decimal(3,-1)", "-", "a scale"),
        ("varchar(0)", "0", "at least 1"),
        (f"varchar({'9' * 5000})", "9" * 5000, "not that large"),
        ("map<int>", ">", "Expected ,"),
        ("array<itn>", "itn", "Unknown type"),
        ("row(a int, A int)", "A", "declared twice"),
    ],
)
def test_bad_types(written: str, at: str, says: str) -> None:
    assert says in the_error(f"create table t (c {written})", at)


def test_column_constraints() -> None:
    text = """create table p (id int primary key);
    create table c (
        a int references p(id) default 1 + (2 * 3) not null,
        b int foreign key references p(id),
        ts timestamp lateness interval '1' hour default timestamp '2020-01-01 00:00:00',
        s varchar default 'a,b''c) not null',
        n int null default case when true then 1 end,
        constraint k primary key (a),
        foreign key (b) references p (id)
    )"""
    table = parse_program(text).tables["c"]
    assert [column.default for column in table.columns] == [
        "1 + (2 * 3)",
        None,
        "TIMESTAMP_NTZ '2020-01-01 00:00:00'",
        "'a,b''c) not null'",
        "case when true then 1 end",
    ]
    assert table.columns[2].lateness == "interval '1' hour"
    assert not table.columns[0].type.nullable
    assert table.primary_key == ("a",)


@pytest.mark.parametrize(
    ("column", "is_materialized"),
    [
        ("id int primary key", True),
        ("id int, primary key (id, at)", False),
        ("id int", False),
        ("id int lateness 5 primary key", False),
    ],
)
def test_a_key_materializes_its_table_unless_old_rows_are_forgotten_by_it(column: str, is_materialized: bool) -> None:
    text = f"create table t (at timestamp lateness interval 1 hour, {column})"
    assert parse_program(text).tables["t"].materialized is is_materialized
    assert parse_program(f"{text} with ('materialized' = 'true')").tables["t"].materialized


def test_bad_keys() -> None:
    assert "does not have" in the_error("create table t (a int, primary key (zz))", "zz")
    assert "twice" in the_error("create table t (k int, primary key (k, k))", "k", 3)
    assert "MAP cannot be part" in the_error("create table t (x map<int, int>, primary key (x))", "x", 1)


def test_properties() -> None:
    text = "create table t (a int) with ('append_only' = 'true', 'expected_size' = '10')"
    program = parse_program(text)
    assert program.tables["t"].append_only
    assert not program.tables["t"].materialized
    place = program.table_properties["t"]["append_only"]
    assert SourceText(text).slice(place.key_span) == "'append_only'"
    assert SourceText(text).slice(place.value_span) == "'true'"
    assert "Known properties: append_only, connectors" in the_error(
        "create table t (a int) with ('materialised' = 'true')", "'materialised'"
    )
    assert "'true' or 'false'" in the_error("create table t (a int) with ('materialized' = 'yes')", "'yes'")
    assert "given twice" in the_error(
        "create table t (a int) with ('append_only'='true', 'append_only'='true')", "'append_only'", 1
    )
