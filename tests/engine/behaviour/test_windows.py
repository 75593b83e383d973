"""Window functions, first rows, and windows of time, against Spark's answers after every step."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.sizes import SIZES

START = datetime.datetime(2025, 3, 1)
TABLES = """
create table t (k int, s varchar, b bigint, ts timestamp) with ('materialized' = 'true');
create table u (k int, n varchar) with ('materialized' = 'true');
"""
QUERIES = {
    "numbered": "select *, row_number() over (partition by s order by b) as r from t",
    "neighbours": "select k, lag(b) over w as l, lead(k, 2) over w as m, ntile(2) over w as n"
    " from t window w as (partition by s order by ts)",
    "ranks": "select s, k, rank() over w as r, dense_rank() over w as d, percent_rank() over w as p, cume_dist() over w as c"
    " from t window w as (partition by s order by b desc)",
    "frames": "select k, sum(b) over (partition by s order by k, ts rows between 1 preceding and 1 following) as a,"
    " count(*) over (partition by s order by k range between 1 preceding and current row) as c,"
    " max(b) over (partition by s) as m from t",
    "picked": "select k, first_value(b) over (partition by s order by ts) as f,"
    " last_value(b) over (partition by s order by ts) as l,"
    " nth_value(k, 2) over (partition by s order by ts rows between unbounded preceding and unbounded following) as n,"
    " first_value(b) ignore nulls over (partition by s order by ts desc) as i from t",
    "different_keys": "select k, s, sum(b) over (partition by s) as x, count(*) over (partition by k, s) as y,"
    " row_number() over (partition by k order by b) as z, count(*) over () as w from t",
    "best": "select k, s, b from (select *, row_number() over (partition by s order by b desc) as r from t) where r <= 2",
    "qualified": "select k, s, ts from t where k > 0 qualify rank() over (partition by s order by b) = 1",
    "over_groups": "select s, k, sum(b) as x, rank() over (partition by s order by sum(b) desc) as r"
    " from t group by s, k having count(*) > 1",
    "grouped_windows": "select s, max(r) as r from (select s, row_number() over (partition by s, k order by ts) as r"
    " from t) group by s",
    "joined": "select t.k, n, count(*) over (partition by n order by b) as c from t join u on t.k = u.k",
    "first_rows": "select k, b from t where s <> 'a' order by b desc limit 3",
    "any_rows": "select s, k from t limit 4",
    "skipped": "select s, count(*) as n from t group by s order by max(b) desc limit 2 offset 1",
    "united": "select k from t union select k from u order by k desc limit 3",
    "nested_first": "select x.k, u.n from (select distinct k from t order by k limit 2) as x left join u on u.k = x.k",
    "tumbling": "select s, window_start, window_end, count(*) as n, sum(b) as x"
    " from table(tumble(table t, descriptor(ts), interval '10' minute)) group by s, window_start, window_end",
    "hopping": "select k, window_start from table(hop(table t, descriptor(ts), interval '5' minute, interval '15' minute))",
    "old_tumble": "select tumble_start(ts, interval '10' minute) as f, max(b) as m"
    " from t group by tumble(ts, interval '10' minute)",
    "spark_window": "select window.start, s, count(*) as n from t group by window(ts, '10 minutes', '5 minutes'), s",
    "sessions": "select s, session_window.start, session_window.end as e, count(*) as n"
    " from t group by s, session_window(ts, '4 minutes')",
    "all_sessions": "select session_start(ts, interval '4' minute) as f, max(k) as m"
    " from t group by session(ts, interval '4' minute)",
    "session_rows": "select k, window_start, window_end"
    " from table(session(data => table t partition by s, timecol => descriptor(ts), gap => interval '4' minute))",
}
RECOMPUTED = {
    "different_keys": ["window by touched keys", "window by touched keys", "window by recomputing"],
    "best": ["window by touched keys"],
    "qualified": ["window by touched keys"],
    "over_groups": ["accumulators", "window by touched keys"],
    "first_rows": ["top by recomputing"],
    "hopping": ["linear"],
    "spark_window": ["accumulators"],
    "sessions": ["window by touched keys"],
}


def _t(draw: random.Random) -> tuple[Any, ...]:
    at = START + datetime.timedelta(minutes=draw.randrange(40))
    return (
        draw.choice([None, 1, 1, 2, 3]),
        draw.choice([None, "a", "a", "b"]),
        draw.choice([None, -1, 0, 0, 5]),
        draw.choice([at, at, at, None]),
    )


def _u(draw: random.Random) -> tuple[Any, ...]:
    return draw.choice([None, 1, 2]), draw.choice(["x", "y"])


@pytest.mark.parametrize("size", ["small", "looked up", "narrow"])
def test_views_with_windows_equal_the_batch_answer(sessions: SparkSessions, size: str) -> None:
    views = "".join(f"create view {name} as {query};\n" for name, query in QUERIES.items())
    compared = Compared(TABLES + views, sessions, {"t": _t, "u": _u}, seed=len(size), limits=SIZES[size])
    for inserts, deletes in ((6, 0), (3, 3)):
        compared.step(inserts, deletes)
    for name in QUERIES:
        assert "full" not in compared.strategies(name), compared.running.program.plans[name].reason
    for name, strategies in RECOMPUTED.items():
        assert compared.strategies(name) == strategies
