"""Constants that cannot be evaluated: a program error where Spark refuses the query, else a step error when it is evaluated."""

from __future__ import annotations

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from tests.engine.behaviour.test_time import at
from tests.engine.programs import Running

TABLES = """
create table t (id int primary key, a int, b bigint, s varchar, d decimal(10,2), x double, dt date, ts timestamp, arr int array,
    v variant, amount decimal(38,10));
create table u (id int, k int, s varchar);
"""

# Spark's analyzer accepts them, its optimizer fails.
FAILING = (
    "select 1/0 as x from t",
    "select cast('abc' as int) as x from t",
    "select a from t where 1/0 = 1",
    "select a from t where a > 1 and cast('x' as int) = a",
    "select sum(1/0) as x from t",
    "select a, count(*) as c from t group by a having 1/0 > 1",
    "select t.a from t join u on t.id = u.id and 1/0 = 1",
    "select t.a from t left join u on t.id = u.id and u.k = cast('z' as int)",
    "select row_number() over (partition by a order by 1/0, id) as n from t",
    "select a, (select 1/0) as x from t",
    "select a from t where a in (select 1/0 from u)",
    "select a from t where a between 1 and 1/0",
    "select a from t union all select 1/0 from u",
    "select distinct 1/0 as x from t",
    "select a from t order by 1/0 limit 3",
    "with c as (select 1/0 as x from t) select x + 1 as y from c",
    "select explode(sequence(1, 10, -1)) as e from t",
    "select e from t lateral view explode(array(1, 1/0)) z as e",
    "select a from t qualify row_number() over (partition by a order by b, id) = 1/0",
    "select max(a) filter (where 1/0 = 1) as x from t",
    "select avg(1/0) over (partition by a) as x from t",
    "select stddev(a + 1/0) as x from t",
    "select 2147483647 + 1 as x from t",
    "select cast(300 as tinyint) as x from t",
    "select 99999999999999999999999999999999999999 + 1 as x from t",
    "select cast(123456 as decimal(4,2)) as x from t",
    "select cast('2020-02-30' as date) as x from t",
    "select to_date('2020', 'qqqqq') as x from t",
    "select to_timestamp('2020-01-01', 'bad fmt') as x from t",
    "select timestamp_seconds(99999999999999) as x from t",
    "select cast(interval '9999999' day as smallint) as x from t",
    "select timestamp '294247-01-10 04:00:54.775807' + interval '1' second as x from t",
    "select 'abc' rlike '*' as x from t",
    "select 'x' like 'a/b' escape '/' as x from t",
    "select parse_json('{') as x from t",
    "select cast(parse_json('\"x\"') as int) as x from t",
    "select from_json('{', 'a int', map('mode', 'FAILFAST')) as x from t",
    "select schema_of_json('{') as x from t",
    "select xpath_int('<a>', 'a') as x from t",
    "select repeat('a', 2147483647) as x from t",
    "select element_at(array(1, 2), 0) as x from t",
    "select map('a', 1, 'a', 2) as x from t",
    "select transform(arr, x -> 1/0) as x from t",
    "select a from t, lateral (select 1/0 as z from u where u.k = t.a)",
    "with recursive c(n) as (select 1/0 union all select n + 1 from c where n < 5) select n from c",
    "select a, 1/0 as z from t where ts > now() - interval '1' hour",
    "select id from t where ts > now() - interval '1' hour * (1/0)",
    "select id from t where unix_timestamp() > 1/0",
)
# Spark evaluates none of these constants before it sees a row, or never.
FINE = (
    "select case when a > 1 then 1/0 else 2 end as x from t",
    "select coalesce(a, 1/0) as x from t",
    "select if(a > 1, cast('abc' as date), null) as x from t",
    "select a from t where exists (select 1/0 from u)",
    "select false and 1/0 = 1 as x from t",
    "select try_divide(1, 0) as x, try_cast('abc' as int) as y from t",
    "select regexp_replace(s, '(', 'x') as x from t",
    "select date_trunc('foo', ts) as x, get_json_object(s, '$[') as y from t",
    "select typeof(1/0) as x from t",
)
# Spark's analyzer needs the constant itself: the marks show the place.
REFUSED = (
    ("select * from («values (1/0)») as z(c)", 'Failed to evaluate the SQL expression "(1 / 0)"'),
    ("select a from t limit «cast('x' as int)»", "cannot be cast to \"INT\" because it is malformed"),
    ("select round(d, «1/0») as x from t", "Division by zero"),
    ("select percentile(a, array(0.5, «1/0»)) as x from t", "Division by zero"),
    ("select * from (select a, s from t) pivot (sum(a) for s in («1/0»))", "Division by zero"),
    ("select «date '2020-02-30'» as x from t", "The value of the typed literal \"DATE\" is invalid"),
    ("select «time '25:00:00'» as x from t", "The value of the typed literal \"TIME\" is invalid"),
    ("select «1e400» as x from t", "outside the valid range for double"),
    ("select ts + interval «'1-13' year to month» as x from t", "Error parsing '1-13' to interval"),
    ("«select cast(d as decimal(5,10)) as x from t»", "Decimal scale (10) cannot be greater than precision (5)"),
    ("«select collate(s, 'FOO') as x from t»", "The value FOO does not represent a correct collation name"),
    ("select «to_char(d, '99.999.9')» as x from t", "At most one . or D is allowed"),
    (
        "«with recursive c(n) as (select 'a' union all select n + 1 from c where n < 5) select n from c»",
        'Failed to merge incompatible data types "STRING" and "BIGINT"',
    ),
    ("«select " + "+".join(["a"] * 3000) + " as x from t»", "too complex to parse"),
)  # fmt: skip


