"""Collecting changes first and evaluating them as one step gives what one step over all of them gives."""

from __future__ import annotations

from datetime import datetime

import pytest

from airflow_pipelines.engine.pending import Pending
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.rows.changes import Op, TableChanges
from tests.engine.programs import Running, emitted
from tests.engine.sizes import SIZES

PROGRAM = """
create table keyed (id bigint not null primary key, v int);
create table bag (x int, m map<varchar, int>) with ('materialized' = 'true');
create table late (ts timestamp lateness interval 1 hour, v int);
create materialized view sums as select v, count(*) as n, sum(id) as ids from keyed group by v;
create materialized view joined as select k.id, b.x from keyed k join bag b on k.v = b.x;
create materialized view by_time as select ts, count(*) as n from late group by ts;
"""


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour)


def batches(running: Running) -> list[list[TableChanges]]:
    keyed, bag = "keyed", "bag"
    return [
        [running.changes(keyed, (1, 5), (2, 5), (3, 6)), running.changes(bag, (5, {"b": 1, "a": 2}), (5, None))],
        [running.changes(keyed, (1, None), op=Op.DELETE), running.changes(keyed, (2, 6), (4, 5))],
        [running.changes(bag, (5, {"a": 2, "b": 1}), (9, None), op=Op.DELETE), running.changes(bag, (6, None))],
        [running.changes(keyed, (1, 6)), running.changes(keyed, (3, 7), op=Op.UPDATE, given=["id", "v"])],
        # Behind the waterline of the step before, but not that far behind the rows that come with it.
        [running.changes("late", (at(12), 1)), running.changes("late", (at(8), 2))],
    ]


@pytest.mark.core("small")
@pytest.mark.parametrize("size", ["small", "mixed", "large"])
def test_it_is_the_step_over_all_changes(sessions: SparkSessions, size: str) -> None:
    runs = [Running(PROGRAM, sessions, limits=SIZES[size]) for _ in range(2)]
    for running in runs:
        running.insert("keyed", (1, 1), (2, 2))
        running.insert("late", (at(10), 0))
    at_once, collected = runs
    expected = at_once.step(*(change for batch in batches(at_once) for change in batch))

    before = collected.circuit.snapshot
    pending = Pending()
    rejected = 0
    for batch in batches(collected):
        found = collected.circuit.collect(batch, pending)
        pending, rejected = found.pending, rejected + len(found.rejected)
    assert collected.circuit.snapshot is before, "nobody sees anything yet"
    assert rejected == len(expected.rejected) == 1, "a row that was never there was deleted"
    step = collected.circuit.step_over(pending)
    collected.circuit.publish(step)

    def seen(running: Running, step: Step) -> dict[str, object]:
        views = running.program.views
        return {
            "number": step.number,
            "contents": {name: running.rows(name) for name in (*running.program.tables, *views)},
            "deltas": {name: emitted(step, name) for name in views},
            "late": sorted(len(part.rows) for part in step.late),
            "waterlines": step.snapshot.waterlines,
        }

    assert seen(collected, step) == seen(at_once, expected)
    assert len(seen(collected, step)["late"]) == 1  # type: ignore[arg-type]
    for running in runs:
        running.circuit.close()
