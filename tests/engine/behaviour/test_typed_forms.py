"""Windows without ORDER BY, places of rows, comparisons of MAPs and collations, against Spark's answers after every step."""

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
MAPS = {
    "equal_maps": "select l.k, r.x from t l join t r on l.m = r.m and l.k < r.k",
    "greatest_maps": "select k, max(m) as m, min_by(x, m) as x, count_if(m > map('p', 1)) as n from t group by k",
    "sorted_maps": "select k, m, rank() over (partition by k order by m desc) as r from t where m <> map('q', 1)",
}
VARIANTS = {
    "variants": "select v.k, e.pos, e.key, to_json(e.value) as value from (select k, parse_json(s) as v from t) v"
    " left join lateral variant_explode(v.v) as e on true",
    "viewed_variants": "select k, e.n, to_json(e.x) as x from (select k, parse_json(s) as v from t)"
    " lateral view variant_explode(v) e as n, name, x",
}

TEXT = "if(k = 1, upper(get(a, 0)), get(a, 0))"
COLLATIONS = {
    "cast_collations": f"select k, cast(cast({TEXT} as string collate utf8_lcase) as string collate utf8_binary) as s from t"
    f" where cast({TEXT} as string collate unicode_ci) <> 'Y'",
    "compared_collations": f"select {TEXT} collate utf8_lcase = 'X' as b, count(*) as n from t group by 1",
}
COLLATED_KEYS = {
    "collated_groups": f"select count(*) as n from t group by {TEXT} collate utf8_lcase",
    "collated_values": f"select k, count(distinct cast({TEXT} as string collate unicode_ci)) as n from t group by k",
}


def _t(pick: random.Random) -> tuple[Any, ...]:
    return (
        pick.randint(0, 2),
        pick.choice([None, 1, 2, 3]),
        pick.choice([None, "[1, null]", '{"b": 1, "a": {"c": 2}}', "7", "[]"]),
        pick.choice([None, [], ["x", None], ["y", "x"]]),
        pick.choice([None, {}, {"p": 1}, {"p": None, "q": 3}, {"q": 1}]),
    )


@pytest.mark.core("variants")
@pytest.mark.parametrize(
    "views",
    [UNNESTED, WINDOWS, MAPS, VARIANTS, {**COLLATIONS, **COLLATED_KEYS}],
    ids=["unnested", "windows", "maps", "variants", "collations"],
)
def test_forms_that_depend_on_types(sessions: SparkSessions, views: dict[str, str]) -> None:
    text = TABLE + "\n".join(f"create view {name} as {query};" for name, query in views.items())
    compared = Compared(text, sessions, {"t": _t})
    compared.step(9)
    compared.step(2, 3)
    compared.step(0, 8)
    assert not any(compared.tables.values())
    assert {name for name in views if "full" in compared.strategies(name)} == views.keys() & COLLATED_KEYS.keys()
