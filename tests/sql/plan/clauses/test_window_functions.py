"""How window functions, first rows, grouping sets and DISTINCT calls are planned."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, Shape
from airflow_pipelines.sql.plan.ir.stage import ViewPlan
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "t": (("k", "int"), ("s", "string"), ("b", "bigint"), ("ts", "timestamp_ntz"), ("m", "map<string,int>")),
    "u": (("k", "int"), ("n", "string")),
}


def _plan(analyzer: Analyzer, query: str) -> ViewPlan:
    return plan_view("v0", query, RELATIONS, analyzer.columns(query), ("t", "u"), analyzer)


@pytest.mark.parametrize(
    ("query", "strategies"),
    [
        ("select k, rank() over (partition by s order by b) as r from t", ["window by touched keys"]),
        ("select k, 1 + rank() over (partition by s, k order by b) * sum(b) over (partition by s) as r from t",
         ["window by touched keys"]),
        ("select k, rank() over (partition by s order by b) as r, sum(b) over (partition by k) as x from t",
         ["window by touched keys", "window by touched keys"]),
        ("select k, rank() over (order by b) as r from t", ["window by recomputing"]),
        ("select rank() over w as r, sum(b) over w as x from t window w as (partition by s order by b)",
         ["window by touched keys"]),
        ("select k, s from t qualify rank() over (partition by s order by b) = 1 and k > 0", ["window by touched keys"]),
        ("select k from (select k, rank() over (partition by s order by b) as r from t) where r < 3", ["window by touched keys"]),
        ("select s, sum(k) as x, rank() over (order by sum(k)) as r from t group by s", ["accumulators", "window by recomputing"]),
        ("select t.k, rank() over (partition by n order by b) as r from t join u on t.k = u.k", ["join", "window by touched keys"]),
        ("select k from t order by b desc, k limit 3", ["top by recomputing"]),
        ("select k, b from t order by 2, upper(s) limit 3 offset 1", ["top by recomputing"]),
        ("select k from t union all select k from u order by k limit 2", ["union", "top by recomputing"]),
        ("(select k from t) order by k limit 2", ["top by recomputing"]),
        ("select x.k from (select k from t order by k limit 2) as x join u on u.k = x.k", ["top by recomputing", "join"]),
        ("select s, k, count(*) as n from t group by cube (s, k) having grouping(s) = 0", ["accumulators"]),
        ("select s, count(distinct k) as n from t group by s", ["accumulators", "accumulators"]),
        ("select window(ts, '1 hour').start as w, count(*) as n from t group by window(ts, '1 hour')", ["accumulators"]),
        ("select s, count(*) as n from t group by s, session_window(ts, '1 hour')", ["window by touched keys"]),
        ("select count(*) as n from t group by session_window(ts, '1 hour')", ["window by recomputing"]),
    ],
)  # fmt: skip
def test_how_windows_and_groups_are_maintained(analyzer: Analyzer, query: str, strategies: list[str]) -> None:
    plan = _plan(analyzer, query)
    assert [stage.strategy for stage in plan.stages] == strategies
    assert [stage.strategy for stage in plan.recomputed] == [each for each in strategies if each.endswith("by recomputing")]


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("select k, rank() over (order by b) as r from t", "rank() over (order by b)"),
        ("select k from t order by b desc, k limit 3", "limit 3"),
        ("select count(*) as n from t group by session_window(ts, '1 hour')", "session_window(ts, '1 hour')"),
    ],
)
def test_what_has_all_rows_recomputed_is_named(analyzer: Analyzer, query: str, expression: str) -> None:
    (stage,) = _plan(analyzer, query).recomputed
    assert stage.reason is not None
    assert stage.reason.expression == expression


def test_a_window_is_keyed_by_what_all_partitions_have_in_common(analyzer: Analyzer) -> None:
    query = "select k, sum(b) over (partition by s, k) as x, count(*) over (partition by upper(s), k) as y from t"
    node = _plan(analyzer, query).stages[-1].node
    assert isinstance(node, AffectedKeys)
    assert node.shape is Shape.WINDOW
    assert node.key_types == ("int",)


def test_limit_without_order_is_recomputed_in_full_and_says_why(analyzer: Analyzer) -> None:
    assert _plan(analyzer, "select k from t limit 3").reason == "LIMIT without ORDER BY takes any rows"
