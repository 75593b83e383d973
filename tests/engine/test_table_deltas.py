"""Tables that are truncated: what they have goes, what comes after stays, and only the difference is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.engine.pending import Pending
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import Op, TableChanges
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

PROGRAM = """
create table keyed (id bigint not null primary key, name varchar);
create table bag (id bigint, name varchar);
create table log (id bigint) with ('append_only' = 'true');
create table late (id bigint, at timestamp lateness interval 1 hour);
create materialized view names as select name, count(*) as n from keyed group by name;
create materialized view all_bags as select id, name from bag;
create view logged as select id from log;
create materialized view latest as select max(at) as at from late;
"""


@pytest.fixture(params=["small", "mixed", "large"])
def running(sessions: SparkSessions, request: pytest.FixtureRequest) -> Running:
    return Running(PROGRAM, sessions, limits=SIZES[request.param])


def truncating(changes: TableChanges) -> TableChanges:
    return replace(changes, truncates=True)


@pytest.mark.core("mixed", "small")
def test_only_the_difference_is_seen(running: Running) -> None:
    running.insert("keyed", (1, "a"), (2, "a"), (3, "b"), (4, "c"))
    running.insert("bag", (1, "x"), (1, "x"), (2, None))
    step = running.step(
        truncating(running.changes("keyed", (1, "a"), (3, "c"), (5, "c"))), truncating(running.changes("bag", (1, "x"), (3, "z")))
    )
    assert running.rows("keyed") == [(1, "a"), (3, "c"), (5, "c")]
    assert emitted(step, "names") == [("a", 1, 1), ("a", 2, -1), ("b", 1, -1), ("c", 1, -1), ("c", 2, 1)]
    assert emitted(step, "all_bags") == [(1, "x", -1), (2, None, -1), (3, "z", 1)]
    same = running.step(truncating(running.changes("keyed", (1, "a"), (3, "c"), (5, "c"))))
    assert not emitted(same, "names")
    assert all(delta.rows == 0 for delta in same.table_deltas.values())


@pytest.mark.core("mixed", "small")
def test_what_comes_before_and_after_in_the_same_step(running: Running) -> None:
    running.insert("keyed", (1, "a"), (2, "b"))
    running.step(
        running.changes("keyed", (3, "lost")),
        truncating(running.changes("keyed", (9, "lost too"))),
        running.changes("keyed", (2, "gone"), op=Op.DELETE),
        truncating(running.changes("keyed")),
        running.changes("keyed", (1, "new"), (4, "d")),
        running.changes("keyed", (4, None), op=Op.DELETE),
        running.changes("keyed", (2, "no such row"), op=Op.UPDATE, given=["name"]),
    )
    assert running.rows("keyed") == [(1, "new")]
    assert running.rows("names") == [("new", 1)]
    running.step(truncating(running.changes("bag")))
    assert running.rows("bag") == []
    # A row of before is not there to be deleted.
    running.insert("bag", (1, "x"))
    step = running.step(truncating(running.changes("bag", (1, "x"), op=Op.DELETE)))
    assert [(rejected.count, rejected.reason) for rejected in step.rejected] == [(1, "the deleted row is not in the table")]
    assert running.rows("bag") == []


@pytest.mark.core("mixed", "small")
def test_within_a_transaction(running: Running) -> None:
    running.insert("keyed", (1, "a"), (2, "b"))
    pending = Pending()
    for changes in (
        running.changes("keyed", (3, "c")),
        truncating(running.changes("keyed", (2, "b"))),
        running.changes("keyed", (4, "d")),
    ):
        pending = running.circuit.collect([changes], pending).pending
    assert running.rows("keyed") == [(1, "a"), (2, "b")]
    step = running.circuit.step_over(pending)
    running.circuit.publish(step)
    assert running.rows("keyed") == [(2, "b"), (4, "d")]
    assert emitted(step, "names") == [("a", 1, -1), ("d", 1, 1)]


@pytest.mark.core
@pytest.mark.parametrize(("table", "why"), [("log", "append-only"), ("late", "forgets old rows")])
def test_tables_whose_rows_are_not_all_known_are_not_truncated(sessions: SparkSessions, table: str, why: str) -> None:
    running = Running(PROGRAM, sessions)
    empty = running.changes(table)
    with pytest.raises(ValueError, match=f"table '{table}' cannot be truncated: .*{why}"):
        running.step(truncating(empty))
