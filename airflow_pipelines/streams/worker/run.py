"""A program that runs one step after the other over its feeds. The process of a program calls it for its messages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_pipelines.streams.elements import MIN_TIMESTAMP
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.local import STEP_ELEMENTS, LocalRunner
from airflow_pipelines.streams.loop import TaskPart
from airflow_pipelines.streams.state.entries import EVENT_TIME
from airflow_pipelines.streams.worker.bound import BoundProgram
from airflow_pipelines.streams.worker.chain_jobs import JobProgram
from airflow_pipelines.streams.worker.intake import FeedIntake
from airflow_pipelines.streams.worker.job_place import JobPlace
from airflow_pipelines.streams.worker.messages import Feed, Open, OutputRows, StateChanges, Stepped, StoredPages, TaskMetrics
from airflow_pipelines.streams.worker.moving import Moving, RunJobs, rounds_of
from airflow_pipelines.streams.worker.remote_plan import remote_plan
from airflow_pipelines.streams.worker.stored_state import StateChangeLog, StoredState

_METRICS_EVERY = 1.0
_MOST_COUNTED_BYTES = 64 << 20
_PLAIN = frozenset({int, float, str, bool, type(None)})


class GivenClock:
    """A clock whose time is set from outside.

    :param now_ms: ms since 1970
    """

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def now(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """
        return self.now_ms


