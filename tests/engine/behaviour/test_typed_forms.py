"""Windows without ORDER BY and places of what is unnested, against Spark's answers after every step."""

from __future__ import annotations

import random
from typing import Any

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared

TABLE = "create table t (k int, x int, s varchar, a varchar array, m map<varchar, int>);"
UNNESTED = {
    "places": "select t.k, e.s, e.x, e.n from t left join unnest(transform(t.a, c -> struct(c as s, t.x as x)))"
    " with ordinality as e(s, x, n) on true",
    "side_by_side": "select t.k, e.a, e.b, e.n from t, unnest(t.a, map_keys(t.m)) with ordinality as e(a, b, n)",
    "entries": "select t.k, e.key, e.value, e.n from t left join unnest(t.m) with ordinality as e(key, value, n) on true",
}
WINDOWS = {
    "unordered": "select k, x, lag(x) over (partition by k) as g, lead(s) ignore nulls over (partition by k) as d,"
    " row_number() over (partition by k) as n, rank() over (partition by k) as r, nth_value(x, 2) over (partition by k) as v,"
    " sum(x) over (partition by k range between unbounded preceding and current row) as s from t",
    "unordered_groups": "select k, lag(sum(x)) over () as g, ntile(2) over () as n from t group by k",
}


def _t(pick: random.Random) -> tuple[Any, ...]:
    return (
        pick.randint(0, 2),
        pick.choice([None, 1, 2, 3]),
        pick.choice([None, "[1, null]", '{"b": 1, "a": {"c": 2}}', "7", "[]"]),
        pick.choice([None, [], ["x", None], ["y", "x"]]),
        pick.choice([None, {}, {"p": 1}, {"p": None, "q": 3}, {"q": 1}]),
    )


@pytest.mark.core
@pytest.mark.parametrize("views", [UNNESTED, WINDOWS], ids=["unnested", "windows"])
def test_forms_that_depend_on_types(sessions: SparkSessions, views: dict[str, str]) -> None:
    text = TABLE + "\n".join(f"create view {name} as {query};" for name, query in views.items())
    compared = Compared(text, sessions, {"t": _t})
    compared.step(9)
    compared.step(2, 3)
    compared.step(0, 8)
    assert not any(compared.tables.values())
    assert {name for name in views if "full" in compared.strategies(name)} == set()
