"""Which failures of a pipeline are followed by another attempt, and how that is told."""

from __future__ import annotations

from uuid import UUID

import pytest

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem
from airflow_pipelines.engine.streams.runtime import StreamProgramFailure
from airflow_pipelines.host.runs.attempt import run_id
from airflow_pipelines.host.runs.restarts import Restarts
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamProgram, StreamRestarts, StreamRun

FAILURE = StepError(STREAM_PROGRAM, "ValueError", "boom")


def _program(attempts: int, delay_ms: int = 1000, interval_ms: int | None = None) -> StreamProgram:
    return StreamProgram("p", b"", run=StreamRun(StreamRestarts(attempts, delay_ms, interval_ms)))


def test_attempts_are_numbered_until_there_are_no_more() -> None:
    restarts = Restarts()
    assert restarts.attempt == 1
    described = []
    while (restart := restarts.after(FAILURE, _program(2, 1500))) is not None:
        described.append(restart.describe())
        assert restarts.attempt == restart.attempt
    assert described == ["attempt 2 of 3 in 1.5 s", "attempt 3 of 3 in 1.5 s"]
    assert restarts.attempt == 3


def test_a_rate_says_how_many_failures_there_were() -> None:
    times = iter([0.0, 1.0, 100.0])
    restarts = Restarts(lambda: next(times))
    told = [restarts.after(FAILURE, _program(1, 0, 60_000)) for _ in range(3)]
    assert [each and each.describe() for each in told] == [
        "attempt 2 in 0 s (failures in the last 60 s: 1, allowed: 1)",
        None,
        "attempt 3 in 0 s (failures in the last 60 s: 1, allowed: 1)",
    ]


@pytest.mark.parametrize(
    ("failure", "restarted"),
    [
        (FAILURE, True),
        (FatalConnectorFailure("the source fails"), True),
        (StreamProgramFailure("a sink fails"), True),
        (StepError("v", "DIVIDE_BY_ZERO", "1 / 0"), False),
        (StorageError(StorageProblem.DAMAGED, None, "gone"), False),
        (Problem(ErrorCode.WORKER_PANIC, "something else"), False),
        (RuntimeError("a fault of the engine"), False),
    ],
)
def test_only_failures_of_the_stream_program_are_followed_by_a_restart(failure: Exception, restarted: bool) -> None:
    assert (Restarts().after(failure, _program(5)) is not None) is restarted


@pytest.mark.parametrize("program", [None, StreamProgram("p", b""), _program(0)])
def test_without_a_strategy_the_first_failure_ends_the_incarnation(program: StreamProgram | None) -> None:
    assert Restarts().after(FAILURE, program) is None


def test_what_the_transition_tells() -> None:
    restart = Restarts().after(FAILURE, _program(1, 250))
    assert restart is not None
    assert restart.to_wire("boom") == {"restart": {"attempt": 2, "delay_ms": 250, "reason": "boom"}}


def test_what_one_attempt_has_counted_is_not_taken_for_that_of_another() -> None:
    incarnation = UUID(int=7)
    ids = [run_id(incarnation, attempt) for attempt in (1, 2, 3)]
    assert ids[0] == incarnation
    assert len(set(ids)) == 3
    assert ids[1] == run_id(incarnation, 2)
