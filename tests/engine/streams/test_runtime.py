"""What is known of a stream program's process: whether its state can be saved, and whether sinks have something to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from airflow_pipelines.engine.streams.runtime import Dropped, Metrics, StreamRuntime, StreamStateLostError
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages, TaskMetrics


class _Worker:
    """Ends with its last step, and notes what is asked of it."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.database = Path("database")
        self.asked: list[str] = []

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        return Stepped()

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: object) -> Stepped:
        self.left -= 1
        return Stepped(has_ended=self.left <= 0)

    def take_checkpoint(self, folder: Path) -> StateChanges:
        self.asked.append("take_checkpoint")
        return StateChanges(b"", False)

    def committed(self) -> None:
        self.asked.append("committed")

    def metrics(self) -> Metrics | None:
        if self.left <= 0:
            raise StreamProgramError("it has ended")
        return {("counted", 0): TaskMetrics(counted={"left": self.left})}

    def close(self, wait_s: float) -> None:
        self.asked.append("close")


def _runtime(steps: int) -> tuple[StreamRuntime, _Worker]:
    worker = _Worker(steps)
    runtime = StreamRuntime(lambda: worker)
    runtime.open(None, (), Path.exists, None)
    return runtime, worker


def _step(runtime: StreamRuntime) -> None:
    runtime.step(0, (), None)
    runtime.mark_published()


def test_the_end_is_shown_once_when_sinks_have_committed_after_it() -> None:
    runtime, worker = _runtime(2)
    _step(runtime)
    runtime.take_checkpoint()
    runtime.committed()
    assert not runtime.has_end_to_show
    _step(runtime)
    assert runtime.has_end_to_show
    runtime.take_checkpoint()
    assert runtime.has_end_to_show, "prepared is not yet visible"
    runtime.committed()
    assert not runtime.has_end_to_show
    _step(runtime)
    assert not runtime.has_end_to_show, "there is nothing new in what other inputs of the pipeline bring"
    assert worker.asked == ["take_checkpoint", "committed"] * 2


def test_the_end_is_not_shown_before_its_step_is_published() -> None:
    runtime, _ = _runtime(1)
    runtime.step(0, (), None)
    assert not runtime.has_end_to_show
    with pytest.raises(StreamStateLostError):
        runtime.take_checkpoint()
    runtime.mark_published()
    assert runtime.has_end_to_show


def test_nothing_is_committed_that_was_not_prepared() -> None:
    runtime, worker = _runtime(1)
    runtime.committed()
    _step(runtime)
    runtime.committed()
    assert worker.asked == []
    assert runtime.has_end_to_show


def test_the_program_is_asked_for_its_last_figures() -> None:
    worker = _Worker(2)
    runtime = StreamRuntime(lambda: worker)
    assert not runtime.statistics.metrics, "before it is open it would take a question for something else"
    runtime.open(None, (), Path.exists, None)
    _step(runtime)
    assert runtime.statistics.metrics["counted", 0].counted == {"left": 1}
    _step(runtime)
    assert runtime.statistics.metrics["counted", 0].counted == {"left": 1}, "one that has ended has said what it had to say"
