"""However deep or long a program is: it is read, or refused with a place, in seconds, and never ends in a RecursionError."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.sql.program.adhoc import parse_adhoc
from airflow_pipelines.sql.program.parser import parse_program

TABLE = "create table t (a int, s varchar);\n"
SECONDS = 30
"""Of the processor, for all sizes of one construct; what grows with the cube of the depth takes hours."""

DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"select {'(' * n}a{')' * n} as a from t",
    "condition": lambda n: f"select a from t where {'(' * n}a = 1{')' * n}",
    "case": lambda n: f"select {'case when a = 1 then 1 else ' * n}0{' end' * n} as a from t",
    "subqueries": lambda n: f"select * from {'(select * from ' * n}t{')' * n}",
    "scalar subqueries": lambda n: f"select {'(select max(a) + ' * n}1{' from t)' * n} as x from t",
    "in": lambda n: f"select a from t where {'a in (select a from t where ' * n}a = 1{')' * n}",
    "exists": lambda n: f"select a from t where {'exists (select 1 from t where ' * n}a = 1{')' * n}",
    "calls": lambda n: f"select {'abs(' * n}a{')' * n} as a from t",
    "casts": lambda n: f"select {'cast(' * n}a{' as int)' * n} as a from t",
    "lambdas": lambda n: f"select {'transform(array(a), x -> ' * n}x{')' * n} as a from t",
    "arrays": lambda n: f"select {'array[' * n}a{']' * n} as a from t",
    "unary": lambda n: f"select {'- ' * n}a as a from t",
    "not": lambda n: f"select a from t where {'not ' * n}a = 1",
    "conditions": lambda n: f"select a from t where {'(a = 1 or (a = 2 and ' * n}a = 3{'))' * n}",
    "with": lambda n: f"{'with c as (' * n}select a from t{') select * from c' * n}",
    "joins": lambda n: f"select 1 as x from {'(' * n}t{' cross join t)' * n}",
    "unions": lambda n: f"{'(' * n}select a from t{' union all select a from t)' * n}",
    "index": lambda n: f"select a{'[0]' * n} as a from t",
    "open": lambda n: f"select {'(' * n}",
    "open square": lambda n: f"select {'[' * n}",
}
GREATEST_DEPTH = 100 * int(os.environ.get("DEPTH_HUNDREDS", "20"))
LONG: dict[str, Callable[[int], str]] = {
    "sum": lambda n: f"select {'a + ' * n}a as a from t",
    "list": lambda n: f"select a from t where a in ({', '.join(map(str, range(n)))})",
    "or": lambda n: f"select a from t where {' or '.join(f'a = {i}' for i in range(n))}",
    "arguments": lambda n: f"select coalesce({', '.join(['a'] * n)}) as x from t",
    "columns": lambda n: f"select {', '.join(f'a as c{i}' for i in range(n))} from t",
    "union": lambda n: " union all ".join(["select a from t"] * n),
}


@pytest.fixture(autouse=True)
def _usual_recursion_limit() -> Iterator[None]:
    """That of the processes that compile programs: Airflow raises it where it is imported, as tests of the same process do."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.rest("in", "exists", "casts", "lambdas", "conditions", "with", "sum", "or", "columns", "union")
@pytest.mark.parametrize("name", [*DEEP, *LONG])
def test_a_deep_or_long_query_is_read_or_refused_with_its_place(name: str) -> None:
    check_sizes(name, (100, 400) if name in DEEP else (100, 1_000))


@pytest.mark.rest
@pytest.mark.parametrize("name", DEEP)
def test_a_very_deep_query_is_read_or_refused_with_its_place(name: str) -> None:
    check_sizes(name, (GREATEST_DEPTH,))


def check_sizes(name: str, sizes: tuple[int, ...]) -> None:
    begin = time.process_time()
    for size in sizes:
        query = {**DEEP, **LONG}[name](size)
        for read, text in ((parse_program, f"{TABLE}create view v as {query};"), (parse_adhoc, query)):
            try:
                read(text)
            except ProgramErrors as refused:
                (message,) = refused.messages
                assert name in DEEP, message.message
                assert "nests too deep" in message.message or "found the end" in message.message
                assert message.span is not None
    assert time.process_time() - begin < SECONDS


@pytest.mark.rest("text5-cannot nest deeper than 64", "text7-cannot nest deeper than 64")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"create view v as select {'(' * 50_000}1{')' * 50_000} as a;", "nests too deep: more than 200 of '(' are open here"),
        (f"create table t (a int default {'(' * 50_000}1{')' * 50_000});", "nests too deep"),
        (f"create table t (a int default {'(' * 150}1{')' * 150});", "nests too deep"),
        (f"create table t (a int lateness {'(' * 150}1{')' * 150});", "nests too deep"),
        (f"create function f(x int) returns int as {'(' * 150}x{')' * 150};", "nests too deep"),
        (f"create table t (a int {'array ' * 50_000});", "cannot nest deeper than 64"),
        (f"create table t (a {'row(x ' * 100}int{')' * 100});", "cannot nest deeper than 64"),
        (f"create type y as {'array<' * 50_000}int{'>' * 50_000};", "cannot nest deeper than 64"),
        (f"{'/*' * 50_000} create table t (a int);", "This comment is not closed"),
        (f"{'/*' * 50_000}{'*/' * 50_000} create table t (a int);", "found '*'"),
        (f"create table t (a int) with ('connectors' = '{'[' * 50_000}');", "is more than 100 levels deep"),
        (
            "create type y0 as (x int);" + "".join(f"create type y{n} as (x y{n - 1});" for n in range(1, 80)),
            "cannot nest deeper than 64",
        ),
    ],
)
def test_deep_declarations_are_refused_with_their_place(text: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as refused:
        parse_program(text)
    message = refused.value.messages[0]
    assert says in message.message
    assert message.span is not None


def test_a_connector_holds_only_what_can_be_kept() -> None:
    for value, says in (('{"a":' * 120 + "1" + "}" * 120, "levels deep"), ('{"a": "\\ud800"}', "half of a surrogate pair")):
        connector = f'[{{"transport": {{"name": "x", "config": {value}}}}}]'
        with pytest.raises(ProgramErrors, match=says):
            parse_program(f"create table t (a int) with ('connectors' = '{connector}');")


@pytest.mark.rest
def test_wide_programs_are_read() -> None:
    columns = ", ".join(f"c{number} int" for number in range(10_000))
    assert len(parse_program(f"create table w ({columns});").tables["w"].columns) == 10_000
    assert len(parse_program("".join(f"create table t{number} (a int);" for number in range(2_000))).tables) == 2_000
    assert parse_program(";" * 50_000 + TABLE + "-- x\n" * 50_000).tables.keys() == {"t"}
