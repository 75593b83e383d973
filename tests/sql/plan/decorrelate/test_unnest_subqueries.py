"""Which stages subqueries become, and which of them cannot be kept up by the change alone."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "a": (("k", "int"), ("x", "int"), ("s", "string")),
    "b": (("k", "int"), ("y", "int"), ("w", "string")),
    "c": (("k", "bigint"), ("z", "decimal(6,2)"), ("m", "map<int,int>")),
}
KEYED, RECOMPUTED, SUMS, GROUPS = "subquery by touched keys", "subquery by recomputing", "accumulators", "touched groups"
OUTER = "join by touched keys"


def _plan(analyzer: Analyzer, query: str) -> ViewPlan:
    return plan_view("v", query, RELATIONS, analyzer.columns(query), tuple(RELATIONS), analyzer)


@pytest.mark.parametrize(
    ("query", "strategies"),
    [
        # What only keeps or drops rows is one stage.
        ("select k from a where exists (select 1 from b where b.k = a.k and b.y > a.x)", [KEYED]),
        ("select k from a where not exists (select * from b where b.k = a.k)", [KEYED]),
        ("select k from a where x in (select y from b where w = 'p')", [KEYED]),
        ("select k from a where (k, x) in (select k, y from b)", [KEYED]),
        ("select k from a where x not in (select y from b where b.k = a.k)", [KEYED]),
        ("select k from a where x in (select k from c)", [KEYED]),
        # Nothing is kept of a join but what the subquery is asked for.
        ("select a.k from a join b on a.k = b.k where exists (select 1 from c where c.k = a.x)", ["join", KEYED]),
        # Rows that are there once each are joined.
        ("select a.k from a where a.k in (select k from b group by k having sum(y) > 2)", [SUMS, "join"]),
        ("select a.k from a where a.k in (select k from b union select x from a)", [SUMS, "join"]),
        # NOT IN also depends on whether there is a NULL, or nothing at all.
        ("select k from a where x not in (select y from b)", [KEYED, SUMS, "join"]),
        # Scalars that are always there are joined; those that may be missing keep the row.
        ("select k from a where x > (select avg(y) from b)", [SUMS, "join"]),
        ("select k from a where x > (select 2 * sum(y) from b where b.k = a.k)", [SUMS, "join"]),
        ("select k from a where x > (select min(y) from b where b.k = a.k)", [GROUPS, "join"]),
        ("select k from a where 0 = (select count(*) from b where b.k = a.k)", [SUMS, OUTER]),
        ("select k, (select sum(y) from b where b.k = a.k) as t from a", [SUMS, OUTER]),
        ("select k, (select count(*) from b where b.k = a.k and b.y < a.x) as n from a", [KEYED]),
        ("select k, (select y from b where b.k = a.k order by y desc limit 1) as n from a", [KEYED]),
        ("select k, (select y from b where y > 3) as n from a", [RECOMPUTED, "join"]),
        ("select k from a where exists (select 1 from b where y > 2)", [SUMS, "join"]),
        # Inside expressions.
        ("select k from a where exists (select 1 from b where b.k = a.k) or x = 1", [KEYED]),
        ("select k, case when x in (select y from b) then 1 else 0 end as n from a", [KEYED]),
        # Over and under groups.
        ("select k, sum(x) as t from a group by k having sum(x) > (select avg(y) from b)", [SUMS, SUMS, "join"]),
        ("select k, sum(x) as t from a group by k having exists (select 1 from b where b.k = a.k)", [SUMS, KEYED]),
        ("select sum((select max(y) from b where b.k = a.k)) as m from a", [GROUPS, OUTER, SUMS]),
        ("select (select max(y) from b where b.k = a.k) as m, count(*) as n from a group by (select max(y) from b where b.k = a.k)",
         [GROUPS, OUTER, SUMS]),
        # A text is compared as a number, a constant with all rows.
        ("select k from a where exists (select 1 from b where b.w = a.k)", [KEYED]),
        ("select k from a where 1 in (select y from b)", [SUMS, "join"]),
        ("select k from a where 1 not in (select y from b) or k = 2", [SUMS, SUMS, "join"]),
        ("select k from a where (1, 2) in (select y, k from b) or k = 2", [SUMS, "join"]),
        # In ON.
        ("select a.k, b.y from a left join b on a.k = b.k and exists (select 1 from c where c.k = b.y)", [KEYED, OUTER]),
        # Lateral subqueries.
        ("select a.k, t.n from a, lateral (select count(*) as n from b where b.k = a.k) t", [KEYED]),
        ("select t.y from a left join lateral (select y from b where b.k = a.k order by y desc limit 2) t on t.y > 0", [KEYED]),
        ("select a.k, t.m from a, lateral (select max(v) as m from (select y + 1 as v from b where b.k = a.k)) t", [KEYED]),
        # Common table expressions.
        ("with r as (select k, sum(y) as t from b group by k) select k from r where t = (select max(t) from r)",
         [SUMS, GROUPS, "join"]),
        ("with r(p, q) as (select k, y from b) select a.k from a where a.x in (select q from r where r.p = a.k)", [KEYED]),
        ("select k from a where x in (with d as (select y from b where y > 0) select y from d)", [KEYED]),
    ],
)  # fmt: skip
def test_what_subqueries_become(analyzer: Analyzer, query: str, strategies: list[str]) -> None:
    plan = _plan(analyzer, query)
    assert [stage.strategy for stage in plan.stages] == strategies
    assert [stage.strategy for stage in plan.recomputed] == [each for each in strategies if each.endswith("by recomputing")]


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("select k from a where exists (select 1 from b where b.k = a.k and b.y = a.x + 1 and b.w > a.s)", 2),
        ("select k from a where x in (select y from b where b.k <=> a.k)", 2),
        # Whether there is another value of the key matters here.
        ("select k from a where x not in (select y from b where b.k = a.k)", 1),
    ],
)
def test_equalities_are_keys(analyzer: Analyzer, query: str, keys: int) -> None:
    node = _plan(analyzer, query).stages[-1].node
    assert isinstance(node, AffectedKeys)
    assert len(node.key_types) == keys
    assert [len(source.keys) for source in node.sources] == [keys, keys]


def test_keys_of_two_types_are_compared_in_the_wider_one(analyzer: Analyzer) -> None:
    node = _plan(analyzer, "select k from a where x in (select k from c)").stages[-1].node
    assert isinstance(node, AffectedKeys)
    assert node.key_types == ("bigint",)
    other = _plan(analyzer, "select a.k from a where x > (select max(z) from c where c.k = a.k)").stages[-1].node
    assert isinstance(other, Select)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("select k from a where exists (select 1 from b where b.y > a.x)", "b.y > a.x"),
        ("select k from a where (k, x) not in (select k, y from b)", "k, x"),
        ("select k, coalesce(x in (select y from b), true) as n from a", "coalesce(x in (select y from b), true)"),
    ],
)
def test_a_subquery_without_equality_is_evaluated_for_every_row(analyzer: Analyzer, query: str, expression: str) -> None:
    plan = _plan(analyzer, query)
    node = plan.stages[-1].node
    assert isinstance(node, AffectedKeys)
    assert node.reason is not None
    assert "no equality correlates with its query" in node.reason.message
    assert node.reason.expression == expression
    assert [bool(source.keys) for source in node.sources] == [True, False]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select a.k, t.y from a, lateral (select y from b where b.y > a.x) t", "no equality correlates"),
    ],
)
def test_what_is_recomputed_in_full(analyzer: Analyzer, query: str, reason: str) -> None:
    plan = _plan(analyzer, query)
    assert reason in (plan.reason or "")
    assert [stage.strategy for stage in plan.stages] == ["full"]
