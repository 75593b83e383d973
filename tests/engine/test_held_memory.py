"""How much of large batches is held in memory, and what becomes of what finds no room."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, weighted
from airflow_pipelines.engine.execution.context import Mode
from airflow_pipelines.engine.held_memory import HeldMemory, held_memory
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.trace import Trace
from tests.engine.programs import Running

NOTHING_SMALL = Limits(small_rows=-1, small_input=-1, tiny=-1, fan_out=-1)
PROGRAM = """
create table t (k int, s varchar) with ('materialized' = 'true');
create materialized view doubled as select k * 2 as k, s from t;
create materialized view pairs as select a.k, b.s from t as a join t as b on a.s = b.s;
"""


def _table(numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(range(numbers), pa.int64())})


def test_a_table_counts_once_and_until_it_is_gone() -> None:
    memory, table = HeldMemory(1000), _table(10)
    memory.hold(table)
    memory.hold(table)
    assert memory.used == 80
    del table
    gc.collect()
    assert memory.used == 0


@pytest.mark.parametrize(("size", "fits"), [(0, True), (250, True), (251, False)])
def test_a_single_table_has_a_part_of_the_room(size: int, fits: bool) -> None:
    assert HeldMemory(1000).has_room(size) is fits


def test_together_tables_have_no_more_than_all_of_it() -> None:
    memory = HeldMemory(1000)
    held = [_table(25) for _ in range(4)]
    for table in held:
        assert memory.has_room(table.nbytes)
        memory.hold(table)
    assert memory.has_room(200)
    assert not memory.has_room(201)
    assert memory.excess == 300
    del held[2:], table
    gc.collect()
    assert memory.has_room(250)
    assert memory.excess == -100


@pytest.mark.core
def test_the_room_follows_from_the_heap(sessions: SparkSessions) -> None:
    memory = held_memory(sessions.small.sparkContext)
    assert memory is held_memory(sessions.large.sparkContext)
    assert 32 << 20 <= memory.most <= 64 << 30


def _held(running: Running) -> dict[str, list[bool]]:
    return {name: [batch.table is not None for batch in trace.batches] for name, trace in running.circuit.snapshot.traces.items()}


def _given(room: int, sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> Running:
    running = Running(PROGRAM, sessions, limits=NOTHING_SMALL)
    monkeypatch.setattr(running.circuit, "_memory", HeldMemory(room))
    return running


def _expected(rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        "t": sorted(rows, key=repr),
        "doubled": sorted(((2 * k, s) for k, s in rows), key=repr),
        "pairs": sorted(((k, s) for k, one in rows for _, s in rows if one is not None and one == s), key=repr),
    }


def test_what_is_not_small_stays_in_memory_while_there_is_room(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _given(1 << 20, sessions, monkeypatch)
    rows = [(1, "a"), (2, "a"), (3, "b"), (4, None)]
    running.insert("t", *rows)
    running.delete("t", rows[1])
    del rows[1]
    assert all(map(all, _held(running).values()))
    assert not running.store.files(), "nothing was written to Parquet"
    assert {name: running.rows(name) for name in ("t", "doubled", "pairs")} == _expected(rows)


@pytest.mark.core
def test_what_finds_no_room_goes_to_files(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _given(0, sessions, monkeypatch)
    rows = [(1, "a"), (2, "a"), (3, "b"), (4, None)]
    running.insert("t", *rows)
    assert not any(map(any, _held(running).values()))
    assert {name: running.rows(name) for name in ("t", "doubled", "pairs")} == _expected(rows)


def test_the_largest_trace_makes_room_when_it_gets_tight(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _given(16_000, sessions, monkeypatch)
    rows = [(k, f"{k}" * 10) for k in range(20)]
    for at in range(0, 20, 5):
        running.insert("t", *rows[at : at + 5])
    running.circuit._memory.most = 2 * running.circuit._memory.used - 1
    running.circuit.maintain()
    gc.collect()
    assert running.circuit._memory.excess <= 0
    held = _held(running)
    assert any(map(any, held.values())), "only as much goes as has to"
    assert not all(map(all, held.values()))
    assert {name: running.rows(name) for name in ("t", "doubled", "pairs")} == _expected(rows)
    running.delete("t", *rows[:10])
    assert {name: running.rows(name) for name in ("t", "doubled", "pairs")} == _expected(rows[10:])


def test_a_result_with_more_rows_than_fit_goes_to_files_whole(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _given(40_000, sessions, monkeypatch)
    context = running.circuit._context({})
    schema = Trace(running.circuit.wiring.schemas["t"]).schema
    for rows in (1, 312, 313, 20_000):
        query = f"SELECT CAST(id AS INT) AS k, 'x' AS s, 1L AS __weight FROM RANGE(0, {rows}, 1, 2)"
        batch = context.run(query, schema, Mode.LARGE)
        assert (batch.table is None) is (rows > 312), "twice as many as 10,000 bytes are room for at 64 bytes each"
        assert sorted(batch.to_arrow()["k"].to_pylist()) == list(range(rows))


def test_to_find_that_rows_do_not_fit_costs_no_second_evaluation(sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    running = _given(40_000, sessions, monkeypatch)
    context = running.circuit._context({})
    schema = weighted(StructType.fromDDL("k bigint"))
    cases = ((625, 1, 2, True), (626, 1, 2, True), (1176, 1, 2, True), (1177, 1, 2, False), (392, 3, 2, True), (393, 3, 3, False))
    for groups, copies, jobs, collected in cases:
        before = started_jobs(sessions.large.sparkContext)
        counted = f"SELECT id % {groups} AS k, COUNT(*) AS __weight FROM RANGE(0, 10000, 1, 2) GROUP BY 1"
        query = f"SELECT k, __weight FROM ({counted}) LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, {copies})) AS c"
        batch = context.run(query, schema, Mode.LARGE)
        assert started_jobs(sessions.large.sparkContext) - before == jobs, "one up to the exchange, one for each look at the rows"
        assert (batch.table is None) is (groups * copies > 625), "10,000 bytes are 625 rows of two numbers"
        assert sorted(batch.to_arrow()["k"].to_pylist()) == sorted(copies * list(range(groups)))
        assert (context.evaluate(query, schema).table is not None) is collected, "twice as many come to the driver"


def _live_files(running: Running) -> list[Path]:
    running.store.garbage_collect(())
    return [running.store.path(name) for name in running.store.files()]


PASSED_ON = """
create table t (k int, s varchar) with ('append_only' = 'true');
create materialized view counts as select k, count(*) as n from t group by k;
"""
COMPUTED = "create materialized view longer as select concat(s, '!') as s from t;"


@pytest.mark.core
@pytest.mark.parametrize(
    ("views", "held_bytes", "driver_rows", "writes"),
    [
        pytest.param("", 2_000, 80, False, marks=pytest.mark.rest),
        ("", 600, 80, False),
        ("", 300, 80, True),
        pytest.param(COMPUTED, 2_000, 79, False, marks=pytest.mark.rest),
        # Spark finds groups, too.
        pytest.param("", 600, -1, True, marks=pytest.mark.rest),
        # What the driver computes needs only the columns that it reads.
        (COMPUTED, 600, 80, False),
        (COMPUTED, 600, 79, True),
    ],
)
def test_rows_that_no_table_keeps_are_written_when_spark_reads_them_or_they_are_too_many(
    views: str, held_bytes: int, driver_rows: int, writes: bool, sessions: SparkSessions
) -> None:
    running = Running(PASSED_ON + views, sessions, limits=replace(NOTHING_SMALL, held_bytes=held_bytes, driver_rows=driver_rows))
    rows = [(at % 2, "x") for at in range(80)]
    for number in range(1, 3):
        step = running.insert("t", *rows)
        assert 4 * 300 < step.table_deltas["t"].to_arrow().nbytes < 2_000
        assert running.rows("counts") == [(0, 40 * number), (1, 40 * number)]
        if views:
            assert running.rows("longer") == [("x!",)] * 80 * number
        files = [pq.read_schema(running.store.path(name)).names for name in running.store.files()]
        assert (["k", "s", WEIGHT] in files) is writes
        del step
        gc.collect()
        running.circuit.batch_views.sweep(keep=10)
        assert not any(pq.read_schema(path).names == ["k", "s", WEIGHT] for path in _live_files(running))
