"""Rows of any types are found again when they are deleted or replaced."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

PROGRAM = """
create table t (m map<varchar, int>, u uuid, x time, s row(a int, b varchar), l int array, c char(3), v variant)
    with ('materialized' = 'true');
create materialized view a as select u, count(*) as n, max(x) as x, min(x + interval '1' hour) as y, max(s) as s from t group by u;
create materialized view d as select distinct x, s, l from t;
create materialized view j as select o.x, o.x > t.x as later from t join t o on t.s = o.s and t.u = o.u;
create materialized view f as select s.a, l[0] as l, m['k'] as k from t;
create materialized view g as select m, count(*) as n from t group by m;
create local view i as select u, time '12:00:00' - x as iv from t;
create materialized view h as select u, extract(hour from iv) as h from i;
"""
UUID = "aaaaaaaa-0000-0000-0000-00000000000f"


@pytest.mark.rest
@pytest.mark.parametrize("strategy", ["incremental", "full"])
def test_nested_types_are_deleted_without_a_key(sessions: SparkSessions, strategy: str) -> None:
    running = Running(PROGRAM, sessions, strategy)
    row = {"a": 1, "b": "x"}
    going = ([("k", 1), ("z", 2)], UUID, dt.time(10, 11, 12), row, [1, 2], "ab ", None)
    running.insert("t", going, ([("k", 3)], UUID, dt.time(9), row, [5], "ab ", None))
    # The entries of a map have no order.
    running.step(running.changes("t", ([("z", 2), ("k", 1)], *going[1:]), op=Op.DELETE))
    assert running.rows("t") == [({"k": 3}, UUID, dt.time(9), (1, "x"), [5], "ab ", None)]
    assert running.rows("a") == [(UUID, 1, dt.time(9), dt.time(10), (1, "x"))]
    assert running.rows("d") == [(dt.time(9), (1, "x"), [5])]
    assert running.rows("j") == [(dt.time(9), False)]
    assert running.rows("f") == [(1, 5, 3)]
    assert running.rows("g") == [({"k": 3}, 1)]
    assert running.rows("h") == [(UUID, 3)]


def test_maps_are_replaced_by_key(sessions: SparkSessions) -> None:
    running = Running(
        "create table t (id int primary key, m map<varchar, int>); create materialized view v as select m, id from t", sessions
    )
    running.insert("t", (1, [("a", 1)]))
    running.insert("t", (1, [("b", 1)]))
    assert running.rows("v") == [({"b": 1}, 1)]


def test_bare_values_and_tables_are_views(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (a int); create materialized view v (x, y) as values (1, 'a'), (2, 'b');
        create materialized view w as table t; create materialized view u as table t union all values (7)""",
        sessions,
    )
    running.insert("t", (5,))
    assert running.rows("v") == [(1, "a"), (2, "b")]
    assert running.rows("w") == [(5,)]
    assert running.rows("u") == [(5,), (7,)]