def program(*queries: str) -> str:
    return TABLES + "".join(f"create view v{at} as {query};\n" for at, query in enumerate(queries))


def test_what_spark_accepts_compiles(sessions: SparkSessions) -> None:
    compiled = compile_program(program(*FAILING, *FINE), sessions)
    plans = [compiled.plans[f"v{at}"] for at in range(len(FAILING) + len(FINE))]
    for query, plan in zip(FAILING, plans, strict=False):
        assert isinstance(plan.stages[-1].node, Full), query
        assert plan.reason is not None, query
    for query, plan in zip(FINE, plans[len(FAILING) :], strict=True):
        assert not isinstance(plan.stages[-1].node, Full), (query, plan.reason)


@pytest.mark.core
def test_the_reason_of_the_full_strategy_is_the_constant(sessions: SparkSessions) -> None:
    plan = compile_program(program("select a + 1/0 as x from t"), sessions).plans["v0"]
    assert plan.reason is not None
    assert plan.reason.startswith("Spark cannot plan the query: Division by zero.")
    assert plan.reason.endswith(" in 1/0")


@pytest.mark.core
def test_what_spark_refuses_is_an_error_at_its_place(sessions: SparkSessions) -> None:
    marked = program(*(query for query, _ in REFUSED))
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions)
    source = SourceText(text)
    assert len(caught.value.messages) == len(REFUSED)
    for (query, says), message in zip(REFUSED, caught.value.messages, strict=True):
        assert says in message.message, query
        assert not {"org.apache", "SQLSTATE", "java."} & set(message.message.split(":")), query
        assert message.span is not None
        assert source.slice(message.span) == query[query.index("«") + 1 : query.index("»")]


@pytest.mark.core
@pytest.mark.parametrize("strategy", ["auto", pytest.param("full", marks=pytest.mark.rest)])
@pytest.mark.parametrize(
    ("query", "condition", "expression"),
    [
        ("select 1/0 as x from t", "DIVIDE_BY_ZERO", "1/0"),
        ("select a, count(*) as n from t group by a having 1/0 > 1", "DIVIDE_BY_ZERO", "1/0"),
        ("select id from t where unix_timestamp() > 1/0", "DIVIDE_BY_ZERO", "1/0"),
        ("select t.a from t left join u on t.id = u.id and u.k = cast('z' as int)", "CAST_INVALID_INPUT", "cast('z' as int)"),
        ("select timestamp_seconds(99999999999999) as x from t", "ArithmeticException", None),
        ("select case when a > 1 then 1/0 else 2 end as x from t", "DIVIDE_BY_ZERO", "1 / 0"),
    ],
)
def test_the_step_fails_and_names_view_and_expression(
    sessions: SparkSessions, query: str, condition: str, expression: str | None, strategy: str
) -> None:
    running = Running(f"create table other (n int);\n{program(query, 'select count(*) as n from other')}", sessions, strategy)
    running.circuit.publish(running.circuit.step([], at("10:00:00")))
    running.insert("other", (1,))
    before = running.circuit.snapshot
    with pytest.raises(StepError) as failed:
        running.step(running.changes("u", (1, 2, "x")), running.changes("t", (1, 2, 3, *[None] * 8)))
    assert (failed.value.view, failed.value.condition) == ("v0", condition)
    assert (failed.value.expression or "").lower().replace(" ", "") == (expression or "").replace(" ", "")
    assert running.circuit.snapshot is before


