"""Views that follow the clock, rows that come too late, final rows, and what is forgotten of them."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.limits import Limits, MergeLimits
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.rows.changes import Op, TableChanges
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running, emitted

DAY = "2026-01-01 "


def at(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text if "-" in text else DAY + text)
    return int(moment.replace(tzinfo=datetime.UTC).timestamp()) * 1_000_000


def ts(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text if "-" in text else DAY + text)


def tick(running: Running, clock: str, *changes: TableChanges) -> Step:
    step = running.circuit.step(list(changes), at(clock))
    running.circuit.publish(step)
    return step


def reopened(running: Running, strategy: str = "auto") -> None:
    """What a checkpoint and a restart do."""
    manifest = json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))
    running.circuit.close()
    limits = running.circuit.limits
    running.circuit = Circuit(running.program, running.sessions, running.store, strategy, limits)
    running.circuit.restore(Snapshot.from_manifest(manifest, running.store, limits))


CLOCK = """
create table t (id bigint, ts timestamp) with ('materialized' = 'true');
create materialized view recent as select * from t where ts >= now() - interval 1 hour;
create materialized view n as select count(*) as n from t where ts between now() - interval 1 hour and now();
create materialized view days as select current_date as d, count(*) as c from t;
create materialized view ages as select id, now() - ts as age from t where ts > now() - interval 20 minutes;
"""
ROWS = ((1, ts("09:30:00")), (2, ts("09:59:00")), (3, ts("10:30:00")))


@pytest.fixture(scope="module")
def clock(sessions: SparkSessions) -> Running:
    text = CLOCK.replace("now() - ts as age", "cast(now() as date) as age")
    return Running(text, sessions)


@pytest.fixture(params=["auto", "full"])
def ticking(clock: Running, request: pytest.FixtureRequest) -> Running:
    clock.circuit = Circuit(clock.program, clock.sessions, clock.store, request.param)
    return clock


def expected(clock: str, rows: tuple[tuple[int, datetime.datetime], ...]) -> dict[str, list[Any]]:
    now = ts(clock)
    hour, minutes = datetime.timedelta(hours=1), datetime.timedelta(minutes=20)
    return {
        "recent": [row for row in rows if row[1] >= now - hour],
        "n": [(sum(now - hour <= row[1] <= now for row in rows),)],
        "days": [(now.date(), len(rows))],
        "ages": [(row[0], now.date()) for row in rows if row[1] > now - minutes],
    }


def test_views_follow_the_clock_as_time_passes(ticking: Running) -> None:
    tick(ticking, "10:00:00")
    tick(ticking, "10:00:00", ticking.changes("t", *ROWS))
    strategy = "full" if ticking.circuit.stages[0].strategy == "full" else "auto"
    for number, clock in enumerate(("10:00:00", "10:00:01", "10:30:00", "10:31:00", "2026-01-02 10:31:00")):
        if number:
            tick(ticking, clock)
        assert {name: ticking.rows(name) for name in ticking.program.views} == expected(clock, ROWS)
        if number == 2:
            reopened(ticking, strategy)
    assert ticking.circuit.snapshot.clock == at("2026-01-02 10:31:00")


@pytest.mark.core
def test_a_tick_that_nothing_crosses_costs_nothing_and_is_no_step(clock: Running) -> None:
    running = clock
    running.circuit = Circuit(running.program, running.sessions, running.store)
    tick(running, "10:00:00", running.changes("t", *ROWS))
    context = running.sessions.small.sparkContext
    before = asked_of_spark(context)
    for second in range(1, 4):
        step = tick(running, f"10:00:0{second}")
        assert step.quiet
        assert step.number == 1
        assert not step.view_deltas
    assert asked_of_spark(context) == before
    assert running.circuit.snapshot.clock == at("10:00:03")
    step = tick(running, "10:30:01")
    assert not step.quiet
    assert emitted(step, "recent") == [(1, ts("09:30:00"), -1)]


def test_the_clock_never_goes_back(clock: Running) -> None:
    running = clock
    running.circuit = Circuit(running.program, running.sessions, running.store)
    tick(running, "10:00:00", running.changes("t", *ROWS))
    tick(running, "11:00:00")
    tick(running, "10:00:00")
    assert running.circuit.snapshot.clock == at("11:00:00")
    assert running.rows("recent") == [ROWS[2]]


def test_new_views_of_a_changed_program_start_at_the_clock(clock: Running) -> None:
    running = clock
    running.circuit = Circuit(running.program, running.sessions, running.store)
    tick(running, "10:00:00", running.changes("t", *ROWS))
    kept = running.circuit.snapshot.keep({"t", "days"}).flush(running.store)
    running.circuit = Circuit(running.program, running.sessions, running.store)
    running.circuit.restore(kept)
    step = running.circuit.bootstrap({"recent", "n", "ages"}, at("10:00:05"))
    running.circuit.publish(step)
    assert emitted(step, "n") == [(2, 1)]
    assert {name: running.rows(name) for name in running.program.views} == expected("10:00:00", ROWS)
    tick(running, "10:31:00")
    assert {name: running.rows(name) for name in running.program.views} == expected("10:31:00", ROWS)


def test_places_of_the_clock_that_are_not_filters(sessions: SparkSessions) -> None:
    running = Running(
        """
        create table t (id bigint, ts timestamp);
        create materialized view a as select 1 as one, now() as at;
        create materialized view b as select id % 2 as k, count(*) as n from t group by id % 2 having max(ts) < now();
        create materialized view c as select x.id from t x left join t y on x.id = y.id + 1 and y.ts > current_timestamp
            where x.ts < now() or unix_timestamp() < 0;
        create materialized view d as select id from t
            where exists (select 1 from t u where u.id = t.id + 1 and u.ts > localtimestamp());
        create materialized view e as select count(*) filter (where ts > now()) as later,
            sum(case when ts <= now() then id end) as s from t;
        create materialized view g as select *, row_number() over (order by ts) as r from t where ts > now() - interval 1 hour;
        create materialized view f as select current_time() < time'12:00:00' as morning;
        """,
        sessions,
    )
    tick(running, "10:00:00", running.changes("t", *ROWS))
    assert running.rows("a") == [(1, ts("10:00:00"))]
    assert running.rows("b") == [(0, 1)]
    assert running.rows("c") == [(1,), (2,)]
    assert running.rows("d") == [(2,)]
    assert running.rows("e") == [(1, 3)]
    assert running.rows("f") == [(True,)]
    assert [row[::2] for row in running.rows("g")] == [(1, 1), (2, 2), (3, 3)]
    tick(running, "13:00:00")
    assert running.rows("a") == [(1, ts("13:00:00"))]
    assert running.rows("b") == [(0, 1), (1, 2)]
    assert running.rows("c") == [(1,), (2,), (3,)]
    assert running.rows("d") == []
    assert running.rows("e") == [(0, 6)]
    assert running.rows("f") == [(False,)]
    assert running.rows("g") == []


LATE = """
create table t (id bigint, ts timestamp lateness interval 1 hour);
create table k (id bigint not null primary key, ts timestamp lateness interval 1 hour, v bigint);
create materialized view hours as
    select date_trunc('hour', ts) as h, count(*) as n, max(id) as m from t group by date_trunc('hour', ts);
