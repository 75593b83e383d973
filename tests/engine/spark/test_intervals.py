"""Columns of lengths of time: stored, grouped, joined, added up and shown, in both strategies and in every size."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import pytest

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.intervals import format_intervals, shown_in_order
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.compared import Compared
from tests.engine.programs import Running
from tests.engine.sizes import SIZES

PROGRAM = """
create table t (k int, d interval day to second, h interval hour, y interval year to month, n array<interval month>,
    s struct<d: interval day>, ts timestamp) with ('materialized' = 'true');
create table u (k int, d interval day to second, y interval year to month) with ('materialized' = 'true');
create materialized view same as select * from t;
create materialized view sums as select k, sum(d) as d, avg(d) as a, min(y) as l, max(y) as g, sum(y) as y, avg(y) as b,
    sum(h) filter (where k > 1) as h, count(distinct y) as n, max_by(d, y) as m from t group by k;
create view groups as select d, y, count(*) as n, max(h) as h from t group by d, y;
create view joined as select a.k, a.d, b.y, a.d + b.d as e, a.ts + b.d as ts, a.ts + a.y as moved from t a join u b on a.d = b.d;
create view outer_joined as select a.k, a.y, b.d from t a left join u b on a.y = b.y;
create view found as select k, y from t where y in (select y from u) and d >= interval '-1' day;
create view ranked as select k, y, row_number() over (partition by k order by y, d desc) as r,
    lag(d) over (partition by y order by k, d) as p, sum(d) over (partition by k) as s from t;
create view nested as select k, n[0] as first, s.d as day, array(y, interval '1' year) as pair,
    map(k, coalesce(d, interval '1' day)) as m from t where size(n) > 0;
create view unnested as select k, x from t lateral view explode(n) e as x;
create view distincts as select distinct y, s from t;
create view differences as select k, ts - timestamp '2024-01-01 00:00:00' as gap, y * 2 as twice, -d as back, d / 2 as half,
    extract(hour from d) as hours, cast(h as int) as n from t;
create view top as select d, y from t order by y desc, d limit 3;
create view both as select y from t union select y from u;
"""
DAYS = [datetime.timedelta(days=n, microseconds=m) for n, m in ((0, 0), (1, 1), (-1, 0), (-3, 7), (400, 0))]
MONTHS = [0, 1, 15, -27, 12]


def _row(pick: random.Random) -> tuple[Any, ...]:
    months = pick.choice([None, [], [3, None], [-1]])
    return (
        pick.randint(0, 2),
        pick.choice([None, *DAYS]),
        pick.choice([None, datetime.timedelta(hours=30), datetime.timedelta(hours=-1)]),
        pick.choice([None, *MONTHS]),
        months,
        pick.choice([None, {"d": None}, {"d": datetime.timedelta(days=2)}]),
        pick.choice([None, datetime.datetime(2024, 1, 31, 10), datetime.datetime(2023, 12, 31)]),
    )


def _other(pick: random.Random) -> tuple[Any, ...]:
    return pick.randint(0, 2), pick.choice([None, *DAYS]), pick.choice([None, *MONTHS])


def _reopened(running: Running, strategy: str) -> None:
    manifest = json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))
    limits = running.circuit.limits
    running.circuit = Circuit(running.program, running.sessions, running.store, strategy, limits)
    running.circuit.restore(Snapshot.from_manifest(manifest, running.store, limits))


@pytest.mark.parametrize(("size", "strategy"), [("small", "auto"), ("large", "auto"), ("small", "full")])
def test_intervals_in_tables_and_views(sessions: SparkSessions, size: str, strategy: str) -> None:
    compared = Compared(PROGRAM, sessions, {"t": _row, "u": _other}, limits=SIZES[size], strategy=strategy)
    compared.step(8)
    compared.step(3, 2)
    _reopened(compared.running, strategy)
    compared.step(1, 5)
    compared.step(0, 20)
    assert not any(compared.tables.values())
    full = {view for view in compared.running.program.plans if any("full" in name for name in compared.strategies(view))}
    assert strategy == "full" or full == set()


@pytest.mark.core
def test_intervals_are_shown_and_asked_for(sessions: SparkSessions) -> None:
    running = Running(PROGRAM, sessions)
    step = running.insert(
        "t",
        (1, DAYS[1], datetime.timedelta(hours=30), -27, [3, None], {"d": DAYS[2]}, None),
        (2, None, None, None, None, None, None),
    )
    delta = step.view_deltas["same"]
    first, second = sorted(format_intervals(delta.to_arrow(), delta.schema).to_pylist(), key=lambda row: int(row["k"]))
    assert first["d"] == "P1DT0.000001S"
    assert (first["h"], first["y"], first["n"], first["s"]) == ("P1DT6H", "-P2Y3M", ["P3M", None], {"d": "-P1D"})
    assert [second[name] for name in ("d", "h", "y", "n", "s")] == [None] * 5
    given = run_adhoc(running.circuit, "insert into u (y, d, k) values (interval '1-1' year to month, interval 5 days, 3)")
    running.step(*given.changes)
    for text, rows in (
        ("select d, y as d from u", [("P5D", "P1Y1M")]),
        ("select y - interval '5' year as x, y from u", [("-P3Y11M", "P1Y1M")]),
        ("select d from t where y = interval '-2-3' year to month", [("P1DT0.000001S",)]),
        ("select y from t where k > 5", []),
        ("select map('a', y) as m, make_interval(1, -1, 0, 2, -3) as i from u", [([("a", "P1Y1M")], "P11M2DT-3H")]),
    ):
        frame = run_adhoc(running.circuit, text).frame
        assert frame is not None
        table = shown_in_order(collected(frame), frame.schema)
        assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows
