"""What is kept of the changes of a relation for those who ask again and again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.host.outputs import change_log
from airflow_pipelines.host.outputs.change_log import ChangeLog, ChangeLogs, Place, Run, Since
from airflow_pipelines.host.outputs.followed_note import FollowedNote

SCHEMA = weighted(StructType([StructField("x", LongType())]))


def delta(*values: int) -> Batch:
    return Batch.in_memory(SCHEMA, pa.table({"x": list(values), "__weight": [1] * len(values)}))


def steps(found: Since | None) -> list[int]:
    assert found is not None
    return [each.step for each in found.steps]


def test_what_came_after_a_step() -> None:
    log = ChangeLog(5)
    log.add(5, delta(0))
    log.add(6, delta(1))
    log.add(7, None)
    log.add(8, delta(2, 3))
    assert log.since(4) is None
    assert steps(log.since(5)) == [6, 8]
    assert steps(log.since(7)) == [8]
    found = log.since(8)
    assert found == Since((), 8, 0)
    log.add(9, delta())
    assert log.since(8) == Since((), 9, 0)
    # Who has read the contents after a step that is about to be added is not given it again.
    assert log.since(10) == Since((), 10, 0)


@pytest.mark.parametrize(("limit", "value"), [("STEPS", 2), ("ROWS", 4), ("MEMORY_BYTES", 2 * delta(1, 2).memory_bytes)])
def test_the_oldest_steps_go(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(change_log, limit, value)
    log = ChangeLog(0)
    for step in (1, 2, 3):
        log.add(step, delta(1, 2))
    assert log.since(0) is None
    assert steps(log.since(1)) == [2, 3]
    # The newest one stays however large it is.
    log.add(4, delta(*range(100)))
    assert log.since(1) is None
    assert steps(log.since(3)) == [4]


def test_an_answer_has_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "ANSWER_ROWS", 3)
    log = ChangeLog(0)
    for step, rows in ((1, 2), (2, 1), (3, 5), (4, 1)):
        log.add(step, delta(*range(rows)))
    first = log.since(0)
    assert (steps(first), first and first.until, first and first.behind) == ([1, 2], 2, 6)
    second = log.since(2)
    assert (steps(second), second and second.until, second and second.behind) == ([3], 3, 1)
    last = log.since(3)
    assert (steps(last), last and last.until, last and last.behind) == ([4], 4, 0)


def test_places_of_this_run_and_of_others() -> None:
    logs = ChangeLogs()
    with pytest.raises(RuntimeError):
        logs.place(1)
    assert logs.step_of(Place("a:1", 3)) is None
    logs.begin(Run("a:2", Place("a:1", 7)), 7, FollowedNote(None))
    assert Place.read(str(logs.place(9))) == Place("a:2", 9)
    assert logs.step_of(Place("a:2", 9)) == 9
    # What the run before had reached is what this one began with; what it reached besides is not.
    assert logs.step_of(Place("a:1", 7)) == 7
    assert logs.step_of(Place("a:1", 6)) is None
    assert logs.step_of(Place("a:1", 8)) is None
    assert logs.step_of(Place("b:1", 7)) is None
    for text in ("", "7", ":7", "a:x"):
        with pytest.raises(ValueError, match=r"invalid literal|no place"):
            Place.read(text)


def test_nothing_is_kept_of_what_nobody_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = ChangeLogs()
    logs.begin(Run("a"), 0, FollowedNote(None))
    logs.add(1, {"v": delta(1)})
    log = logs.follow("v")
    assert log.since(0) is None
    logs.add(2, {"v": delta(2), "w": delta(1)})
    assert steps(log.since(1)) == [2]
    assert logs.follow("v") is log
    monkeypatch.setattr(change_log, "FORGET_S", -1.0)
    logs.add(3, {"v": delta(3)})
    assert logs.follow("v").since(2) is None


def test_the_next_run_keeps_what_was_followed(tmp_path: Path) -> None:
    one = ChangeLogs()
    one.begin(Run("a:1"), 0, FollowedNote(tmp_path))
    one.follow("v")
    one.follow("w")
    two, other = ChangeLogs(), ChangeLogs()
    two.begin(Run("a:2", Place("a:1", 7)), 7, FollowedNote(tmp_path))
    two.add(8, {"v": delta(1), "x": delta(1)})
    assert steps(two.follow("v").since(7)) == [8]
    assert two.follow("w").since(7) == Since((), 8, 0)
    assert two.follow("x").since(7) is None
    # What does not go on from where a run has ended has no reader that could be in step with it.
    other.begin(Run("a:3"), 7, FollowedNote(tmp_path))
    other.add(8, {"v": delta(1)})
    assert other.follow("v").since(7) is None
    # Whom nobody asks for any more is not noted for ever.
    third = ChangeLogs()
    third.begin(Run("a:4", Place("a:3", 8)), 8, FollowedNote(tmp_path))
    third.add(9, {"v": delta(1), "w": delta(1)})
    assert steps(third.follow("v").since(8)) == [9]
    assert third.follow("w").since(8) is None


def test_waiting_ends_with_a_change_after_a_while_and_at_the_end() -> None:
    logs = ChangeLogs()
    logs.begin(Run("a"), 0, FollowedNote(None))

    async def scenario() -> tuple[Since | None, ...]:
        assert await logs.wait_for_changes("v", 0, 0.0) == Since((), 0, 0)
        threading.Timer(0.02, lambda: (logs.add(1, {"w": delta(1)}), logs.add(2, {"v": delta(1)}))).start()
        found = await logs.wait_for_changes("v", 0, 20.0)
        nothing = await logs.wait_for_changes("v", 2, 0.01)
        threading.Timer(0.02, logs.close).start()
        closed = await logs.wait_for_changes("v", 2, 20.0)
        unknown = await logs.wait_for_changes("v", -1, 20.0)
        return found, nothing, closed, unknown

    found, nothing, closed, unknown = asyncio.run(asyncio.wait_for(scenario(), 10))
    assert steps(found) == [2]
    assert nothing == closed == Since((), 2, 0)
    assert unknown is None
