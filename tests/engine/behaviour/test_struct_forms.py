"""Structs without names, generators in the SELECT list, percentiles and patterns, against Spark's answers after every step."""

from __future__ import annotations

import random
from typing import Any

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared

TABLES = (
    "create table t (id bigint, k int, n int, s varchar, f double, o boolean, l int array);\ncreate table u (k int, c varchar);\n"
)
QUERIES = {
    "latest": "select k, max(struct(n, s)) as m, max(struct(n, s)).s as s from t group by k",
    "latest_row": "select k, max((n, id)) as m from t group by k",
    "lists": "select k, sort_array(collect_list(struct(n, id + 1, s as q))) as m from t group by k",
    "struct_keys": "select struct(k, s) as g, count(*) as c from t group by struct(k, s)",
    "struct_sums": "select struct(k, n + 1) as g, sum(n) as c from t group by 1",
    "struct_windows": "select id, max(struct(n, s)) over (partition by k) as m from t",
    "struct_joins": "select struct(t.k, u.c) as g, t.id from t left join u on u.k = t.k",
    "medians": "select k, percentile_cont(0.5) within group (order by f) as p from t group by k",
    "discrete": "select k, percentile_disc(0.25) within group (order by n desc) filter (where o) as p from t group by k",
    "patterns": "select id, s like any ('a%', '%c') as y, s not like any ('a%', '%c') as z from t where s ilike any ('A%', 'B%')",
    "places": "select id, posexplode(l) from t where k > 0",
    "named_places": "select id, posexplode_outer(l) as (p, x) from t",
    "entries": "select id, explode(map('a', k, 'b', n)) from t",
    "sums_of_places": "with e as (select k, posexplode(l) as (p, x) from t) select p, sum(x) as x from e group by p",
    "stacked": "select stack(2, 'k', k, 'n', n) as (name, value), id from t",
    "fields": "select id, json_tuple(concat('{\"a\": ', k, '}'), 'a', 'b') as (a, b) from t",
}


def _t(draw: random.Random) -> tuple[Any, ...]:
    return (
        draw.randrange(9),
        draw.choice([None, 1, 2]),
        draw.choice([None, 1, 2, 3]),
        draw.choice([None, "a", "bc", "d"]),
        draw.choice([None, 1.5, 2.0, -1.0]),
        draw.choice([None, True, False]),
        draw.choice([None, [], [1], [2, None, 3]]),
    )


def test_forms_equal_the_batch_answer(sessions: SparkSessions) -> None:
    views = "".join(f"create view {name} as {query};\n" for name, query in QUERIES.items())
    compared = Compared(
        TABLES + views, sessions, {"t": _t, "u": lambda draw: (draw.choice([None, 1, 3]), draw.choice("xy"))}, seed=7
    )
    for inserts, deletes in ((7, 0), (2, 3), (0, 100)):
        compared.step(inserts, deletes)
    assert {name: plan.reason for name, plan in compared.running.program.plans.items() if plan.reason is not None} == {}
