"""Aggregates by accumulators, DISTINCT, and grouping sets, against Spark's answers after every step."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.operators import accumulate
from airflow_pipelines.engine.operators.column_totals import united_totals
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.noted_ways import noted
from tests.engine.sizes import SIZES

TABLE = """
create table t (k int, s varchar, b bigint, d decimal(8,2), w decimal(38,3), o boolean) with ('materialized' = 'true');
create table u (k int, n varchar) with ('materialized' = 'true');
create table a (k int, s varchar, b bigint, d decimal(8,2), w decimal(38,3), o boolean) with ('append_only' = 'true');
"""
QUERIES = {
    "moments": "select s, stddev(k) as a, var_pop(d) as b, stddev_pop(b) filter (where o) as c, variance(w) as e from t group by s",
    "truths": "select s, any(o) as a, some(o) as b, every(o) as c, bool_or(k > 1) filter (where o) as e, count_if(o) as f"
    " from t group by s",
    "sums": "select k, sum(w) as a, avg(d) as b, avg(b) as c, count(k, s) as e from t group by k",
    "one_distinct": "select s, count(distinct k) as n, sum(distinct k) as x, count(distinct k) filter (where o) as f"
    " from t group by s",
    "many_distinct": "select s, count(distinct k) as n, avg(distinct d) as a, count(*) as c, sum(b) as x, count(distinct k, b) as p"
    " from t group by s having count(*) > 1",
    "distinct_of_all": "select count(distinct s) as n, count(distinct k) as m, count(*) as c from t where k > 0",
    "distinct_joined": "select n, count(distinct s) as a, count(distinct d) as b from t join u on t.k = u.k group by n",
    "distinct_and_extremes": "select s, count(distinct k) as n, max(b) as m from t group by s",
    "distinct_and_filters": "select s, count(distinct k) filter (where o) as n, every(o) as e, avg(distinct k + 1) as y,"
    " count_if(o) filter (where b > 0) as c, sum(d) filter (where o is null) as x, count(k, b) as p, count(coalesce(b, 1)) as q"
    " from t group by s having count(*) filter (where o) > 0 or s is null",
    "distinct_and_kept": "select s, max(b) filter (where o) as m, min(s) as l, count(distinct k) as n, sum(distinct b) as x,"
    " count(distinct k) filter (where o is null) as y, count(*) as c from a group by s",
    "distinct_of_none": "select count(distinct s) as n, sum(distinct k) as x, count(*) as c, sum(b) as y, every(o) as e"
    " from t where k > 99",
    "distinct_of_constants": "select k, count(distinct 1) as n, count(distinct s) as m, count(1) as c, count(null) as d,"
    " count(distinct null) as e, some(null) as f from t group by k",
    "distinct_of_kinds": "select k % 2 as g, count(distinct array(k, b)) as n, count(struct(k)) as m, count(distinct (s, o)) as p,"
    " count(map(1, k)) as q, count(distinct if(o, -0.0D, if(k = 1, 0.0D, double('nan')))) as f from t group by k % 2",
    "distinct_by_zeros": "select if(o, -0.0D, if(k = 1, 0.0D, double('nan'))) as g, count(distinct s) as n, count(distinct b) as m,"
    " count(*) as c from t group by if(o, -0.0D, if(k = 1, 0.0D, double('nan')))",
    "distinct_in_sets": "select s, o, grouping(s) as g, count(distinct k) as n, count(distinct b) filter (where k > 0) as m,"
    " sum(b) as x from t group by grouping sets ((s, o), (s), ()) having grouping(s) = 1 or count(*) > 1",
    "distinct_and_lists": "select s, count(distinct k) as n, count(*) as c, array_sort(collect_list(distinct b)) as l,"
    " percentile(distinct k, 0.5) as p from t group by s",
    "distinct_and_touched": "select s, count(distinct k) as n, max(distinct b) as m, sum(distinct cast(k as double)) as x,"
    " count(*) as c from t group by s having count(distinct k) > 1 or max(b) is null",
    "distinct_of_rows": "select count(distinct *) as n, count(*) as c, cast(max(null) as int) as m from (select k, s, o from t)",
    "distinct_only_asked": "select s from t group by s having count(distinct k) > 1 and count(*) > 2",
    "distinct_and_more": "select s, count(distinct k) as n, size(collect_set(b)) as m from t group by s",
    "rolled_up": "select s, k, sum(b) as x, grouping(s) as g, grouping_id() as i, grouping_id(s, k) as j"
    " from t group by rollup(s, k)",
    "cubed": "select s, o, count(distinct k) as n, sum(k) as x from t group by cube(s, o)",
    "sets": "select s, o, k % 2 as p, count(*) as n from t group by grouping sets ((s, o), (k % 2), (s), (s)) having count(*) > 1",
    "mixed_sets": "select s, o, max(k) as m, grouping_id() as g from t group by s, rollup(o)",
    "with_cube": "select s, count(*) as n from t group by s, o with cube",
    "nothing": "select count(*) as n from t group by grouping sets (())",
    "all_of_it": "select sum(k) as n from t group by all",
    "by_alias": "select s as z, k + 1 as q, count(*) as n from t group by z, 2",
    "chosen": "select s, max_by(k, b) as m, min_by(d, k) as n, mode(k) as o from t group by s",
    "ranked_sets": "select s, rank() over (partition by grouping(s) order by sum(b)) as r from t group by cube(s, o)",
    "extremes": "select s, max(k) as a, min(b) filter (where o) as b, max(d) - min(w) as c, max(s) as e, count(*) as n"
    " from a group by s",
    "extremes_of_all": "select min(k) as a, max(s) as b, min(o) as c from (select * from a union all select * from a where k > 1)",
    "pivoted": "select * from (select s, k, b from t) pivot (sum(b) as x, count(*) as n for k in (1 as one, 2 as two))",
}
STRATEGIES = {
    "moments": ["accumulators"],
    "truths": ["accumulators"],
    "sums": ["accumulators"],
    "one_distinct": ["accumulators", "accumulators"],
    "many_distinct": ["accumulators"] * 4,
    "distinct_and_filters": ["accumulators"] * 3,
    "distinct_and_kept": ["accumulators"] * 3,
    "distinct_of_none": ["accumulators"] * 3,
    "distinct_of_constants": ["accumulators"] * 4,
    "distinct_of_kinds": ["accumulators"] * 4,
    "distinct_by_zeros": ["accumulators"] * 3,
    "distinct_and_more": ["touched groups"],
    "cubed": ["linear", "accumulators", "accumulators"],
    "rolled_up": ["accumulators"],
    "extremes": ["accumulators"],
    "extremes_of_all": ["accumulators"],
    "distinct_and_extremes": ["accumulators", "accumulators", "accumulators", "touched groups", "join"],
}


def _t(draw: random.Random) -> tuple[Any, ...]:
    return (
        draw.choice([None, 1, 1, 2, -3]),
        draw.choice([None, "a", "a", "b"]),
        draw.choice([None, 0, 0, 5, 2**40]),
        draw.choice([None, Decimal("1.50"), Decimal("-2.25"), Decimal("1000.00")]),
        draw.choice([None, Decimal("1.500"), Decimal("123456789012.125")]),
        draw.choice([None, True, False]),
    )


def _u(draw: random.Random) -> tuple[Any, ...]:
    return draw.choice([None, 1, 2]), draw.choice(["x", "y"])


@pytest.mark.parametrize("size", ["small", "looked up", "narrow"])
def test_aggregates_equal_the_batch_answer(sessions: SparkSessions, size: str) -> None:
    views = "".join(f"create view {name} as {query};\n" for name, query in QUERIES.items())
    compared = Compared(TABLE + views, sessions, {"t": _t, "u": _u, "a": _t}, seed=len(size), limits=SIZES[size])
    for inserts, deletes in ((6, 0), (2, 5)):
        compared.step(inserts, deletes)
    for name, strategies in STRATEGIES.items():
        assert compared.strategies(name) == strategies, name


def test_many_rows_of_few_groups_are_added_up_without_spark(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    added_up: list[int | None] = []
    totals = noted(united_totals, lambda _, batch: added_up.append(None if batch is None else batch.rows))
    monkeypatch.setattr(accumulate, "united_totals", totals)
    views = {
        "totals": "select s, o, count(*) as n, count(b) as c, sum(k) as x, sum(b) as y, avg(d) as z from t group by s, o",
        "shown": "select s, sum(d) as x from t group by s having sum(d) > 0",
        "extremes": "select k, min(s) as a, max(b) as b, max(w) as c, min(o) as e, sum(d) as f from a group by k",
        "kinds": "select distinct o from a",
        "too_many": "select b, d, w, count(*) as n from a group by b, d, w",
    }
    text = "".join(f"create view {name} as {query};\n" for name, query in views.items())
    limits = Limits(small_rows=24, small_input=24, tiny=2, fan_out=24, driver_rows=24)
    compared = Compared(TABLE + text, sessions, {"t": _t, "a": _t}, limits=limits)
    # Many rows, few, many that take away others, and many again.
    steps = []
    for inserts, deletes in ((90, 0), (5, 0), (60, 60), (90, 0)):
        compared.step(inserts, deletes)
        steps.append(sorted(added_up, key=repr))
        added_up.clear()
    first, few, losing, last = steps
    assert first == losing == last == [3, 3, 4, 9, None], "by s, by o, by k, by both; and more groups than fit into memory"
    assert len(few) == 5
    assert None not in few
