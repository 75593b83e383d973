"""CREATE TYPE and CREATE FUNCTION: what they define, and what is wrong with them and where."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.diff import compare
from airflow_pipelines.program.functions import FunctionKind
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.sql.program.fingerprint import fingerprint
from airflow_pipelines.sql.program.parser import parse_program


def the_error(text: str, place: str) -> str:
    with pytest.raises(ProgramErrors) as caught:
        parse_program(text)
    (message,) = caught.value.messages
    assert message.span is not None
    assert SourceText(text).slice(message.span) == place
    return message.message


def test_types_stand_for_what_they_are_declared_as() -> None:
    text = """
    create type money as decimal(10,2);
    create type "Line" as (item varchar not null, price money);
    create table t (a money not null, b "Line" array, c map<varchar, money>, d row(x "Line", y int null));
    """
    a, b, c, d = (column.type for column in parse_program(text).tables["t"].columns)
    line = ColumnType("STRUCT", fields=(("item", ColumnType("VARCHAR", nullable=False)), ("price", decimal(10, 2))))
    assert a == decimal(10, 2, nullable=False)
    assert b == ColumnType("ARRAY", component=line)
    assert c == ColumnType("MAP", key=ColumnType("VARCHAR", nullable=False), value=decimal(10, 2))
    assert d.fields == (("x", line.with_nullable(False)), ("y", ColumnType("INTEGER")))


def test_a_changed_type_changes_its_tables_and_a_renamed_one_does_not() -> None:
    def tables(kind: str, name: str = "k") -> dict[str, str]:
        text = f"create type {name} as {kind}; create table t (a {name} array); create table u (a int);"
        return fingerprint(parse_program(text), {}).tables

    before = tables("decimal(5,2)")
    assert tables("decimal(5,2)", "other") == before
    after = tables("decimal(6,2)")
    assert after["t"] != before["t"]
    assert after["u"] == before["u"]


def test_a_changed_function_changes_the_views_that_use_it() -> None:
    def views(function: str, name: str = "f", module: str = "") -> dict[str, str]:
        text = f"""create function {name}(x int) returns int {function}; create table t (a int);
        create view v as select {name}(a) as b from t; create view w as select a from t;"""
        program = parse_program(text, module)
        columns = {view: parse_program("create table c (b int)").tables["c"].columns for view in ("v", "w")}
        return fingerprint(program, columns).views

    before = views("as x + 1")
    assert views("as  X /* the same */ + 1", "renamed") == before
    after = views("as x + 2")
    assert (after["v"] != before["v"], after["w"]) == (True, before["w"])
    one, other = views("", module="def f(x): return x"), views("", module="def f(x): return -x")
    assert (one["v"] != other["v"], one["w"]) == (True, other["w"])
    assert compare(fingerprint(parse_program("create table t (a int)"), {}), fingerprint(parse_program(""), {})).program_diff


def test_functions_know_how_they_are_implemented() -> None:
    program = parse_program(
        """create function twice(x int) returns bigint not null as x * 2;
        create function "Half"(x int not null) returns int;
        create function jsonstring_as_date(s varchar) returns date;""",
        "def half(x): ...",
    )
    functions = program.definitions.functions
    assert {name: function.kind for name, function in functions.items()} == {
        "twice": FunctionKind.SQL,
        "half": FunctionKind.PYTHON,
        "jsonstring_as_date": FunctionKind.JSON,
    }
    assert [function.name for function in program.definitions.python_functions] == ["half"]
    assert functions["half"].module == "def half(x): ..."


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("create type t as int; create type t as date", "t", "Type t is declared twice: first at line 1, column 13"),
        ("create type int as bigint", "int", "INT is a type of SQL"),
        ("create type t as (a int, A date)", "A", "Field a is declared twice"),
        ("create type t as u", "u", "Unknown type 'u'"),
        ("create type t as int 5", "5", "Expected the end of the statement"),
        ("create function f(x int) returns int as g(x)", "", ""),
        ("create function f(x int) returns int as f(x) + 1", "f(x)", "recursive functions are not supported"),
        ("create function f(x int) returns int as x; create function F(x date) returns date as x", "F", "one function, whatever"),
        ("create function f(x int, x int) returns int as x", "x", "Parameter x is declared twice"),
        ("create function case(x int) returns int as x", "case", "CASE is a word of SQL"),
        ("create function f(x int) returns int as (select max(a) from t)", "(select max(a) from t)", "cannot read relations"),
        ("create function f(x int) returns int as sum(x)", "sum(x)", "cannot have aggregates"),
        ("create function f(x int) returns int as x +", "+", "found the end of the statement"),
        ("create function f(x array<int>) returns array<int> as transform(x, x -> x)", "x", "a variable of this expression"),
        ("create function jsonstring_as_x(a int) returns int", "jsonstring_as_x", "one parameter, which is a VARCHAR"),
        ("create function feldera_f(x int) returns int as x", "feldera_f", "is reserved"),
    ],
)
def test_errors_have_a_place(text: str, place: str, message: str) -> None:
    if not message:
        # A function that Spark may know is none of the parser's business.
        assert parse_program(text).definitions.functions["f"].body == "g(x)"
        return
    assert message in the_error(text, place)


def test_a_call_of_a_function_whose_definition_failed_is_no_recursion() -> None:
    text = "create function f(x int) returns u as x;\ncreate function g(x int) returns int as F(x) + 1"
    with pytest.raises(ProgramErrors) as caught:
        parse_program(text)
    first, second = caught.value.messages
    assert "Unknown type 'u'" in first.message
    assert second.message == "Function f cannot be called: its own definition has an error, which comes first"
    assert second.span is not None
    assert SourceText(text).slice(second.span) == "F(x)"


def test_wrong_numbers_of_arguments_are_told_at_the_call() -> None:
    text = (
        "create table t (a int); create function f(x int) returns int as x;\ncreate view v as select 1 + f(a, (2, 3)) as b from t"
    )
    assert the_error(text, "f(a, (2, 3))") == "Function f takes 1 argument, and this call gives 2"


def test_variables_of_a_function_do_not_meet_names_of_its_arguments() -> None:
    text = """create function plus(xs int array, y int) returns int array as transform(xs, x -> x + y);
    create table t (xs int array, x int); create view v as select plus(xs, x) as s from t"""
    query = parse_program(text).views["v"].query
    assert "`plus$x` -> `plus$x` + (CAST(x AS INT))" in query


def test_relations_may_have_the_name_of_a_function() -> None:
    text = """create function f(x int) returns int as x + 1; create table t (a int);
    create view v as with f(b) as (select a from t) select f(b) as c from f;
    create view w as select g.z from t as f(z), (select 1 as z) g"""
    program = parse_program(text)
    assert "with f(b) as (" in program.views["v"].query
    assert "CAST(b AS INT)) + 1" in program.views["v"].query
    assert "t as f(z)" in program.views["w"].query