class ProgramRun:
    """A run of a program.

    :param bound: the program
    :param request: the request that opens it
    :param state: the state from which it resumes
    :param pages: the state of a release that kept it in pages
    :raises StreamProgramError: if it cannot run as a part of a pipeline, or cannot resume from that state
    """

    def __init__(self, bound: BoundProgram, request: Open, state: StoredState, pages: Iterable[StoredPages] = ()) -> None:
        if bound.settings.is_batch:
            raise StreamProgramError(
                "The program runs in batch mode, and a pipeline runs step by step. Set RuntimeExecutionMode.STREAMING."
            )
        fed = remote_plan(bound.plan, request.schemas)
        plan, self._ports = fed.plan, fed.ports
        self._warnings: list[str] = []
        self._told: dict[tuple[str, int], TaskMetrics] = {}
        self._next_metrics = 0.0
        self._clock = GivenClock(_find_first_now(request, state))
        settings = replace(bound.settings, attempt=request.attempt, hot_bytes=_limit_hot_bytes(bound, request.memory_bytes))
        state.prepare(plan, pages)
        self._runner = LocalRunner(plan, settings, self._clock, state.snapshot(), state.rows_of, self._warnings.append)
        self._intake = FeedIntake(fed, self._runner.sources, self._warnings.append)
        self._log = StateChangeLog(plan, state)
        program = JobProgram(request.program, request.schemas, JobPlace.of_this_process(request.folders), request.attempt)
        self._moving = Moving(bound.plan, program, self._runner, self._intake, self._log)
        self._sizes = self._measure_at_rest()
        self._waiting: dict[tuple[str, int], int] = {}
        self._stood_at: tuple[int, int | None] | None = None
        self._was_counted = False

    def make_opening_reply(self) -> Stepped:
        """Return the reply before the first step.

        :returns: the time of the next call, and the metrics
        """
        return Stepped(next_due=self._runner.next_due(), metrics=self._metrics())

    def step(self, now_ms: int, feeds: Sequence[Feed]) -> Stepped:
        """Run one step: all feeds pass through the whole program.

        :param now_ms: processing time
        :param feeds: the feeds, in the order in which they arrived
        :returns: the output
        """
        self._clock.now_ms = now_ms
        self._intake.take(feeds)
        read = self._runner.step()
        while self._intake.has_waiting:
            read += self._runner.step()
        return self._make_stepped(read, ())

    def large_step(self, now_ms: int, feeds: Sequence[Feed], run_jobs: RunJobs, least: int) -> Stepped:
        """Run one step that may be large: chains with many elements run elsewhere. The result is that of :meth:`step`.

        :param now_ms: processing time
        :param feeds: the feeds, in the order in which they arrived
        :param run_jobs: the function that runs tasks elsewhere
        :param least: the minimum number of elements for which a chain runs elsewhere
        :returns: the output
        """
        self._clock.now_ms = now_ms
        self._intake.check(feeds)
        self._moving.begin(feeds, run_jobs, least)
        read = self._runner.step_chain_by_chain(rounds_of(feeds, STEP_ELEMENTS), self._moving)
        return self._make_stepped(read, self._moving.take_outputs())

    def _make_stepped(self, read: int, outputs: Sequence[OutputRows]) -> Stepped:
        warnings, self._warnings[:] = list(self._warnings), []
        return Stepped(
            outputs=[*outputs, *(() if self._ports is None else self._ports.take())],
            read=read,
            next_due=self._runner.next_due(),
            has_ended=self._runner.has_ended,
            metrics=self._metrics(),
            warnings=warnings,
        )

    def _metrics(self) -> dict[tuple[str, int], TaskMetrics]:
        now = time.monotonic()
        if now < self._next_metrics:
            return {}
        self._next_metrics = now + _METRICS_EVERY
        current = self.metrics()
        changed = {key: each for key, each in current.items() if self._told.get(key) != each}
        self._told = current
        return changed

    def metrics(self) -> dict[tuple[str, int], TaskMetrics]:
        """Return the metrics of all tasks.

        :returns: metrics by uid of the operator and number of the task
        """
        by_task = {}
        self._count_waiting()
        for part in self._runner.parts():
            watermark = part.operator.current_watermark
            key = (part.uid, part.index)
            size = self._sizes.get(key, 0)
            known = None if watermark == MIN_TIMESTAMP else watermark
            has_keys = part.store is not None and part.store.has_keys()
            by_task[key] = TaskMetrics(known, size, _collect_readings(part), self._waiting.get(key), has_keys)
        return by_task

    def _count_waiting(self) -> None:
        """Count the keys that wait for event time, once event time stands still: only then are these numbers of interest."""
        stands_at = self._runner.elements_read, self._runner.event_time()
        if stands_at != self._stood_at:
            self._waiting, self._stood_at, self._was_counted = {}, stands_at, False
        elif not self._was_counted:
            self._was_counted = True
            stores = [(part.uid, part.index, part.store) for part in self._runner.parts() if part.store is not None]
            self._waiting = {
                (uid, index): store.keys_with_timers(EVENT_TIME)
                for uid, index, store in stores
                if store.estimated_bytes() <= _MOST_COUNTED_BYTES
            }

    def _measure_at_rest(self) -> dict[tuple[str, int], int]:
        return {(part.uid, part.index): part.store.stored_bytes for part in self._runner.parts() if part.store is not None}

    def take_checkpoint(self, folder: Path) -> StateChanges:
        """Prepare the written output for commit, and return the state for a checkpoint.

        :param folder: the folder, which does not exist, for links to the files of the database
        :returns: the state
        """
        changes = self._log.changes(self._runner.flush(), self._runner.parts(), self._clock.now_ms, folder)
        self._sizes = self._measure_at_rest()
        return changes

    def notify_checkpoint_complete(self) -> None:
        """Notify the runner that the changes that were taken last are durable."""
        self._runner.notify_checkpoint_complete()

    def close(self) -> None:
        """Close all functions."""
        self._runner.close()

    def abort(self) -> None:
        """Close all functions after an error."""
        self._runner.abort()


def _collect_readings(part: TaskPart) -> dict[str, Any]:
    """Return the metrics of functions. A metric that cannot be read is reported as an error: it must not end the program."""
    try:
        return {name: _plain(value) for name, value in part.metrics.report().items()}
    except Exception as error:  # noqa: BLE001 (a function of the user)
        return {"error": f"{type(error).__name__}: {error}"}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value if value.__class__ in _PLAIN else str(value)


def _limit_hot_bytes(bound: BoundProgram, memory_bytes: int | None) -> int:
    """Return the maximum number of bytes of state as objects: no more than a quarter of the memory of the process."""
    wanted = bound.settings.hot_bytes
    return wanted if memory_bytes is None else min(wanted, memory_bytes // 4)


def _find_first_now(request: Open, state: StoredState) -> int:
    if request.now_ms is not None:
        return request.now_ms
    return time.time_ns() // 1_000_000 if state.now_ms is None else state.now_ms
