"""Values and literals of the type TIME: incremental, and Spark's answer."""

from __future__ import annotations

import datetime

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_query
from tests.engine.compared import Compared

VIEWS = {
    "literal": "select k, time '12:00:00' as noon, cast(time '12:34:56.789' as decimal(18,9)) as seconds from t",
    "casts": "select k, cast('12:34:56' as time) as c, cast(at as varchar) as s, cast(at as time(3)) as m, at::time(0) as z from t",
    "numbers": "select k, cast(time '12:00:00' as decimal(7,2)) as d, cast(at as bigint) as b, hour(time '23:00') as h from t",
    "comparisons": "select k from t where at > time '06:00:00' and at <> time '12:00:00.000001'",
    "among": "select k, at from t where at in (time '00:00:00', time '12:00:00', time '23:59:59.999999')",
    "between": "select k from t where at between time '08:00' and time '18:00:00.123456' and not at = time '12:00'",
    "cases": "select case when at < time '12:00' then 'am' when at is null then '' else 'pm' end h, count(*) n from t group by 1",
    "simple_case": "select k, case at when time '12:00' then 1 when time '00:00' then 0 end c, coalesce(at, time '1:02') d from t",
    "groups": "select at, count(*) as n, min(k) as k from t group by at having at >= time '06:00'",
    "extremes": "select g, min(at) as lo, max(at) filter (where at < time '18:00') as hi from t group by g",
    "joined": "select t.k, s.name from t join s on t.at = s.starts where s.starts < time '20:00'",
    "optional": "select t.k, s.name from t left join s on t.at = s.starts and s.starts > time '03:00'",
    "windows": "select k, row_number() over (partition by g, at < time '12:00' order by at, k) as n from t",
    "nested": "select k, named_struct('a', time '12:00:00', 'l', array(at, time '00:00')) as n from t",
    "subquery": "select k from t where at in (select starts from s where starts <> time '12:00')",
    "typed": "select k, try_cast(case when k > 3 then '25:00' else '11:00' end as time) as x, cast(null as time(0)) as y from t",
}  # fmt: skip
PROGRAM = """
create table t (k int, g int, at time);
create table s (name varchar, starts time);
""" + "".join(f"create view {name} as {query};\n" for name, query in VIEWS.items())
TIMES = (*(datetime.time(*parts) for parts in ((), (12,), (6, 0, 0, 1), (23, 59, 59, 999999), (9, 30))), None)


def test_views_over_times_are_sparks_answer_by_their_deltas(sessions: SparkSessions) -> None:
    rows = {
        "t": lambda r: (r.randrange(6), r.randrange(3), r.choice(TIMES)),
        "s": lambda r: (r.choice("xy"), r.choice(TIMES)),
    }
    compared = Compared(PROGRAM, sessions, rows, seed=3)
    for name, plan in compared.running.program.plans.items():
        assert not any(isinstance(stage.node, Full) for stage in plan.stages), (name, plan.reason)
    for inserts, deletes in ((8, 0), (4, 3), (0, 5), (3, 1), (0, 20)):
        compared.step(inserts, deletes)
    assert not any(compared.tables.values())


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("TIME '12:00:00'", "CAST('12:00:00' AS TIME)"),
        ("CAST(a AS TIME(3))", "CAST(a AS TIME(3))"),
        ("TRY_CAST(a AS TIME(0))", "TRY_CAST(a AS TIME(0))"),
        ("CAST(a AS TIME WITHOUT TIME ZONE)", "CAST(a AS TIME)"),
        ("CAST(a AS MAP<TIME(1), ARRAY<TIME>>)", "CAST(a AS MAP<TIME(1), ARRAY<TIME>>)"),
        ("CAST(a AS STRUCT<b: TIME(2)>)", "CAST(a AS STRUCT<b: TIME(2)>)"),
        ("CAST(a AS TIMESTAMP)", "CAST(a AS TIMESTAMP)"),
    ],
)
def test_the_type_is_printed_as_it_is(written: str, printed: str) -> None:
    assert parse_query(f"SELECT {written}").sql(dialect=DIALECT) == f"SELECT {printed}"
