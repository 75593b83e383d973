"""Time on a host: a clock that requests drive, one that goes by itself, and rows that come too late."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from airflow_pipelines.contract.runtime_config import RuntimeConfig
from airflow_pipelines.host.state.clock import ClockOptions, RunClock, describe_time
from tests.host.driver import Pipeline

Make = Callable[..., Pipeline]
DRIVEN = {"dev_tweaks": {"now_http_driven": True}}
PROGRAM = """
CREATE TABLE t (id BIGINT, ts TIMESTAMP) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW recent AS SELECT id FROM t WHERE ts >= NOW() - INTERVAL 1 HOUR;
CREATE MATERIALIZED VIEW clock AS SELECT NOW() AS at;
"""
LATE = """
CREATE TABLE t (id BIGINT, ts TIMESTAMP LATENESS INTERVAL 1 HOUR) WITH ('materialized' = 'true');
CREATE MATERIALIZED VIEW hours WITH ('emit_final' = 'hour') AS
    SELECT DATE_TRUNC('HOUR', ts) AS hour, COUNT(*) AS n FROM t GROUP BY DATE_TRUNC('HOUR', ts);
"""


def advance(pipeline: Pipeline, delta_ms: int | None) -> dict[str, object]:
    answer = pipeline.post("clock/advance", json.dumps({"delta_ms": delta_ms}))
    assert answer.status_code == 200, answer.text
    moved: dict[str, object] = answer.json()
    return moved


def recent(pipeline: Pipeline) -> list[int]:
    return [row["id"] for row in pipeline.query("SELECT id FROM recent ORDER BY id")]


def now(pipeline: Pipeline) -> datetime:
    return datetime.fromisoformat(pipeline.query("SELECT at FROM clock")[0]["at"])


def test_a_driven_clock_stands_still_until_it_is_told(make: Make) -> None:
    pipeline = make(PROGRAM, fault_tolerance={"model": "exactly_once"}, **DRIVEN)
    pipeline.start()
    start = now(pipeline)
    rows = [{"id": n, "ts": str(start - timedelta(minutes=20 * n))} for n in range(4)]
    pipeline.insert("t", *rows)
    assert recent(pipeline) == [0, 1, 2, 3]
    before = pipeline.stats()["global_metrics"]
    moved = advance(pipeline, 30 * 60 * 1000)
    assert recent(pipeline) == [0, 1]
    assert now(pipeline) == start + timedelta(minutes=30)
    after = pipeline.stats()["global_metrics"]
    for name in ("total_input_records", "total_processed_records", "total_completed_records"):
        assert after[name] == before[name] == 4
    assert after["pipeline_complete"]
    assert advance(pipeline, None)["now_ms"] == moved["now_ms"] + 1000  # type: ignore[operator]
    # A kill loses nothing of the time that clients were told.
    pipeline.kill()
    pipeline.start()
    assert recent(pipeline) == [0, 1]
    assert advance(pipeline, 0)["now_ms"] == moved["now_ms"] + 1000  # type: ignore[operator]
    pipeline.suspend()
    pipeline.start()
    assert advance(pipeline, 0)["now_ms"] == moved["now_ms"] + 1000  # type: ignore[operator]
    with pipeline.listen("recent") as chunks:
        next(chunks)
        advance(pipeline, 20 * 60 * 1000)
        assert next(chunk for chunk in chunks if "json_data" in chunk)["json_data"] == [{"delete": {"id": 1}}]
    assert pipeline.post("clock/advance", '{"delta_ms": -1}').status_code == 400
    later = start + timedelta(days=1)
    pipeline.insert("now", {"now": str(later)})
    assert (now(pipeline), recent(pipeline)) == (later, [])
    assert pipeline.stats()["global_metrics"]["total_input_records"] == 4


def test_a_clock_goes_by_itself_only_where_a_view_follows_it(make: Make) -> None:
    pipeline = make(PROGRAM, clock_resolution_usecs=200_000, clock_timezone_offset="+02:00")
    pipeline.start()
    first = now(pipeline)
    assert abs(first - datetime.utcnow() - timedelta(hours=2)) < timedelta(minutes=1)
    deadline = time.monotonic() + 30
    while now(pipeline) == first:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pipeline.post("clock/advance", '{"delta_ms": 1}').status_code == 400
    pipeline.post("pause")
    pipeline.wait_for("Paused")
    paused = now(pipeline)
    # Steps go on while the pipeline is paused, and the time for the next tick comes.
    while datetime.utcnow() + timedelta(hours=2) < paused + timedelta(milliseconds=400):
        pipeline.ingest("t", {"insert": {"id": 1}}, force=True)
    assert now(pipeline) == paused


def test_late_rows_are_reported_and_stay_out_after_a_restart(make: Make) -> None:
    pipeline = make(LATE, fault_tolerance={"model": "exactly_once"})
    pipeline.start()
    pipeline.insert("t", {"id": 1, "ts": "2026-01-01 10:10:00"}, {"id": 2, "ts": "2026-01-01 12:30:00"})
    assert pipeline.query("SELECT n FROM hours") == [{"n": 1}]
    with pipeline.listen("error_view") as chunks:
        next(chunks)
        pipeline.insert("t", {"id": 3, "ts": "2026-01-01 10:20:00"}, {"id": 4, "ts": "2026-01-01 11:40:00"})
        told = next(chunk for chunk in chunks if "json_data" in chunk)["json_data"]
    assert [change["insert"]["table_or_view_name"] for change in told] == ["t"]
    errors = pipeline.query("SELECT * FROM error_view")
    assert [json.loads(error["metadata"])["id"] for error in errors] == [3]
    assert pipeline.stats()["global_metrics"]["total_processed_records"] == 4
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT id FROM t ORDER BY id") == [{"id": 1}, {"id": 2}, {"id": 4}]
    assert pipeline.query("SELECT * FROM error_view") == errors
    pipeline.insert("t", {"id": 5, "ts": "2026-01-01 11:00:00"})
    assert pipeline.query("SELECT COUNT(*) AS n FROM error_view") == [{"n": 2}]
    assert pipeline.query("SELECT n FROM hours") == [{"n": 1}]
    pipeline.suspend()
    pipeline.program = LATE + "CREATE VIEW more AS SELECT id FROM t;"
    failed = None
    try:
        pipeline.start()
    except AssertionError as error:
        failed = str(error)
    assert failed is not None
    assert "relations with lateness" in failed


def test_the_options_of_a_clock() -> None:
    config = RuntimeConfig.from_stored(
        {"clock_resolution_usecs": 5000, "clock_timezone_offset": "-05:30", "dev_tweaks": {"now_offset": 1500}}
    )
    assert ClockOptions.of(config) == ClockOptions(5000, -19_800_000_000 + 1_500_000, False)
    assert ClockOptions.of(RuntimeConfig.from_stored({"clock_resolution_usecs": None})) == ClockOptions()


def test_a_clock_may_start_at_a_time_of_its_own() -> None:
    config = {"clock_timezone_offset": "+02:00", "dev_tweaks": {"now_offset": "1969-12-31T23:59:58.5+01:00"}}
    options = ClockOptions.of(RuntimeConfig.from_stored(config))
    at = -3_601_500_000 + 7_200_000_000
    wall = [100.0]
    running = RunClock(options, lambda: wall[0])
    driven = RunClock(replace(options, http_driven=True), lambda: wall[0])
    wall[0] = 103.0
    assert (running.now(), driven.now()) == (at + 3_000_000, at)
    assert driven.advance(1000) == at + 1000
    # It goes on from where it was, and not at the same time again.
    running.resume(at + 60_000_000)
    wall[0] = 104.0
    assert running.now() == at + 61_000_000
    assert describe_time(-1_500_000) == {"now_ms": -1500, "now": "1969-12-31T23:59:58.500Z"}


def test_ticks_that_were_missed_are_not_made_up_for() -> None:
    clock = RunClock(ClockOptions(resolution_us=10_000_000), lambda: 1.5)
    assert clock.tick(0) == 1_500_000
    assert clock.tick(1_500_001) is None
    assert 9 < (clock.until_tick(1_500_001) or 0) <= 10


def test_a_tick_waits_for_the_instant_at_which_something_is_due() -> None:
    clock = RunClock(ClockOptions(resolution_us=10), lambda: 1.5)
    assert clock.until_tick(None) is None
    assert clock.tick(None) is None
    assert clock.until_tick(4_500_000) == 3
    assert clock.tick(4_500_000) is None
    assert clock.tick(1_400_000) == 1_500_000


def test_a_driven_clock_never_goes_back() -> None:
    clock = RunClock(ClockOptions(http_driven=True), lambda: 1.0)
    clock.resume(5_000_000)
    assert clock.now() == 5_000_000
    assert clock.advance(1000) == 5_001_000
    assert clock.moved_to(3) == 5_001_000
    assert clock.tick(0) is None
    assert describe_time(1_500_000) == {"now_ms": 1500, "now": "1970-01-01T00:00:01.500Z"}