@pytest.mark.core
def test_a_recursion_with_a_constant_that_fails(sessions: SparkSessions) -> None:
    text = """create table e (a int, b int);
    declare recursive view r (x int, y int);
    create view r as select a as x, b as y from e union select r.x, cast('abc' as int) from r join e on r.y = e.a;"""
    running = Running(text, sessions)
    assert isinstance(running.program.plans["r"].stages[-1].node, Recursive)
    with pytest.raises(StepError) as failed:
        running.insert("e", (1, 2), (2, 3))
    assert (failed.value.view, failed.value.condition) == ("r", "CAST_INVALID_INPUT")


@pytest.mark.core
def test_a_value_of_the_clock_that_fails_names_a_view_that_reads_it(sessions: SparkSessions) -> None:
    query = "select id from t where ts > now() - make_dt_interval(0, 0, 0, 1 / (hour(now()) - 10))"
    running = Running(program("select now() as at", query), sessions)
    running.circuit.publish(running.circuit.step([], at("11:00:00")))
    with pytest.raises(StepError) as failed:
        running.circuit.step([], at("10:00:00") + 24 * 3600 * 1_000_000)
    assert (failed.value.view, failed.value.condition) == ("v1", "DIVIDE_BY_ZERO")


@pytest.mark.core
@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("create table t (a int, b double default 1/0)", "b", "The DEFAULT of column b is wrong: Division by zero."),
        ("create table t (a int default 'abc')", "a", "The DEFAULT of column a is wrong: The value 'abc' of the type"),
        ("create table t (a tinyint default 300)", "a", "The DEFAULT of column a is wrong: The value 300 of the type"),
        ("create table t (a double lateness 1/0)", "a", "LATENESS of column a of t: Division by zero."),
    ],
)
def test_constants_of_a_declaration_are_evaluated(sessions: SparkSessions, text: str, place: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        compile_program(text, sessions)
    (message,) = caught.value.messages
    assert message.message.startswith(says)
    assert message.span is not None
    assert SourceText(text).slice(message.span) == place


def test_what_nests_too_deep_is_recomputed(sessions: SparkSessions) -> None:
    compiled = compile_program(program(f"select {' + '.join(['a'] * 700)} as x from t"), sessions)
    assert compiled.plans["v0"].reason == "the query nests too deep to be decomposed"


def test_a_long_chain_of_conditions_does_not_nest(sessions: SparkSessions) -> None:
    alternatives = " or ".join(f"a = {number}" for number in range(1500))
    compiled = compile_program(program(f"select a from t where {alternatives}"), sessions)
    assert compiled.plans["v0"].reason is None


E, T = "create table e (a int, b int);", "create table t (a int, s varchar, ts timestamp lateness interval 1 hour);"
COMPILE = {
    "function": "create function f(x int) returns int as 1/0;" + T + "create view v as select f(a) as y from t",
    "argument": "create function f(x varchar) returns int as cast(x as int);"
    + T
    + "create view v as select a + f('abc') as y from t",
    "view on view": T + "create view v as select 1/0 as x, a from t; create view w as select sum(x) as y from v group by a",
    "names": 'create table "tä😀" ("ü" int); create view "v😀" as select "ü" + 1/0 as "x😀" from "tä😀"',
    "recursion": E
    + "declare recursive view r (x int); create view r as select cast('z' as int) as x union select x + 1 from r where x < 9",
    "nothing": E + "declare recursive view r (x int); create view r as select x from r",
    "asof": T + "create view v as select t.a, 1/0 as z from t left asof join t as q match_condition (t.ts >= q.ts) on t.a = q.a",
    "no table": "create view v as select 1/0 as x",
}
REFUSE = {
    "final rows": T
    + "create view v with ('emit_final' = 'h') as select date_trunc('hour', ts) as h, sum(1/0) as x from t group by 1",
    "lateness": "create table t (a timestamp lateness interval '99999999999' hour)",
    "levels": T + "create view v as " + "select * from (" * 400 + "select a from t" + ")" * 400,
    "cases": T + "create view v as select " + "case when a = 1 then 1 else " * 400 + "0" + " end" * 400 + " as x from t",
    "parentheses": T + "create view v as select " + "(" * 400 + "a" + ")" * 400 + " as x from t",
    "asof": T + "create view v as select t.a from t asof join t as q match_condition (t.ts >= cast('x' as timestamp)) on t.a = q.a",
}


@pytest.mark.core
@pytest.mark.parametrize("name", COMPILE)
def test_odd_programs_compile(sessions: SparkSessions, name: str) -> None:
    assert compile_program(COMPILE[name], sessions).plans


@pytest.mark.core
@pytest.mark.parametrize("name", REFUSE)
def test_odd_programs_are_refused_with_a_place(sessions: SparkSessions, name: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        compile_program(REFUSE[name], sessions)
    assert all(message.span is not None and message.message for message in caught.value.messages)
