"""Contents that are put together in the process are those that a query gives."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from airflow_pipelines.compiler.adhoc import run_adhoc
from airflow_pipelines.engine import plain_contents as module
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import OP, Op
from tests.engine.asked import asked_of_spark
from tests.engine.programs import Running

pytestmark = pytest.mark.core

PROGRAM = """
create table item (k int, s varchar, d double, c decimal(38, 2), m interval month) with ('materialized' = 'true');
create table nested (k int, a int array) with ('materialized' = 'true');
create table keyed (k int not null primary key, v int unsigned) with ('materialized' = 'true');
create materialized view doubled as select k * 2 as k, s from item;
create materialized view counted as select s, count(*) as n from item group by s;
"""
LARGEST = Decimal("9" * 36 + ".99")
SMALLEST = Decimal("-" + "9" * 35 + ".99")
"""pyarrow takes no negative number of 38 digits from Python."""
ROWS: list[tuple[Any, ...]] = [
    (1, "a", 0.5, LARGEST, None),
    (1, "a", 0.5, LARGEST, None),
    (None, None, None, None, None),
    (None, None, None, None, None),
    (2, "ü\0", math.nan, SMALLEST, None),
    (2, "ü\0", -0.0, Decimal("0.00"), None),
    (3, "", math.inf, Decimal("0.01"), None),
]
RELATIONS = ("item", "nested", "keyed", "doubled", "counted")


@pytest.fixture
def running(sessions: SparkSessions) -> Running:
    return Running(PROGRAM, sessions)


def check(running: Running, among: tuple[str, ...] = RELATIONS) -> list[str]:
    """Compare the contents with what a query gives.

    :returns: the relations of which they were put together in the process
    """
    circuit, session = running.circuit, running.sessions.small
    plain = []
    for name in among:
        frame = circuit.plain_contents(name, circuit.snapshot, session)
        if frame is None:
            continue
        plain.append(name)
        expected = session.sql(circuit.contents(name, circuit.snapshot, single_partition=True))
        assert frame.schema == expected.schema
        assert shown(frame) == shown(expected), name
    return plain


def shown(frame: DataFrame) -> list[str]:
    """The rows in any order, also those that PySpark cannot read."""
    return sorted(repr(row) for table in stream_tables(frame) for row in table.to_pylist())


@pytest.mark.rest
def test_rows_come_as_often_as_they_are_there(running: Running) -> None:
    assert check(running) == []
    running.insert("item", *ROWS)
    running.step(running.changes("nested", (1, [1, None]), (1, [1, None])), running.changes("keyed", (1, 4_000_000_000), (2, None)))
    # Arrow cannot compare lists.
    assert check(running) == ["item", "keyed", "doubled", "counted"]
    running.insert("item", *ROWS[:4])
    running.insert("keyed", (1, 7))
    check(running)
    running.delete("item", *ROWS[:3])
    running.delete("item", *ROWS[4:6])
    assert check(running) == ["item", "keyed", "doubled", "counted"]
    running.delete("item", *ROWS[1:], *ROWS[:4], *ROWS)
    running.step(running.changes("keyed", (1, 7)))
    check(running)
    assert running.rows("item") == []


def test_a_relation_without_rows_left_is_empty(running: Running) -> None:
    running.insert("item", *ROWS[:1])
    running.delete("item", *ROWS[:1])
    check(running)
    frame = run_adhoc(running.circuit, "select * from item").frame
    assert frame is not None
    assert frame.collect() == []


def test_many_rows_and_many_copies_are_left_to_spark(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    running.insert("item", *ROWS)
    running.insert("item", *ROWS)
    running.delete("item", ROWS[0])
    most = sum(batch.memory_bytes for batch in running.circuit.snapshot.traces["item"].batches)
    monkeypatch.setattr(module, "MOST_BYTES", most)
    assert "item" in check(running)
    monkeypatch.setattr(module, "MOST_BYTES", most - 1)
    assert "item" not in check(running)


def test_rows_are_repeated_within_the_limit() -> None:
    rows = pa.table({"k": [1, 2, 3, None], WEIGHT: [2, -1, 0, 1]})
    repeated = module._repeat_rows(rows)
    assert repeated is not None
    assert repeated["k"].to_pylist() == [1, 1, None]
    empty = module._repeat_rows(rows.slice(0, 0))
    assert empty is not None
    assert empty.num_rows == 0
    for weight in (module.MOST_BYTES, 2**63 - 1):
        assert module._repeat_rows(pa.table({"k": [1, 2], WEIGHT: [weight, weight]})) is None


def test_a_query_that_only_chooses_rows_and_columns_takes_no_job(running: Running) -> None:
    running.insert("item", *ROWS)
    running.insert("keyed", (1, 4_000_000_000))
    running.delete("item", ROWS[0])
    context = running.sessions.small.sparkContext
    before = asked_of_spark(context)
    for query, expected in (
        ("select upper(s) as s, k + 1 as k from item where k = 1", [{"s": "A", "k": 2}]),
        ("select n from counted where s = 'ü\0'", [{"n": 2}]),
        ("select k, v from keyed where v > 5", [{"k": 1, "v": 4_000_000_000}]),
        ("select k from item where s = 'nothing'", []),
    ):
        frame = run_adhoc(running.circuit, query).frame
        assert frame is not None
        assert [row for table in stream_tables(frame) for row in table.to_pylist()] == expected, query
    changes = run_adhoc(running.circuit, "insert into keyed values (7, 8)").changes
    assert changes[0].rows.to_pylist() == [{"k": 7, "v": 8, OP: int(Op.INSERT)}]
    assert asked_of_spark(context) == before