create materialized view final with ('emit_final' = 'h') as
    select date_trunc('hour', ts) as h, count(*) as n from t group by date_trunc('hour', ts);
create materialized view tumbled with ('emit_final' = '0') as
    select tumble_start(ts, interval 1 hour) as w, max(id) as m from t group by tumble(ts, interval 1 hour);
create materialized view late as select id, ts from t;
lateness late.ts interval 0 hours;
"""


@pytest.fixture(scope="module")
def lateness(sessions: SparkSessions) -> Running:
    return Running(LATE, sessions)


@pytest.fixture
def tardy(lateness: Running) -> Running:
    lateness.circuit = Circuit(lateness.program, lateness.sessions, lateness.store)
    return lateness


def hour(text: str) -> datetime.datetime:
    return ts(text).replace(minute=0, second=0)


def test_late_rows_are_dropped_and_reported(tardy: Running) -> None:
    tardy.insert("t", (1, ts("09:30:00")), (2, ts("10:10:00")), (9, None))
    # The waterline is that of the start of the step: 9:10.
    step = tardy.insert("t", (3, ts("08:59:00")), (4, ts("09:20:00")), (5, ts("12:00:00")), (10, None))
    assert [(late.relation, late.rows.num_rows) for late in step.late] == [("t", 1), ("late", 1)]
    assert set(tardy.rows("hours")) == {(hour("09:00:00"), 2, 4), (hour("10:00:00"), 1, 2), (hour("12:00:00"), 1, 5), (None, 2, 10)}
    assert {row[0] for row in tardy.rows("late")} == {1, 2, 5, 9, 10}
    errors = [(name, message, json.loads(str(row))) for name, message, row in tardy.rows("error_view")]
    assert errors == [
        ("late", "Late value: ts < 2026-01-01 10:10:00.000000", {"id": 4, "ts": "2026-01-01 09:20:00"}),
        ("t", "Late value: ts < 2026-01-01 09:10:00.000000", {"id": 3, "ts": "2026-01-01 08:59:00"}),
    ]
    reopened(tardy)
    step = tardy.step(tardy.changes("t", (1, ts("09:30:00")), op=Op.DELETE), tardy.changes("t", (6, ts("10:59:59"))))
    assert step.late[0].rows.num_rows == 2
    assert not step.view_deltas
    assert len(tardy.rows("error_view")) == 4


def test_a_thousand_late_rows_of_a_step_are_reported_one_by_one_and_a_number_of_others(tardy: Running) -> None:
    tardy.insert("t", (1, ts("12:00:00")))
    tardy.insert("t", *((number, ts("09:00:00")) for number in range(1003)), (2000, ts("12:30:00")))
    reports = tardy.rows("error_view")
    assert {row[0] for row in reports} == {"t"}
    ids = sorted(json.loads(str(row[2]))["id"] for row in reports if row[1].startswith("Late value"))
    assert ids == list(range(1000))
    assert [row[1] for row in reports if not row[1].startswith("Late value")] == [
        "3 more late values: ts < 2026-01-01 11:00:00.000000"
    ]
    assert [row[0] for row in tardy.rows("late")] == [1, 2000]


@pytest.mark.core
def test_a_late_old_version_makes_an_upsert_late(tardy: Running) -> None:
    tardy.insert("k", (1, ts("09:00:00"), 1), (2, ts("10:30:00"), 2))
    step = tardy.insert("k", (1, ts("12:00:00"), 3), (2, ts("10:40:00"), 4))
    assert step.late[0].rows.to_pylist() == [{"id": 1, "ts": ts("12:00:00"), "v": 3}]
    assert tardy.rows("k") == [(1, ts("09:00:00"), 1), (2, ts("10:40:00"), 4)]
    step = tardy.delete("k", (1, None, None))
    assert tardy.rows("k") == [(1, ts("09:00:00"), 1), (2, ts("10:40:00"), 4)]
    step = tardy.step(tardy.changes("k", (2, ts("08:00:00"), None), op=Op.UPDATE, given=["ts"]))
    assert len(step.late[0].rows) == 1
    assert tardy.rows("k")[1] == (2, ts("10:40:00"), 4)


@pytest.mark.core
def test_final_rows_come_once_and_stay(tardy: Running) -> None:
    assert tardy.insert("t", (1, ts("09:30:00")), (2, ts("10:10:00"))).view_deltas.keys() == {"hours", "late"}
    step = tardy.insert("t", (3, ts("09:40:00")), (4, ts("11:00:00")))
    assert emitted(step, "final") == [(hour("09:00:00").replace(tzinfo=datetime.UTC), 2, 1)]
    reopened(tardy)
    step = tardy.insert("t", (5, ts("10:00:00")), (6, ts("14:00:00")))
    assert sorted(row[1:] for row in emitted(step, "final")) == [(1, 1), (2, 1)]
    assert emitted(tardy.insert("t", (7, ts("14:00:00"))), "final") == []
    assert set(tardy.rows("tumbled")) == {(hour("09:00:00"), 3), (hour("10:00:00"), 5), (hour("11:00:00"), 4)}
    assert set(tardy.rows("final")) == {(hour("09:00:00"), 2), (hour("10:00:00"), 2), (hour("11:00:00"), 1)}


def test_what_cannot_matter_any_more_is_forgotten(sessions: SparkSessions) -> None:
    text = LATE + (
        "create table u (ts timestamp lateness interval 10 minutes, v int);"
        "create view joined as select t.id, u.v from t join u on t.ts = u.ts;"
        "create materialized view distincts as select window(ts, '1 hour').start as h, count(*) as n, count(distinct id % 4) as c,"
        " sum(distinct id) as s from t group by window(ts, '1 hour');"
    )
    text = text.replace("create materialized view late as select id, ts from t;\nlateness late.ts interval 0 hours;\n", "")
    eager = Limits(merges=MergeLimits(retention_rows=-1))
    running, keeping = Running(text, sessions, limits=eager), Running(text, sessions, limits=eager)
    keeping.circuit.timing.retention.rules = ()
    for number in range(12):
        when = ts(f"{9 + number // 2:02}:{30 * (number % 2):02}:00")
        steps = []
        for one in (running, keeping):
            changes = [one.changes("t", (number, when), (100 + number, when - datetime.timedelta(minutes=45)))]
            changes.append(one.changes("u", (when, number)))
            if number % 3 == 2:
                changes.append(one.changes("t", (number - 1, when - datetime.timedelta(minutes=30)), op=Op.DELETE))
            steps.append(one.step(*changes))
            one.circuit.maintain()
        for view in ("hours", "final", "joined", "distincts"):
            assert emitted(steps[0], view) == emitted(steps[1], view)
        if number == 7:
            reopened(running)
    for view in ("hours", "final", "distincts"):
        assert running.rows(view) == keeping.rows(view)
    sizes = [{name: trace.rows for name, trace in one.circuit.snapshot.traces.items()} for one in (running, keeping)]
    for name in ("t", "u", "final$all"):
        assert sizes[0][name] < sizes[1][name] / 2
    kept, all_kept = (
        {name: state["groups"].rows for name, state in one.circuit.snapshot.states.items()} for one in (running, keeping)
    )
    assert kept.keys() >= {"hours", "distincts", "distincts$1", "distincts$2"}
    assert all(rows < all_kept[name] / 2 for name, rows in kept.items())


@pytest.mark.core
@pytest.mark.parametrize(
    ("program", "place", "words"),
    [
        ("create table t (a varchar lateness interval 1 day)", "a", "has no order"),
        ("create table t (a timestamp lateness 5)", "a", "INTERVAL"),
        ("create table t (a timestamp lateness interval 1 month)", "a", "INTERVAL"),
        ("create table t (a int lateness b)", "a", "b"),
        ("create table t (a int lateness null)", "a", "must be a number"),
        ("create table t (a int lateness cast(null as int))", "a", "zero or more"),
        ("create table t (a int lateness -1)", "a", "-1 is no length"),
        ("create table t (a double lateness double('nan'))", "a", "zero or more"),
        ("create table t (a double lateness double('infinity'))", "a", "must be finite"),
        ("create table t (a timestamp lateness interval -1 minute)", "a", "zero or more"),
        ("create table t (a timestamp lateness cast(null as interval day))", "a", "zero or more"),
        ("create table t (a int); create view v as select a from t; lateness v.a -5", "a", "-5 is no length"),
        ("create table t (a int); lateness t.a 5", "t", "CREATE TABLE"),
        ("create table t (a int); lateness x.a 5", "x", "not found"),
        ("create table t (a int); create view v as select a from t; lateness v.b 5", "b", "no column"),
        ("create table t (a int lateness 1); create view v with ('emit_final' = 'b') as select a from t", "'b'", "names no column"),
        ("create table t (a int lateness 1); create view v with ('emit_final' = 'a') as select -a as a from t", "'a'", "waterline"),
    ],
)
def test_declarations_that_make_no_sense(sessions: SparkSessions, program: str, place: str, words: str) -> None:
    with pytest.raises(ProgramErrors) as refused:
        Running(program, sessions)
    message = refused.value.messages[0]
    assert words in message.message
    assert message.span is not None
    line = program.splitlines()[message.span.start_line - 1]
    assert line[message.span.start_column - 1 : message.span.end_column] == place
