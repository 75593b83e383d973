"""Attempts of one incarnation: which follow a failure, what is told of them, and what ends the wait for the next. Starts no JVM."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from uuid import uuid4

import pytest

from airflow_pipelines.contract.deployment import Deployment, RuntimeTransition
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.storage.fence import OvertakenError
from airflow_pipelines.host.runs import runner as module
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.runner import PipelineRunner
from airflow_pipelines.host.state.run_state import SuspendedEarly
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamProgram, StreamRestarts, StreamRun
from tests.fixtures.sdk import eventually

HOUR_MS = 3_600_000
FAILURE = StepError(STREAM_PROGRAM, "ValueError", "boom")


class Attempts:
    """Stand-ins for attempts: each ends as it is told to."""

    def __init__(self, restarts: StreamRestarts | None, *ends: Exception | None) -> None:
        self.program = StreamProgram("p", b"", run=StreamRun(restarts))
        self.ends = list(ends)
        self.numbers: list[int] = []
        self.told: list[str] = []

    def __call__(self, incarnation: Incarnation, number: int) -> SimpleNamespace:
        self.numbers.append(number)

        def run() -> None:
            self.told.append(f"run {number}")
            if (failure := self.ends.pop(0)) is not None:
                raise failure

        def end(reason: Problem) -> None:
            self.told.append(f"end {number}")

        return SimpleNamespace(
            run=run,
            end=end,
            close=lambda: self.told.append(f"close {number}"),
            keep_last_step=Mock(),
            stream_program=self.program,
            opening=SimpleNamespace(endpoints=None, live=None),
        )


class Run:
    """A runner whose attempts are stand-ins."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, attempts: Attempts) -> None:
        monkeypatch.setattr(module, "Attempt", attempts)
        monkeypatch.setattr(module, "begin_jobs", Mock())
        monkeypatch.setattr(module, "cancel_jobs", Mock())
        monkeypatch.setattr(module, "spark_problem", lambda _: None)
        self.transitions: list[RuntimeTransition] = []
        registry = Mock()
        registry.record.side_effect = lambda transition: self.transitions.append(transition)
        deployment = Deployment(
            deployment_id=uuid4(),
            pipeline_id=uuid4(),
            pipeline_name="p",
            source=ProgramSource(""),
            runtime_config={},
            storage=str(folder),
            log_path=str(folder / "log"),
        )
        self.log = folder / "log"
        self.runner = PipelineRunner(deployment, Mock(), registry, Mock(), Mock())

    def to_its_end(self, timeout_s: float = 20) -> PipelineRunner:
        self.runner.start()
        self.runner.join(timeout_s)
        assert self.runner.ended
        return self.runner


MakeRun = Callable[[Attempts], Run]


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    return lambda attempts: Run(tmp_path, monkeypatch, attempts)


def test_attempts_follow_failures_until_one_ends_well(make_run: MakeRun) -> None:
    attempts = Attempts(StreamRestarts(2, 0), FAILURE, FAILURE, None)
    run = make_run(attempts)
    run.to_its_end()
    assert attempts.told == [f"{what} {number}" for number in (1, 2, 3) for what in ("run", "end", "close")], (
        "each lets go of the storage before the next one is made"
    )
    assert [each.status.value for each in run.transitions] == ["Initializing", "Initializing", "Initializing", "Suspended"]
    assert [(each.details or {}).get("restart", {}).get("attempt") for each in run.transitions] == [None, 2, 3, None]
    assert all(each.error is None for each in run.transitions)
    assert "the stream program is restarted: attempt 2 of 3 in 0 s: " in run.log.read_text()


def test_the_last_failure_ends_the_incarnation(make_run: MakeRun) -> None:
    run = make_run(Attempts(StreamRestarts(1, 0), FAILURE, StepError(STREAM_PROGRAM, "ValueError", "the last")))
    run.to_its_end()
    last = run.transitions[-1]
    assert last.status.value == "Stopped"
    assert last.error is not None
    assert "the last" in last.error["message"]


@pytest.mark.parametrize("failure", [StepError("v", "DIVIDE_BY_ZERO", "1 / 0"), RuntimeError("a fault"), SuspendedEarly()])
def test_other_ends_are_followed_by_no_attempt(make_run: MakeRun, failure: Exception) -> None:
    attempts = Attempts(StreamRestarts(5, 0), failure)
    make_run(attempts).to_its_end()
    assert attempts.numbers == [1]


@pytest.mark.parametrize(("how", "end"), [("suspend", "Suspended"), ("take_down", None)])
def test_a_stop_ends_the_wait_for_the_next_attempt(make_run: MakeRun, how: str, end: str | None) -> None:
    attempts = Attempts(StreamRestarts(5, HOUR_MS), FAILURE)
    run = make_run(attempts)
    run.runner.start()
    eventually(lambda: "end 1" in attempts.told)
    assert "close 1" not in attempts.told, "the storage is held while the next attempt is waited for"
    began = time.monotonic()
    getattr(run.runner, how)()
    run.runner.join(10)
    assert time.monotonic() - began < 5
    assert run.runner.ended
    assert attempts.told == ["run 1", "end 1", "end 1", "close 1"]
    assert [each.status.value for each in run.transitions][2:] == ([] if end is None else [end])


def test_a_later_run_that_takes_the_storage_ends_the_wait(make_run: MakeRun, tmp_path: Path) -> None:
    attempts = Attempts(StreamRestarts(5, 0), FAILURE)
    run = make_run(attempts)

    def overtaken() -> None:
        raise OvertakenError(tmp_path / "epoch.json", "another")

    run.runner._fence.begin(overtaken)
    run.to_its_end()
    assert attempts.numbers == [1]
    assert run.transitions[-1].error is not None
