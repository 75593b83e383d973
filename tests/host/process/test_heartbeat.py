"""What a host learns by its heartbeat, and that nothing of a store's trouble ends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.exc import OperationalError

from airflow_pipelines.host.process.heartbeat import Heartbeat

HOST = UUID(int=1)


class Rows:
    """The host's row, behind a store that does what it is told."""

    def __init__(self) -> None:
        self.beats = 0
        self.wanted = True
        self.behave: Callable[[], None] = lambda: None

    def update(self, _: UUID, **__: Any) -> bool:
        self.behave()
        self.beats += 1
        return self.wanted

    def get(self, _: UUID) -> Any:
        self.behave()
        return SimpleNamespace(ended_at=None if self.wanted else 1.0)


def begun(rows: Rows, is_well: Callable[[], bool] = lambda: True) -> Heartbeat:
    registry: Any = rows
    store: Any = SimpleNamespace(gone=None)
    heartbeat = Heartbeat(HOST, registry, store, every_s=0.01, grace_s=0.5)
    heartbeat.start(is_well)
    return heartbeat


def eventually(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.rest
def test_a_store_that_fails_is_borne_for_a_while_and_one_that_is_back_is_all_right() -> None:
    rows = Rows()
    heartbeat = begun(rows)
    eventually(lambda: rows.beats > 3)

    def refuse() -> None:
        raise OperationalError("update", {}, Exception("connection refused"))

    for failure in (refuse, lambda: 1 / 0):
        rows.behave = failure  # type: ignore[assignment]
        assert heartbeat.reason_to_end is None
        eventually(lambda: heartbeat.reason_to_end)
        rows.behave = lambda: None
        eventually(lambda: heartbeat.reason_to_end is None)
    heartbeat.stop()


@pytest.mark.rest
def test_a_store_that_never_answers_does_not_keep_a_host_for_ever() -> None:
    rows, answer = Rows(), threading.Event()
    rows.behave = lambda: answer.wait(30) and None
    heartbeat = begun(rows)
    eventually(lambda: heartbeat.reason_to_end)
    assert "the store has not answered, for " in (heartbeat.reason_to_end or "")
    answer.set()
    heartbeat.stop()


def test_a_host_that_is_not_well_does_not_beat_but_learns_that_it_is_not_wanted() -> None:
    rows = Rows()
    asked: list[bool] = []
    heartbeat = begun(rows, lambda: bool(asked.append(False)))
    eventually(lambda: len(asked) >= 3)
    assert rows.beats == 0
    assert heartbeat.reason_to_end is None
    rows.wanted = False
    eventually(lambda: heartbeat.reason_to_end == "the host's row was ended")
    heartbeat.stop()
