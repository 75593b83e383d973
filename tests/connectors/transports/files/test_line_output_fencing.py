"""Two runs of a pipeline with one output file: only the later one's changes are in it, also where no lock keeps them apart."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files import line_output
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.engine.storage.fence import Fence, OvertakenError
from airflow_pipelines.rows.formats.json import JsonOptions
from tests.connectors.transports.files.test_line_output import delta, ids


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that does not share its locks."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


def begun(folder: Path, step: int | None) -> FileOutput:
    """The output of a run of its own, which goes on after a step, or begins anew where there is no checkpoint."""
    fence = Fence.take(folder, lambda: 0)
    positions = folder / "outputs" / "v.out.steps"
    sink = FileOutput(str(folder / "out"), JsonOptions(), positions, fence)
    sink.open(step is not None)
    if step is not None:
        sink.rewind(step)
    return sink


def at_flush(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Something happens at the next flush, when what is flushed has been written."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        action()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.usefixtures("unlocked")
def test_an_overtaken_run_writes_nothing_more(tmp_path: Path) -> None:
    old = begun(tmp_path, None)
    old.write(1, delta((1, "x", 1)))
    old.write(2, delta((2, "x", 1)))
    new = begun(tmp_path, 1)
    # Between its commit of the third step and the delivery the old one was overtaken.
    attempts: list[Callable[[], Any]] = [
        lambda: old.write(3, delta((3, "x", 1))),
        lambda: old.write(2, delta((3, "x", 1))),
        lambda: old.rewind(0),
        lambda: old.open(True),
    ]
    for attempt in attempts:
        with pytest.raises(OvertakenError):
            attempt()
        assert ids(tmp_path / "out") == [1]
    old.close()
    new.write(2, delta((20, "x", 1)))
    assert ids(tmp_path / "out") == [1, 20]
    new.close()
    begun(tmp_path, 2).write(3, delta((30, "x", 1)))
    assert ids(tmp_path / "out") == [1, 20, 30]
    assert len(list((tmp_path / "outputs").iterdir())) == 1, "the positions of replaced runs go"


@pytest.mark.usefixtures("unlocked")
def test_what_an_overtaken_run_had_on_its_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = begun(tmp_path, None)
    old.write(1, delta((1, "x", 1)))
    taken: list[FileOutput] = []
    at_flush(monkeypatch, lambda: taken.append(begun(tmp_path, 1)))
    with pytest.raises(OvertakenError):
        old.write(2, delta((2, "x", 1)))
    assert ids(tmp_path / "out") == [1], "it was there when the later run began"

    # The lines of the next one come after the later run has begun, or in the middle of its write.
    late = b'{"insert":{"id":99,"name":"late"}}\n'
    with (tmp_path / "out").open("ab") as file:
        file.write(late)
    taken[0].write(2, delta((20, "x", 1)))
    assert ids(tmp_path / "out") == [1, 20]

    def interfere() -> None:
        with (tmp_path / "out").open("ab") as file:
            file.write(late)

    at_flush(monkeypatch, interfere)
    taken[0].write(3, delta((30, "x", 1)))
    assert ids(tmp_path / "out") == [1, 20, 30]


@pytest.mark.usefixtures("unlocked")
def test_a_replaced_run_leaves_the_positions_of_the_later_one_alone(tmp_path: Path) -> None:
    old = begun(tmp_path, None)
    old.write(1, delta((1, "x", 1)))
    new = begun(tmp_path, 1)
    new.write(2, delta((20, "x", 1)))
    # As if it had been between its last look and the write of its positions.
    old._ends.add(2, 12345)
    old._ends.rewind(1)
    new.write(3, delta((30, "x", 1)))
    new.close()
    again = begun(tmp_path, 3)
    again.write(4, delta((40, "x", 1)))
    assert ids(tmp_path / "out") == [1, 20, 30, 40]


@pytest.mark.parametrize("step", [None, 1])
def test_a_run_waits_until_the_one_before_has_let_go_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int | None
) -> None:
    old = begun(tmp_path, None)
    old.write(1, delta((1, "x", 1)))
    waits: list[float] = []

    def let_go(seconds: float) -> None:
        waits.append(seconds)
        old.close()

    with monkeypatch.context() as waiting:
        waiting.setattr(tenacity.nap, "time", SimpleNamespace(sleep=let_go))
        new = begun(tmp_path, step)
    assert len(waits) == 1
    new.write(2, delta((2, "x", 1)))
    assert ids(tmp_path / "out") == ([2] if step is None else [1, 2])
    monkeypatch.setattr(line_output, "LOCK_S", 0.3)
    with pytest.raises(ConnectorFailure, match="another output writes this file"):
        begun(tmp_path, 2)


def test_positions_of_earlier_runs_and_releases_are_taken_over(tmp_path: Path) -> None:
    run = begun(tmp_path, None)
    run.write(1, delta((1, "x", 1)))
    run.close()
    [kept] = (tmp_path / "outputs").iterdir()
    assert kept.name == "v.out.steps.1"
    # Releases without epochs had one file for all runs. A kill while it is taken over may leave it beside the newer one.
    plain = tmp_path / "outputs" / "v.out.steps"
    kept.rename(plain)
    older = plain.read_bytes()
    run = begun(tmp_path, 1)
    run.write(2, delta((2, "x", 1)))
    run.close()
    plain.write_bytes(older)
    run = begun(tmp_path, 2)
    run.write(3, delta((3, "x", 1)))
    assert ids(tmp_path / "out") == [1, 2, 3]
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["v.out.steps.3"]
