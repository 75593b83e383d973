"""What Spark leaves to the order of rows follows from the rows here: lists, FIRST and LAST, frames with ties, MAPs and VARIANTs."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import ProgramErrors
from tests.engine.compared import Compared

TABLES = """
create table t (k int, x int, s varchar, f double, a varchar array, m map<varchar, int>, d date, o boolean)
    with ('materialized' = 'true');
create table u (k int, at timestamp, until timestamp, day date) with ('materialized' = 'true');
"""
VIEWS = {
    "lists": "select k, collect_list(x) as l, array_agg(s) as g, collect_set(x) as c,"
    " collect_list(distinct s) as d from t group by k",
    "filtered": "select k, collect_list(x) filter (where o) as l, first(x) filter (where o) as f,"
    " last(s) filter (where x > 0) as s from t group by k",
    "of_nested": "select k, collect_list(struct(x, s)) as p, array_agg(a) as a, collect_set(struct(d)) as d from t group by k",
    "of_maps": "select k, collect_list(m) as m, first(m) ignore nulls as f, last(m) as l, any_value(m) as a from t group by k",
    "picks": "select k, first(x) as f, last(x) as l, any_value(s) as a, first_value(d) as v, last_value(f) as w from t group by k",
    "ignoring": "select k, first(x, true) as f, last(x) ignore nulls as l, any_value(s ignore nulls) as a,"
    " first(o) ignore nulls as o,"
    " last(x, true) filter (where o) as t from t group by k",
    "with_others": "select k, count(distinct s) as n, first(x) as f, sum(x) as s, size(collect_set(x)) as c from t group by k",
    "whole": "select first(x) as f, collect_list(x) as l, count(*) as n from t",
    "in_having": "select k from t group by k having first(x) is not null and array_contains(collect_list(s), 'a')",
    "in_subquery": "select k, x, (select last(y.x) from t y where y.k = t.k) as l,"
    " (select size(collect_list(y.s)) from t y) as n from t",
    "over": "select k, x, collect_list(x) over (partition by k) as l, first(x) over (partition by k order by s) as f from t",
    "ranged": "select k, s, x, nth_value(x, 2) over (partition by k order by s) as n,"
    " nth_value(x, 1) over (partition by k order by s desc) as d, nth_value(s,"
    " 2) ignore nulls over (partition by k order by x) as i,"
    " collect_list(x) over (partition by k order by s) as c, first_value(x) over (order by k, s desc range between current row"
    " and unbounded following) as f, last_value(x) over (partition by o order by s desc nulls first, d) as l from t",
    "ordered_maps": "select * from (select k, m, row_number() over (partition by k order by x) as n from t) where n = 1",
    "top_maps": "select k, m from t order by k limit 3",
    "variants": "select k, n, to_json(v) as v, schema_of_variant(v) as w from (select k, v, row_number() over (partition by k"
    " order by k) as n from (select k, case when o then to_variant_object(struct(d)) when not o then cast(d as variant)"
    " else cast(string(d) as variant) end as v from t)) where n <= 2",
    "max_by_variant": "select k, to_json(max_by(v, k)) as v, schema_of_variant(first(v) ignore nulls) as w,"
    " transform(collect_list(v), e -> to_json(e)) as l from (select k, case when o then cast(d as variant)"
    " else cast(string(d) as variant) end as v from t) group by k",
    "places": "select t.k, e.c, e.ord from t, unnest(t.a) with ordinality as e(c, ord)",
    "places_of_maps": "select t.k, e.key, e.value, e.n from t cross join unnest(t.m) with ordinality as e(key, value,"
    " n) where e.n > 1",
    "outer_places": "select t.k, e.c, e.ord from t left join unnest(t.a) with ordinality as e(c, ord) on true",
    "differences": "select k, (until - at) second as s, (until - at) hours to minutes as h, (day - date '2024-01-01') days as d,"
    " (until - at) months as m from u where (until - at) day > interval '1' day",
}
FULL = {"max_by_variant"}
"""Views that have no incremental rule."""
DAYS = ["2024-01-30", "2024-01-31", "2024-03-01"]


def _t(pick: random.Random) -> tuple[Any, ...]:
    return (
        pick.randint(0, 2),
        pick.choice([None, 1, 2, 3]),
        pick.choice([None, "a", "b", ""]),
        pick.choice([None, 1.5, float("nan"), 0.0]),
        pick.choice([None, [], ["x", None], ["y", "x"]]),
        pick.choice([None, {}, {"p": 1}, {"p": 2, "q": 3}, {"q": 1}]),
        pick.choice([None, *map(datetime.date.fromisoformat, DAYS)]),
        pick.choice([None, True, False]),
    )


def _u(pick: random.Random) -> tuple[Any, ...]:
    start, day = datetime.datetime(2024, 1, 31, 10), datetime.timedelta(days=1)
    return pick.randint(0, 2), start, start + pick.choice([-1, 0, 1.5, 40]) * day, pick.choice([None, start.date()])


def _created(names: list[str]) -> str:
    return TABLES + "\n".join(f"create view {name} as {VIEWS[name]};" for name in names)


@pytest.mark.parametrize("strategy", ["auto", "full"])
def test_what_follows_from_the_rows(sessions: SparkSessions, strategy: str) -> None:
    compared = Compared(_created(list(VIEWS)), sessions, {"t": _t, "u": _u}, strategy=strategy)
    compared.step(9)
    compared.step(3, 3)
    compared.step(1, 6)
    compared.step(0, 20)
    assert not any(compared.tables.values())
    if strategy == "auto":
        assert {name for name in VIEWS if "full" in compared.strategies(name)} == FULL


@pytest.mark.core
def test_lists_are_sorted_and_picks_are_by_value(sessions: SparkSessions) -> None:
    rows = [(1, 3, "b"), (1, None, "a"), (1, 2, None), (2, None, None)]
    views = (
        "create view v as select k, collect_list(x) as l, first(x) as f, first(x) ignore nulls as i, last(x) as g, last(s) as s,"
    )
    compared = Compared(
        f"create table t (k int, x int, s varchar); {views} any_value(s) as a, collect_set(s) as c from t group by k;",
        sessions,
        {"t": lambda _: rows.pop()},
    )
    compared.step(4)
    assert {row for row, weight in compared.sums["v"].items() if weight} == {
        (1, (2, 3), None, 2, 3, "b", None, ("a", "b")),
        (2, (), None, None, None, None, None, ()),
    }


@pytest.mark.core
def test_numbers_are_no_differences_of_times(sessions: SparkSessions) -> None:
    with pytest.raises(ProgramErrors, match="INTERVAL"):
        compile_program("create table t (a int, b int); create view v as select (a - b) day from t;", sessions)
