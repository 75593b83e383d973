"""Which queries surely give no row over relations without rows."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.properties.emptiness import required_inputs


@pytest.mark.parametrize(
    "query",
    [
        "select a, 1/0 from t",
        "select t.a from t join u on t.a = u.a left join u as w on w.a = t.a where exists (select count(*) from u)",
        "select a, count(*) from t group by a having max(b) > 1",
        "select count(*) over (partition by a) from t qualify row_number() over (order by a) = 1",
        "select a from t lateral view explode(array(1)) z as e order by a limit 3",
        "select a from t union all (select a from u except select 1)",
        "with c as (select a from t), d as (select * from c) select * from d, values (1)",
        "select (select count(*) from u) from t",
    ],
)
def test_queries_that_need_rows(query: str) -> None:
    assert required_inputs(query, ["t", "u", "now$0"]) == ("t", "u")


@pytest.mark.parametrize(
    "query",
    [
        "select 1/0",
        "values (1)",
        "select count(*) from t",
        "select 1 from t having 1 = 1",
        "select sum(a) + 1 from t order by 1",
        "select count(*) from t group by grouping sets ((a), ())",
        "select count(*) from t group by cube (a)",
        "select u.a from u right join (select 1 as a) x on u.a = x.a",
        "select a from (select max(a) as a from t)",
        "select a from t union all select 1",
        "with t as (select 1 as a) select a from t",
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select n from r",
        "select * from t pivot (sum(a) for b in (1))",
        "select * from range(3)",
        "select `__now` from `now$0`",
        "select 1 from",
    ],
)
def test_queries_that_may_give_rows_even_so(query: str) -> None:
    assert required_inputs(query, ["t", "u", "now$0"]) == ()
