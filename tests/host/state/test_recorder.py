"""Telling the store how an incarnation is, while the store is slow, gone or does not want to know."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.exc import DataError, OperationalError

from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.state import recorder as recorder_module
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.recorder import StatusRecorder

GONE = OperationalError("insert", {}, Exception("connection refused"))
ERROR = {"message": "the disk is full", "error_code": "SuspendError", "details": {}}


class Store:
    """Takes transitions, or fails as it is told."""

    def __init__(self) -> None:
        self.taken: list[RuntimeTransition] = []
        self.failure: Exception | None = None
        self.tries = 0

    def record(self, transition: RuntimeTransition) -> None:
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        self.taken.append(transition)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def recorder(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StatusRecorder:
    monkeypatch.setattr(recorder_module, "TELL_S", 0.2)
    registry: Any = store
    return StatusRecorder(UUID(int=1), registry, PipelineLog(tmp_path / "p.log", "p"))


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_store_knows_before_anybody_else(recorder: StatusRecorder, store: Store) -> None:
    recorder.record(RuntimeStatus.INITIALIZING, RuntimeStatus.RUNNING)
    assert [each.status for each in store.taken] == [RuntimeStatus.INITIALIZING]
    recorder.close(5)


@pytest.mark.rest
def test_a_store_that_is_gone_holds_nothing_up_and_learns_all_in_order(recorder: StatusRecorder, store: Store) -> None:
    running = RuntimeStatus.RUNNING
    recorder.record(RuntimeStatus.INITIALIZING, running)
    store.failure = GONE
    began = time.monotonic()
    recorder.record(running, running)
    for number in range(5):
        recorder.record(running, running, checkpoints=[{"uuid": str(number)}])
    recorder.record(running, running, details={"connector_stats": {"num_errors": 7}})
    recorder.record(running, running, error=ERROR)
    recorder.record(RuntimeStatus.SUSPENDED, RuntimeStatus.SUSPENDED)
    assert time.monotonic() - began < 5
    assert len(store.taken) == 1
    eventually(lambda: store.tries > 2)
    store.failure = None
    recorder.close(10)
    said = [(each.status.value, each.error, each.checkpoints) for each in store.taken[1:]]
    # One that says the same as the one that waits before it takes its place, with the newest list.
    assert said == [
        ("Running", None, None),
        ("Running", None, [{"uuid": "4"}]),
        ("Running", ERROR, None),
        ("Suspended", None, None),
    ]
    assert store.taken[2].details == {"connector_stats": {"num_errors": 7}}


def test_what_the_store_never_takes_is_logged_and_keeps_nothing_back(
    recorder: StatusRecorder, store: Store, tmp_path: Path
) -> None:
    store.failure = DataError("insert", {}, Exception("a NUL in a text"))
    recorder.record(RuntimeStatus.RUNNING, RuntimeStatus.RUNNING, error=ERROR)
    store.failure = None
    recorder.record(RuntimeStatus.STOPPED, RuntimeStatus.RUNNING)
    recorder.close(5)
    assert [each.status for each in store.taken] == [RuntimeStatus.STOPPED]
    assert "the store does not take the status Running" in (tmp_path / "p.log").read_text()


@pytest.mark.rest
def test_the_end_is_not_waited_for_without_end(recorder: StatusRecorder, store: Store, tmp_path: Path) -> None:
    store.failure = GONE
    recorder.record(RuntimeStatus.SUSPENDED, RuntimeStatus.SUSPENDED)
    began = time.monotonic()
    recorder.close(0.3)
    assert time.monotonic() - began < 5
    assert "cannot be told how the pipeline ended" in (tmp_path / "p.log").read_text()
