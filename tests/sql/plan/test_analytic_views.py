"""Views that people write about what users do over time: cohorts, funnels, retention, and the parts that these are made of."""

from __future__ import annotations

from itertools import combinations

import pytest

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.planner import plan_view

RELATIONS = {
    "events": (("id", "bigint"), ("user_id", "bigint"), ("at", "timestamp_ntz"), ("kind", "string"), ("amount", "decimal(10,2)")),
    "users": (("id", "bigint"), ("country", "string"), ("signed", "date"), ("manager", "bigint")),
}

COHORTS = """with f as (select user_id, min(cast(at as date)) as d0 from events group by user_id),
    a as (select distinct user_id, cast(at as date) as d from events)
select {} from f join a on a.user_id = f.user_id {} group by {}"""
WEEK = "date_trunc('week', f.d0) as week"
DURING = "and a.d between f.d0 and f.d0 + 28"
WITHIN = "count(distinct case when a.d between f.d0 + {} and f.d0 + {} then a.user_id end) as w{}"
COUNTS = [
    "count(distinct f.user_id) as users",
    WITHIN.format(1, 7, 1),
    WITHIN.format(8, 14, 2),
    "count(*) filter (where a.d > f.d0) as days",
]


@pytest.mark.parametrize("group", ["1", "week", "date_trunc('week', f.d0)", "all"])
@pytest.mark.parametrize("during", ["", DURING], ids=["always", "during"])
def test_cohorts_are_incremental(analyzer: Analyzer, group: str, during: str) -> None:
    _require(analyzer, COHORTS.format(", ".join([WEEK, *COUNTS]), during, group))


@pytest.mark.parametrize("counts", [*((count,) for count in COUNTS), *combinations(COUNTS, 2), *combinations(COUNTS[:3], 3)])
def test_counts_of_cohorts_are_incremental_alone_and_together(analyzer: Analyzer, counts: tuple[str, ...]) -> None:
    _require(analyzer, COHORTS.format(", ".join([WEEK, *counts]), DURING, "1"))


@pytest.mark.parametrize(
    "query",
    [
        # Funnels: steps anywhere in time, and one after the other.
        (
            "select count(distinct case when kind = 'view' then user_id end) as viewed,"
            " count(distinct case when kind = 'buy' then user_id end) as bought from events"
        ),
        (
            "with v as (select user_id, min(at) as at from events where kind = 'view' group by user_id),"
            " c as (select e.user_id, min(e.at) as at from events e join v on v.user_id = e.user_id and e.at > v.at"
            " where e.kind = 'cart' group by e.user_id), b as (select e.user_id, min(e.at) as at from events e"
            " join c on c.user_id = e.user_id and e.at > c.at where e.kind = 'buy' group by e.user_id)"
            " select date_trunc('week', v.at) as week, count(*) as viewed, count(c.user_id) as carted, count(b.user_id) as bought"
            " from v left join c using (user_id) left join b using (user_id) group by 1"
        ),
        # Retention: a relation with itself, a month later.
        (
            "with active as (select distinct user_id, date_trunc('month', at) as m from events)"
            " select a.m, count(distinct a.user_id) as users, count(distinct b.user_id) as kept"
            " from active a left join active b on b.user_id = a.user_id and b.m = a.m + interval 1 month group by a.m"
        ),
        # Several of the same columns of a table that is read twice, beside other aggregates.
        (
            "with a as (select kind, count(distinct user_id) as u, count(distinct id) as i, sum(amount) as s"
            " from events group by 1),"
            " b as (select kind, count(distinct user_id) as u, count(distinct id) as i, min(amount) as m from events group by 1)"
            " select a.kind, a.u, a.i, a.s, b.u as bu, b.i as bi, b.m from a join b using (kind)"
        ),
        # Joins of one relation under several names, which groups by an expression read.
        (
            "select date_trunc('week', e.at) as w, count(x.id) as a, count(y.id) as b"
            " from events e left join users x using (id) left join users y using (id) group by 1"
        ),
    ],
    ids=["funnel", "ordered-funnel", "retention", "distinct-twice", "joins-twice"],
)
def test_views_about_users_are_incremental(analyzer: Analyzer, query: str) -> None:
    _require(analyzer, query)


def _require(analyzer: Analyzer, query: str) -> None:
    plan = plan_view("v", query, RELATIONS, analyzer.columns(query), tuple(RELATIONS), analyzer)
    assert plan.reason is None
    assert [stage.reason for stage in plan.stages] == [None] * len(plan.stages)
