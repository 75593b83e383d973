"""What the rounds of ``make chaos`` rest on: points that exist, and a model that notices every loss."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from airflow_pipelines.engine.storage import checkpoint, durable
from tests.engine.crash import exit_code
from tools.chaos import streams
from tools.chaos.points import POINTS, Moment, Point, kill_at
from tools.model import LostError, Model


def test_every_point_is_a_function_that_is_there() -> None:
    for point in (*POINTS, *streams.POINTS):
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
