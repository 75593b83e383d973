"""Views about what users do over time follow changes, and equal Spark's answers after every step."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from airflow_pipelines.engine.spark.java_errors import SPARK_ERRORS
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared

TABLE = "create table events (user_id int, at timestamp, kind varchar, amount double);\n"
VIEWS = {
    "cohorts": """with f as (select user_id, min(cast(at as date)) as d0 from events group by user_id),
            a as (select distinct user_id, cast(at as date) as d from events)
        select date_trunc('week', f.d0) as week, count(distinct f.user_id) as users,
            count(distinct case when a.d between f.d0 + 1 and f.d0 + 7 then a.user_id end) as w1,
            count(distinct case when a.d between f.d0 + 8 and f.d0 + 14 then a.user_id end) as w2
        from f join a on a.user_id = f.user_id and a.d between f.d0 and f.d0 + 28 group by 1""",
    "retention": """with active as (select distinct user_id, date_trunc('month', at) as m from events)
        select a.m, count(distinct a.user_id) as users, count(distinct b.user_id) as kept
        from active a left join active b on b.user_id = a.user_id and b.m = a.m + interval 1 month group by a.m""",
    "funnel": """with v as (select user_id, min(at) as at from events where kind = 'view' group by user_id),
            b as (select e.user_id, min(e.at) as at from events e join v on v.user_id = e.user_id and e.at > v.at
                where e.kind = 'buy' group by e.user_id)
        select date_trunc('week', v.at) as week, count(*) as viewed, count(b.user_id) as bought, count(c.user_id) as ever
        from v left join b using (user_id) left join (select distinct user_id from events) c using (user_id) group by 1""",
    "scores": """select e.user_id, e.at, (e.amount - s.m) / nullif(s.d, 0) as z, try_divide(s.m, s.least) as r
        from events e join (select kind, avg(amount) as m, stddev(amount) as d, -min(amount) as least from events group by kind) s
            on s.kind = e.kind""",
}


def _event(draw: random.Random) -> tuple[Any, ...]:
    return (
        draw.choice([None, 1, 2, 3, 4]),
        draw.choice(
            [None, *[datetime.datetime(2024, 1, 29, 12) + datetime.timedelta(days=days) for days in (0, 1, 2, 5, 9, 12, 40)]]
        ),
        draw.choice([None, "view", "buy"]),
        draw.choice([None, 0.0, -0.0, 1.5, -2.0]),
    )


def test_views_about_users_equal_the_batch_answer(sessions: SparkSessions) -> None:
    views = "".join(f"create view {name} as {query};\n" for name, query in VIEWS.items())
    compared = Compared(TABLE + views, sessions, {"events": _event}, seed=7)
    assert [name for name in VIEWS if compared.running.program.plans[name].reason is not None] == []
    for inserts, deletes in ((12, 0), (6, 4), (0, 100)):
        compared.step(inserts, deletes)


@pytest.mark.core
def test_nothing_is_divided_by_a_zero_of_either_sign(sessions: SparkSessions) -> None:
    zeros = "(SELECT id * 0.0D * sign AS z FROM RANGE(1) CROSS JOIN VALUES (1), (-1) AS s (sign))"
    found = sessions.small.sql(f"SELECT CAST(z AS STRING) AS zero, TRY_DIVIDE(1, z) AS quotient FROM {zeros}").collect()
    assert sorted(tuple(row) for row in found) == [("-0.0", None), ("0.0", None)]
    for zero in ("0.0", "-0.0"):
        with pytest.raises(SPARK_ERRORS, match="DIVIDE_BY_ZERO"):
            sessions.small.sql(f"SELECT 1 / z AS quotient FROM {zeros} WHERE CAST(z AS STRING) = '{zero}'").collect()
