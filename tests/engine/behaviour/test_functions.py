"""Functions that a program implements in SQL and in Python."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.program.messages import ProgramErrors, ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

MODULE = """
import pandas as pd

def half(x):
    if x == 13:
        raise ValueError("unlucky")
    return None if x is None else x // 2

def shout(s: pd.Series) -> pd.Series:
    return s.str.upper()

def located(x, at):
    return {"zip": x, "street": None if at is None else at.isoformat()}

def wrong(x):
    return "nope"
"""
PROGRAM = """
create type addr as (street varchar, zip int not null);
create table t (id int, s varchar, at timestamp) with ('materialized' = 'true');
create function half(x int) returns int;
create function shout(s varchar) returns varchar;
create function located(x int, at timestamp) returns addr;
create materialized view p as select half(id) as h, SHOUT(s) as u, located(id, at) as a from t where half(id) < 100;
create materialized view g as select half(id) as h, count(*) as n, max(shout(s)) as m from t group by half(id);
create materialized view j as select a.id, b.id as other from t a join t b on half(a.id) = b.id;
"""


def errors(text: str, sessions: SparkSessions, module: str = "") -> tuple[ProgramMessage, ...]:
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions, udf_python=module)
    return caught.value.messages


@pytest.mark.parametrize("strategy", ["incremental", "full"])
def test_python_functions_in_views(sessions: SparkSessions, strategy: str) -> None:
    running = Running("", sessions, strategy, compile_program(PROGRAM, sessions, udf_python=MODULE))
    one, two = (4, "a", dt.datetime(2020, 1, 2, 3)), (2, "b", None)
    running.insert("t", one, two, (None, None, None))
    assert running.rows("p") == [(1, "B", (None, 2)), (2, "A", ("2020-01-02T03:00:00", 4))]
    assert running.rows("g") == [(1, 1, "B"), (2, 1, "A"), (None, 1, None)]
    assert running.rows("j") == [(4, 2)]
    running.step(running.changes("t", one, op=Op.DELETE), running.changes("t", (5, "c", None)))
    assert running.rows("g") == [(1, 1, "B"), (2, 1, "C"), (None, 1, None)]
    assert running.rows("j") == [(5, 2)]
    if strategy == "full":
        return
    found = run_adhoc(running.circuit, "select Half(id), shout(s) as u, id + 1 from t where id = 5").frame
    assert found is not None
    assert [row.asDict() for row in found.collect()] == [{"Half(id)": 2, "u": "C", "(id + 1)": 6}]
    with pytest.raises(StepError, match=r"half\(13\) raised ValueError: unlucky \(udf_python, line 6\)") as caught:
        running.insert("t", (13, "d", None))
    assert caught.value.view in {"p", "g", "j"}
    assert running.rows("j") == [(5, 2)], "a step that fails leaves no trace"


def test_a_result_of_another_type_is_an_error_and_no_null(sessions: SparkSessions) -> None:
    text = "create table t (id int); create function wrong(x int) returns int; create view v as select wrong(id) as w from t"
    running = Running("", sessions, compiled=compile_program(text, sessions, udf_python=MODULE))
    with pytest.raises(StepError, match=r"wrong\(1\) raised TypeError: gave str 'nope' for an integer") as caught:
        running.insert("t", (1,))
    assert caught.value.view == "v"


@pytest.mark.core
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("def f(:\n", "udf_python, line 1, column 7: invalid syntax"),
        ("\nimport no_such_module_zz\n", "udf_python, line 2: ModuleNotFoundError: No module named 'no_such_module_zz'"),
        ("def f(x): return 1\nraise SystemExit(3)", "udf_python, line 2: SystemExit: 3"),
    ],
)
def test_modules_that_cannot_be_imported(sessions: SparkSessions, module: str, message: str) -> None:
    (found,) = errors("create function f(x int) returns int", sessions, module)
    assert found.message == message
    assert module.strip().splitlines()[-1] in found.snippet or found.snippet


@pytest.mark.core
def test_functions_that_the_module_does_not_have(sessions: SparkSessions) -> None:
    text = "create function f(x int) returns int; create function g(x int) returns int"
    several, missing = errors(text, sessions, "def f(a, b): return 1")
    assert several.message == "Function f has 1 parameter, and the Python function f takes 2"
    assert missing.message == "Function g has no body, and udf_python has no function of that name; it has: f"
    (alone,) = errors("create function f(x int) returns int", sessions)
    assert "add AS <expression>, or give the pipeline a Python module" in alone.message
    assert alone.span is not None
    assert SourceText("create function f(x int) returns int").slice(alone.span) == "f"


def test_sql_functions(sessions: SparkSessions) -> None:
    text = """
    create type addr as (street varchar, zip int not null);
    create table t (id int, a addr);
    create function twice(x int) returns int as x * 2;
    create function four(x int) returns bigint as twice(twice(x));
    create function label(s varchar(3), n int) returns varchar as concat(s, '-', cast(n as varchar));
    create function street(a addr) returns varchar as a.street;
    create function plus(xs int array, y int) returns int array as transform(xs, x -> x + y);
    create function jsonstring_as_addr(s varchar) returns addr;
    create function jsonstring_as_int(s varchar) returns int;
    create materialized view v as
        select four(id) as f, label('abcdef', id) as l, street(a) as s, plus(array(1, 2), id) as p, twice('7') as t,
               jsonstring_as_addr('{"street": "s", "zip": 3}') as j, jsonstring_as_addr('no') as n, jsonstring_as_int('42') as i
        from t;
    create materialized view g as select twice(id) as k, sum(four(id)) as s from t group by twice(id);
    """
    running = Running(text, sessions)
    assert running.program.plans["g"].reason is None, "what stands in a function's place is planned as if it were written there"
    running.insert("t", (3, {"street": "x", "zip": 1}), (3, None))
    assert running.rows("v") == [
        (12, "abc-3", "x", [4, 5], 14, ("s", 3), None, 42),
        (12, "abc-3", None, [4, 5], 14, ("s", 3), None, 42),
    ]
    assert running.rows("g") == [(6, 24)]


@pytest.mark.core
def test_errors_of_a_functions_expression_have_their_place(sessions: SparkSessions) -> None:
    text = "create function f(x int) returns int as 1 +\n  y;\ncreate function g(x int) returns date as x"
    first, second = errors(text, sessions)
    assert first.span is not None
    assert (SourceText(text).slice(first.span), "`y`" in first.message) == ("y", True)
    assert second.span is not None
    assert (second.span.start_line, "cannot cast" in second.message) == (3, True)


@pytest.mark.core
def test_errors_at_a_call_have_the_place_of_the_call(sessions: SparkSessions) -> None:
    text = "create function f(x int) returns int as x;\ncreate table t (a int);\ncreate view v as select a, f(nope) as b from t"
    (message,) = errors(text, sessions)
    assert message.span is not None
    assert SourceText(text).slice(message.span) == "f(nope)"
    assert "`nope`" in message.message


def test_gunzip_needs_no_declaration(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (id int primary key, z varbinary);
        create materialized view v as select id, gunzip(z) as text from t;
        create materialized view g as select gunzip(z) as text, count(*) as n from t group by gunzip(z)""",
        sessions,
    )
    packed = gzip.compress("grüezi".encode())
    running.insert("t", (1, packed), (2, packed), (3, None))
    assert running.rows("v") == [(1, "grüezi"), (2, "grüezi"), (3, None)]
    running.delete("t", (2, packed))
    assert running.rows("g") == [("grüezi", 1), (None, 1)]
    found = run_adhoc(running.circuit, f"select gunzip(x'{packed.hex()}') as a").frame
    assert found is not None
    assert found.collect()[0][0] == "grüezi"
    other = Running("create table t (id int primary key, z varbinary)", sessions)
    found = run_adhoc(other.circuit, f"select gunzip(x'{packed.hex()}') as a").frame
    assert found is not None
    assert found.collect()[0][0] == "grüezi"
    own = (
        "create function gunzip(x int) returns int as x + 1; create table t (a int); create view v as select gunzip(a) as b from t"
    )
    assert compile_program(own, sessions).views["v"].columns[0].type.name == "INTEGER"
