"""Which queries are maintained how, and why others are not."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "t": (
        ("k", "int"),
        ("b", "bigint"),
        ("d", "decimal(5,2)"),
        ("w", "decimal(30,2)"),
        ("s", "string"),
        ("f", "double"),
        ("o", "boolean"),
        ("l", "array<int>"),
        ("ts", "timestamp_ntz"),
        ("v", "variant"),
        ("st", "struct<x:int,y:string>"),
    ),
    "u": (("k", "int"), ("n", "string")),
    "wide": tuple((f"c{at}", "int") for at in range(40)),
}


def _plan(analyzer: Analyzer, query: str) -> ViewPlan:
    return plan_view("v0", query, RELATIONS, analyzer.columns(query), ("t", "u", "wide"), analyzer)


@pytest.mark.parametrize(
    ("query", "strategies"),
    [
        ("select * from t", ["linear"]),
        ("select k + 1 as k, upper(s) as s from t where f > 0 order by k", ["linear"]),
        ("select s || 'it''s' as x, s like 'a\\_%' as y, `k` as `weird ``name` from t", ["linear"]),
        ("select transform(l, k -> k + 1) as l, k from t", ["linear"]),
        ("select k, explode(l) as x from t", ["linear"]),
        ("select t.st.x, st.y from t", ["linear"]),
        ("select x.k, u.n from t as x join u on x.k = u.k", ["join"]),
        ("select x.k, y.s from t x join t y on x.k = y.b", ["join"]),
        ("select u.n, count(*) as n2 from t join u using (k) group by u.n", ["accumulators"]),
        ("select x.k from t x cross join (select count(*) as n from u) c where x.k < c.n", ["accumulators", "join"]),
        ("select t.k from t join (select k, max(n) as n from u group by k) m on m.k = t.k", ["touched groups", "join"]),
        ("select k from t union all select k from u union all select 1 from u", ["union"]),
        ("select k from t union all (select max(k) as m from u)", ["touched groups", "union"]),
        ("select s, sum(k) as a, avg(k) as b, count(distinct s) as c from t group by s", ["accumulators"] * 2),
        ("select k % 2 as k, sum(b) as b from t group by k % 2 having count(*) > 1", ["accumulators"]),
        ("select s, count(*) as n from t group by all", ["accumulators"]),
        ("select s, count(*) as n from t group by 1", ["accumulators"]),
        ("select sum(d) / count(*) as q, bool_and(o) as a, count_if(o) as c from t", ["accumulators"]),
        ("with c as (select k, s from t) select a.k, b.s from c a join c b on a.k = b.k", ["join"]),
        ("with c as (select k, count(*) as n from t group by k) select c.n, u.n as m from c join u on c.k = u.k",
         ["accumulators", "join"]),
        ("with c(z) as (select k from t) select z from c", ["linear"]),
        ("with t as (select k as z from u) select z from t", ["linear"]),
        ("select distinct k from t", ["accumulators"]),
        ("select t.k from t left join u on t.k = u.k", ["join by touched keys"]),
        ("select t.k, u.k as j from t full join u on t.k < u.k", ["join by recomputing"]),
        ("select t.* from t anti join u on t.k <=> u.k and t.s > u.n", ["join by touched keys"]),
        ("select k, t.s from t join u using (k) left join wide on c0 = k", ["join", "join by touched keys"]),
        ("select k from t union select k from u", ["accumulators"]),
        ("select k from t intersect select k from u", ["accumulators"]),
        ("select k from t except all select k from u", ["accumulators", "linear"]),
        ("select 1 as x", ["full"]),
        ("select explode(sequence(1, cast(count(*) as int))) as x from t group by s", ["accumulators", "linear"]),
        ("select k, y from t lateral view explode(l) x as y", ["linear"]),
        ("select k, y from t left join lateral explode(l) as x(y) on true where y > 1", ["linear"]),
        ("select * from (values (1)) as q(z) join t on t.k = q.z", ["full", "join"]),
        ("select k + 1 as n, n * 2 as m from t", ["linear"]),
        ("select a.k from t a, t b where a.k = b.k", ["join"]),
        ("select date_trunc('month', ts) as m, count(*) from t group by 1", ["accumulators"]),
    ],
)  # fmt: skip
def test_what_is_incremental(analyzer: Analyzer, query: str, strategies: list[str]) -> None:
    plan = _plan(analyzer, query)
    assert [stage.strategy for stage in plan.stages] == strategies
    assert [stage.strategy for stage in plan.recomputed] == [each for each in strategies if each.endswith("by recomputing")]
    assert plan.stages[-1].relation == "v0"
    assert [stage.relation for stage in plan.stages[:-1]] == [f"v0${at + 1}" for at in range(len(plan.stages) - 1)]


@pytest.mark.parametrize(
    ("query", "reason", "expression"),
    [
        ("select k from t limit 3", "LIMIT", "limit 3"),
        ("select * from sql_keywords()", "could not be found", ""),
        ("select posexplode(collect_list(k)) as (p, x) from t", "several columns", "posexplode(collect_list(k)) as (p, x)"),
        ("select map(s, k) as m, count(*) as n from t group by map(s, k)", "groups by a MAP", "map(s, k)"),
        ("select max(to_json(v)) as x from t", "VARIANT", "v"),
    ],
)
def test_what_is_recomputed_and_why(analyzer: Analyzer, query: str, reason: str, expression: str) -> None:
    plan = _plan(analyzer, query)
    assert plan.reason is not None
    assert reason in plan.reason
    assert plan.stages == (plan.full,)
    assert isinstance(plan.full.node, Full)
    assert plan.full.node.reason is not None
    assert plan.full.node.reason.expression == expression


def test_a_stage_says_which_part_of_the_query_has_it_recomputed(analyzer: Analyzer) -> None:
    (stage,) = _plan(analyzer, "select t.k, u.k as j from t full join u on t.k < u.k").recomputed
    assert stage.reason is not None
    assert stage.reason.message == "no equality joins the two sides, so that every row may match every other"
    assert (stage.reason.expression, stage.reason.span) == ("t.k < u.k", Span(1, 44, 1, 52))


def test_the_full_strategy_has_the_query_as_it_was_written(analyzer: Analyzer) -> None:
    query = "SELECT /* why */ k  FROM t -- so"
    assert _plan(analyzer, query).full.node == Full(query, ("t", "u", "wide"), CHOSEN)


def test_columns_are_taken_by_position_and_types_are_those_of_the_query(analyzer: Analyzer) -> None:
    plan = plan_view("v0", "select b, k as n from t", RELATIONS, (("x", "any"), ("y", "any")), ("t",), analyzer)
    assert plan.columns == (("x", "bigint"), ("y", "int"))
    assert plan.stages[-1].columns == plan.columns


def test_equal_calls_and_accumulators_are_shared(analyzer: Analyzer) -> None:
    node = (
        _plan(analyzer, "select count(*) as a, count(*) + 1 as b, sum(k) as c, avg(k) as d, count(k) as e from t").stages[-1].node
    )
    assert isinstance(node, Aggregate)
    assert len(node.calls) == 4
    # COUNT(*), the sum, and how many values there are.
    assert len(node.accumulators) == 3


@pytest.mark.parametrize(
    ("call", "exact"),
    [
        ("count(*)", True),
        ("count(k, s)", True),
        ("count(distinct k)", True),
        ("sum(k)", True),
        ("sum(b)", True),
        ("sum(cast(k as tinyint))", True),
        ("sum(d)", True),
        ("sum(cast(d as decimal(27,2)))", True),
        ("sum(cast(d as decimal(28,6)))", True),
        ("sum(cast(d as decimal(28,7)))", False),
        ("sum(w)", True),
        ("sum(f)", False),
        ("sum(distinct k)", True),
        ("sum(k) filter (where o)", True),
        ("avg(k)", True),
        ("avg(b)", True),
        ("avg(f)", False),
        ("avg(d)", True),
        ("avg(cast(d as decimal(33,6)))", True),
        ("avg(cast(d as decimal(34,2)))", False),
        ("avg(cast(d as decimal(20,7)))", False),
        ("every(o)", True),
        ("bool_or(o)", True),
        ("some(o)", True),
        ("count_if(k > 1)", True),
        ("min(k)", False),
        ("stddev(k)", False),
        ("collect_set(k)", False),
        ("percentile(k, 0.5)", False),
    ],
)
def test_only_exact_sums_follow_from_accumulators(analyzer: Analyzer, call: str, exact: bool) -> None:
    node = _plan(analyzer, f"select s, {call} as x from t group by s").stages[-1].node
    assert isinstance(node, Aggregate)
    assert node.is_linear is exact
