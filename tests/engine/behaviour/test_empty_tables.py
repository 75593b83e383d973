"""Views over tables without rows: nothing is evaluated for a row of NULLs that is not there."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running

TABLES = """
create table t (k int not null, v int, s varchar, m map<varchar, int>, j variant) with ('materialized' = 'true');
create table other (k int) with ('materialized' = 'true');
"""
VIEWS = {
    "entries": "select key, value from (select explode(map(k, s)) as (key, value) from t where k >= 0)",
    "maps": "select k, map(k, s) as m from t",
    "grouped": "select map(k, s) as m, count(*) as n from t group by map(k, s)",
    "collected": "select k, collect_list(map(k, s)) as l, max_by(s, v) as b from t group by k",
    "checked": "select k, assert_true(k > 0) is null as a from t",
    "joined": "select t.k, map(o.k, t.s) as m from t join other o on o.k = t.k",
    "numbered": "select k, map(k, s) as m, row_number() over (partition by k order by v) as n from t",
    "within": "select o.k, (select count(map(t.k, t.s)) from t where t.k = o.k) as n from other o",
}


@pytest.mark.parametrize("strategy", ["auto", "full"])
def test_nothing_is_evaluated_for_rows_that_are_not_there(sessions: SparkSessions, strategy: str) -> None:
    views = "".join(f"create materialized view {name} as {query};\n" for name, query in VIEWS.items())
    running = Running(TABLES + views, sessions, strategy)
    running.insert("other", (1,))
    assert {name: rows for name in VIEWS if (rows := running.rows(name))} == {"within": [(1, 0)]}
    row = (1, 2, "a", [("x", 1)], None)
    running.insert("t", row)
    assert running.rows("entries") == [(1, "a")]
    running.delete("t", row)
    assert {name: rows for name in VIEWS if (rows := running.rows(name))} == {"within": [(1, 0)]}
    running.circuit.close()
