"""Forms that plans write in another way: structs without names for their fields, generators in the SELECT list, and the like."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "t": (
        ("id", "bigint"),
        ("k", "int"),
        ("n", "smallint"),
        ("at", "timestamp_ntz"),
        ("s", "string"),
        ("f", "double"),
        ("o", "boolean"),
        ("l", "array<int>"),
        ("st", "struct<x:int,y:string>"),
    ),
    "u": (("k", "int"), ("c", "string")),
    "w": (("k", "int"), ("z", "int")),
}
GROUPS, SUMS, OUTER, LINEAR = ["touched groups"], ["accumulators"], ["join by touched keys"], ["linear"]


@pytest.mark.parametrize(
    ("query", "strategies"),
    [
        # Structs.
        ("select k, max(struct(at, n)) as m from t group by k", GROUPS),
        ("select k, max(struct(at, n)).n as m from t group by k", GROUPS),
        ("select k, max((at, n)) as m from t group by k", GROUPS),
        ("select k, collect_list(struct(at, n + 1, n as q, l[0], st.x, struct(k))) as m from t group by k", GROUPS),
        ("select k, max_by(struct(at, n), at) as m from t group by k", GROUPS),
        ("select struct(k, n) as s, count(*) as c from t group by struct(k, n)", SUMS),
        ("select struct(k, n + 1) as s, count(*) as c from t group by 1", SUMS),
        ("select id, max(struct(at, n)) over (partition by k) as m from t", ["window by touched keys"]),
        ("select struct(t.k, u.c) as s, transform(l, x -> struct(x, t.k)) as y from t left join u on t.k = u.k", OUTER),
        # Rows in parentheses that are no structs.
        ("select * from (select id, k, n from t) unpivot ((x, y) for name in ((k, n) as one, (n, k)))", LINEAR),
        ("select * from (select s, k, n, f from t) pivot (count(f) for (k, n) in ((1, 1) as a, (1, 2) as b))", SUMS + LINEAR),
        # Percentiles.
        ("select k, percentile_cont(0.5) within group (order by f) as p from t group by k", GROUPS),
        ("select percentile_disc(0.5) within group (order by f desc) filter (where o) as p from t", GROUPS),
        # Patterns.
        ("select id from t where s like any ('a%', 'b%') or s not like any ('c%', 'd%') or s ilike any ('E%')", LINEAR),
        ("select k, count_if(s like any ('a%', 'b%')) as c, any(o) as a from t group by k", SUMS),
        # Generators.
        ("select id, posexplode(l) from t", LINEAR),
        ("select id, posexplode_outer(l) as (p, x) from t where k > 1", LINEAR),
        ("select id, explode(map('a', k)) from t", LINEAR),
        ("select x + 1 as y from (select id, explode(map('a', k)) as (w, x) from t) q", LINEAR),
        ("select distinct inline(array(struct(k, n))) from t", SUMS),
        ("select stack(2, k, 1, k, 2) as (p, q), id from t", LINEAR),
        ("select id, json_tuple(s, 'a', 'b') from t", LINEAR),
        ("select *, posexplode(l) from t", LINEAR),
        ("select *, posexplode(l) as (p, x), k + 1 as q from t", LINEAR),
        ("select t.k, posexplode(l) as (n, x), t.n + 1 as q from t where t.n > 0", LINEAR),
        ("select t.id, posexplode(t.l) as (p, x) from t left join u on t.k = u.k", OUTER),
        # Chains of FULL JOIN with shared columns.
        ("select k, t.id, u.c, w.z from t full join u using (k) full join w using (k) where t.id > 0", OUTER + OUTER),
        ("select k, count(*) as n from t full join u using (k) left join w using (k) group by k", OUTER + OUTER + SUMS),
        ("select * from u full join w using (k) full join (select k, s from t) as x using (k)", OUTER + OUTER),
    ],
)
def test_common_forms_are_incremental(analyzer: Analyzer, query: str, strategies: list[str]) -> None:
    plan = plan_view("v", query, RELATIONS, analyzer.columns(query), tuple(RELATIONS), analyzer)
    assert plan.reason is None
    assert [stage.strategy for stage in plan.stages] == strategies
