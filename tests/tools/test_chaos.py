"""What the rounds of ``make chaos`` rest on: points that exist, and a model that notices every loss."""

from __future__ import annotations

import os
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.engine.storage import checkpoint, durable
from tests.engine.crash import exit_code
from tools.chaos import pairs, streams
from tools.chaos.points import POINTS, Moment, Point, kill_at
from tools.chaos.systems.base import ChangedSums, Order, WrongTargetError, total
from tools.model import LostError, Model


def test_every_point_is_a_function_that_is_there() -> None:
    for point in (*POINTS, *streams.POINTS, *pairs.POINTS):
        _, _, function = point.resolve()
        assert callable(function)
        assert Point.parse(str(point)) == point


def write_three_files(folder: Path, moment: Moment) -> None:
    os.setpgid(0, 0)
    kill_at(Point("engine.storage.durable", "write_atomically", moment), 2)
    # Under the name by which another module has imported it, too.
    checkpoint.write_atomically(folder / "1", b"x")  # type: ignore[attr-defined]
    durable.write_atomically(folder / "2", b"x")
    durable.write_atomically(folder / "3", b"x")


@pytest.mark.core("before-made0")
@pytest.mark.processes
@pytest.mark.parametrize(("moment", "made"), [(Moment.BEFORE, ["1"]), (Moment.AFTER, ["1", "2"])])
def test_a_process_is_killed_at_the_call_it_was_told(tmp_path: Path, moment: Moment, made: list[str]) -> None:
    assert exit_code(write_three_files, tmp_path, moment) == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == made


def test_the_model_takes_a_first_part_of_what_had_no_answer() -> None:
    for count in range(4):
        model = Model()
        model.send([(1, 10), (2, 20)])
        model.acknowledge()
        model.send([(1, 11), (2, None), (3, 30)])
        states = [{1: 10, 2: 20}, {1: 11, 2: 20}, {1: 11}, {1: 11, 3: 30}]
        assert model.settle(states[count]) == count
        assert model.known == states[count]


@pytest.mark.parametrize("found", [{}, {1: 10}, {1: 10, 2: 20, 3: 30}, {1: 11, 2: 20, 3: 30}, {1: 9, 2: 20}])
def test_the_model_notices_what_no_kill_may_leave(found: dict[int, int]) -> None:
    model = Model()
    model.send([(1, 10), (2, 20)])
    model.acknowledge()
    model.send([(1, 11), (2, None), (3, 30)])
    with pytest.raises(LostError):
        model.settle(found)


def sums(customer: str, n: int, amount: str) -> dict[str, Any]:
    return {"customer": customer, "n": n, "total": Decimal(amount)}


def test_a_log_of_changes_adds_up_to_the_view() -> None:
    log = ChangedSums("log")
    log.change(None, sums("a", 1, "1.5"))
    log.change(sums("a", 1, "1.50"), sums("a", 2, "3"))
    log.change(None, sums("b", 1, "2"))
    log.change(sums("a", 2, "3"), None)
    assert log.sums == total([Order(1, "b", Decimal(2))])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, sums("a", 1, "1")),
        (sums("a", 2, "2"), sums("a", 3, "3")),
        (sums("b", 1, "1"), None),
    ],
)
def test_a_change_that_comes_twice_or_is_left_out_is_noticed(before: Any, after: Any) -> None:
    log = ChangedSums("log")
    log.change(None, sums("a", 1, "1"))
    with pytest.raises(WrongTargetError, match="a change of"):
        log.change(before, after)
