"""Contents of which few rows have changed are read as they are stored, and are the same as when all rows are added up."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.operators import large_contents
from airflow_pipelines.engine.operators.matching_rows import matching_rows
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running
from tests.engine.random_changes import comparable

LIMITS = Limits(small_rows=20, held_bytes=-1)
MANY = range(100)


def _row(number: int) -> tuple[Any, ...]:
    """Some rows have NULLs, NaNs and zeros, and each is equal to another one but for its number."""
    pair = number // 2
    return (
        number,
        None if pair % 5 == 0 else f"name {pair}",
        [float("nan"), 0.0, None, 1.5][pair % 4],
        Decimal("1.50") if pair % 3 else None,
        None if pair % 7 == 0 else dt.datetime(2026, 1, 1) + dt.timedelta(days=pair),
        dt.time(pair % 24) if pair % 2 else None,
        dt.timedelta(pair) if pair % 3 else None,
        bytes([pair]) if pair % 5 else None,
        [True, False, None][pair % 3],
        dt.date(2026, 1, 1) if pair % 2 else None,
        [float("nan"), -0.5, None][pair % 3],
        Decimal(2**64 - 1 - pair),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC) if pair % 6 else None,
    )


COLUMNS = """n varchar, f double, d decimal(9,2), ts timestamp, c time, i interval day to second, b varbinary, o boolean, dt date,
    r real, ub bigint unsigned, tz timestamp with time zone"""


@pytest.mark.parametrize("key", ["id int primary key", "id int"])
def test_few_changes_of_many_rows(sessions: SparkSessions, key: str) -> None:
    text = f"""create table t ({key}, {COLUMNS}) with ('materialized' = 'true');
        create materialized view v as select n, f, d, ts, c, i, b, o, dt, r, ub, tz from t;"""
    running = Running(text, sessions, limits=LIMITS)
    held = Counter({_row(number): 1 for number in MANY})
    running.insert("t", *held)
    gone, new = [_row(0), _row(5), _row(6)], [_row(200), _row(201)]
    if key == "id int":
        # The same row again, of which one is taken away later.
        new += [_row(7), _row(7), _row(8)]
        gone += [_row(7)]
    for changed, op in (([_row(9)], Op.DELETE), (new, Op.INSERT), (gone, Op.DELETE)):
        running.step(running.changes("t", *changed, op=op))
        for row in changed:
            held[row] += 1 if op is Op.INSERT else -1
        for relation, first in (("t", 0), ("v", 1)):
            wanted: Counter[Any] = Counter()
            for row, count in held.items():
                wanted[comparable(row[first:])] += count
            trace = running.circuit.snapshot.traces[relation]
            assert any(batch.table is None for batch in trace.batches)
            assert any(batch.table is not None for batch in trace.batches)
            # What was looked up is found again.
            for _ in range(2):
                sql = running.circuit.contents(relation, running.circuit.snapshot)
                assert "ANTI JOIN" in sql or trace.insert_only
                assert "Exchange hashpartitioning" not in sessions.large.sql(f"EXPLAIN {sql}").collect()[0][0]
                rows = sessions.large.sql(sql).toArrow().to_pylist()
                assert Counter(comparable(row.values()) for row in rows) == +wanted


def test_which_contents_are_looked_up_merged_and_added_up(sessions: SparkSessions) -> None:
    text = f"""create table t (id int, {COLUMNS}, a int array) with ('materialized' = 'true');
        create table u (id int, name varchar) with ('materialized' = 'true');
        create table k (id int primary key) with ('materialized' = 'true');
        create materialized view v as select id, name from u where id > 0;"""
    limits = replace(LIMITS, indexed_rows=50, merged_on_read=98)
    running = Running(text, sessions, limits=limits)
    running.insert("t", *((*_row(number), [number]) for number in MANY))
    running.insert("u", *((number, "a") for number in MANY))
    running.insert("k", *((number,) for number in MANY))

    def sql_of(relation: str, count: int) -> str:
        sql = running.circuit.contents(relation, running.circuit.snapshot)
        assert sessions.large.sql(sql).count() == count
        return sql

    # The step that deletes a row by its key has made an index.
    running.delete("k", (0,))
    assert "ANTI JOIN" in (sql := sql_of("k", 99))
    assert "XXHASH64" not in sql
    # Arrays are not looked up.
    running.delete("t", (*_row(3), [3]))
    assert "XXHASH64(s.`id`, s.`n`" in sql_of("t", 99)
    # To make an index over so many rows takes long, but this one was made for something else.
    running.delete("u", (1, "a"), (2, "a"))
    assert "XXHASH64(s.`id`, s.`name`)" in sql_of("v", 97)
    trace = running.circuit.snapshot.traces["v"]
    rows = pa.table({"id": pa.array([3], pa.int32()), "name": pa.array(["a"])})
    context = Context(sessions, running.circuit.batch_views, running.store, limits=limits)
    assert matching_rows(trace, rows, ["id", "name"], context)["__weight"].to_pylist() == [1]
    assert "XXHASH64" not in sql_of("v", 97)
    # Many have changed, and then most.
    running.delete("u", *((number, "a") for number in MANY if number > 3))
    assert "XXHASH64(s.`id`, s.`name`)" in sql_of("v", 1)
    running.insert("u", *((number, "b") for number in MANY))
    running.delete("u", (0, "a"), (0, "b"))
    assert "ANTI JOIN" not in sql_of("u", 100)


@pytest.mark.core("int-_look_up-_without_changed")
@pytest.mark.parametrize(
    ("column", "found_by", "written_by"), [("int", "_look_up", "_without_changed"), ("int array", "split_changes", "merge_split")]
)
def test_two_readers_at_once_have_what_each_of_them_found(
    sessions: SparkSessions, monkeypatch: pytest.MonkeyPatch, column: str, found_by: str, written_by: str
) -> None:
    running = Running(f"create table t (id int primary key, x {column}) with ('materialized' = 'true');", sessions, limits=LIMITS)
    running.insert("t", *((number, None) for number in MANY))
    running.delete("t", (3, None))
    both = threading.Barrier(2)

    def together(name: str) -> None:
        wrapped = getattr(large_contents, name)

        def call(*arguments: object) -> object:
            both.wait(60)
            return wrapped(*arguments)

        monkeypatch.setattr(large_contents, name, call)

    together(found_by)
    together(written_by)

    def read() -> int:
        return sessions.large.sql(running.circuit.contents("t", running.circuit.snapshot)).count()

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        assert [reader.result() for reader in readers] == [99, 99]
