"""Execution of a whole program in this process, one step after the other: for scripts, tests and debugging."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from airflow_pipelines.streams.call_watch import CallWatch
from airflow_pipelines.streams.chain_by_chain import Elsewhere, Rounds, run_chain_by_chain
from airflow_pipelines.streams.clock import Clock, StepClock, SystemClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP, Element
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.fresh_sources import with_event_time_of, without_moved_sources
from airflow_pipelines.streams.graph.chains import Chain, Plan
from airflow_pipelines.streams.known_splits import KnownSplits
from airflow_pipelines.streams.loop import ChainTask, Channel, RowsOfOperator, TaskPart
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.operators.source import Read, SourceOperator
from airflow_pipelines.streams.restoring import refuse_unclaimed, task_snapshot
from airflow_pipelines.streams.scratch_state import ScratchState
from airflow_pipelines.streams.snapshots import Snapshot, TaskSnapshot
from airflow_pipelines.streams.state.rows import MemoryRows
from airflow_pipelines.streams.watermark_watch import WatermarkWatch

_log = logging.getLogger("airflow_pipelines.streams")
STEP_ELEMENTS = 10_000
YOUNG_OBJECTS = 50_000
"""The number of new objects after which Python looks for unused cycles among them; its own default is 700."""
_LONGEST_WAIT = 0.01


def _warn(message: str) -> None:
    _log.warning("%s", message)


@contextmanager
def collect_garbage_rarely() -> Iterator[None]:
    """Let Python look for unused cycles of objects less often.

    The elements of a step are many new objects, nearly all of which are in use until the step ends. To look at them again and again
    takes a third of the time of a program over rows.
    """
    thresholds = gc.get_threshold()
    if not 0 < thresholds[0] < YOUNG_OBJECTS:  # switched off, or rarer by the user's own choice
        yield
        return
    gc.set_threshold(YOUNG_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class LocalRunner:
    """A runner of a plan. The elements that a step reads pass through all chains before the next step begins.

    :param plan: the plan to run
    :param settings: the settings of the whole program
    :param clock: the clock of processing time
    :param snapshot: the snapshot to resume from, None for the beginning
    :param rows_of: the function that gives the rows at rest of each operator; None for rows in a folder that vanishes afterwards
    :param warn: a function that receives warnings for the user
    """

    def __init__(
        self,
        plan: Plan,
        settings: TaskSettings | None = None,
        clock: Clock | None = None,
        snapshot: Snapshot | None = None,
        rows_of: RowsOfOperator | None = None,
        warn: Callable[[str], None] = _warn,
    ) -> None:
        self._plan = plan
        self._settings = _share_memory(settings or TaskSettings(), plan)
        self._clock = clock or SystemClock()
        self._step_clock = StepClock(self._clock.now())
        self._tasks: dict[int, list[ChainTask]] = {}
        self._waiting: dict[tuple[int, int], list[tuple[Channel, list[Element]]]] = {}
        self._cancelled = threading.Event()
        self._watch = WatermarkWatch()
        self._calls = CallWatch(self._settings.call_seconds)
        self._warn = warn
        self.elements_read = 0
        self._scratch = None if rows_of is not None else ScratchState(plan, self._settings)
        self._rows_of = rows_of or self._scratch.rows_of  # type: ignore[union-attr]
        if snapshot is not None:
            refuse_unclaimed(snapshot, plan)
            snapshot = with_event_time_of(without_moved_sources(snapshot, plan, warn), plan)
        for chain in plan.chains:
            self._tasks[chain.number] = [self._make_task(chain, index) for index in range(chain.parallelism)]
            _share_splits(chain, self._tasks[chain.number])
        try:
            for chain in reversed(plan.chains):
                for task in self._tasks[chain.number]:
                    task.open(None if snapshot is None else task_snapshot(snapshot, chain, task.index))
        except BaseException:
            self._close_quietly()
            raise

    def _make_task(self, chain: Chain, index: int) -> ChainTask:
        return task_of_plan(self._plan, chain, index, self._settings, self._step_clock, self._rows_of)

    def new_task(self, task: ChainTask) -> ChainTask:
        """Return a new task that can replace another one.

        :param task: a task of this runner
        :returns: the same task, not yet opened
        """
        return self._make_task(task.chain, task.index)

    @property
    def has_ended(self) -> bool:
        """True if all inputs have ended and have been processed completely."""
        return all(task.has_ended for tasks in self._tasks.values() for task in tasks)

    def step(self, limits: Mapping[str, Mapping[int, int]] | None = None, default: int = STEP_ELEMENTS) -> int:
        """Run one step.

        :param limits: the maximum number of elements to read from a split, by the uid of the source and the number of the split
        :param default: the maximum for all other splits
        :returns: the number of elements that were read
        :raises FunctionTimeLimitError: if one call of a function exceeds the time limit
        """
        with self._calls, collect_garbage_rarely():
            return self._step(limits or {}, default)

    def _step(self, limits: Mapping[str, Mapping[int, int]], default: int) -> int:
        self._step_clock.now = now = self._clock.now()
        number = 0
        for chain in self._plan.chains:
            for task in self._tasks[chain.number]:
                if task.source is not None:
                    number += task.poll(limits.get(chain.head.uid, {}), default)
                else:
                    task.run(self._waiting.pop((chain.number, task.index), ()))
                task.processing_time(now)
                self._hand_over(task)
        for tasks in self._tasks.values():
            for task in tasks:
                task.end_of_step()
        self._note_read(number, now)
        return number

    def step_chain_by_chain(self, rounds: int, elsewhere: Elsewhere) -> int:
        """Run several steps at one processing time, with the same result as the same number of calls of :meth:`step`.

        :param rounds: the number of steps, large enough to read everything that waits in the sources
        :param elsewhere: the place that runs some of the chains
        :returns: the number of elements that were read
        :raises FunctionTimeLimitError: if one call of a function exceeds the time limit
        """
        with self._calls, collect_garbage_rarely():
            self._step_clock.now = now = self._clock.now()
            number = run_chain_by_chain(self._plan, self._tasks, Rounds(rounds, STEP_ELEMENTS, now), elsewhere)
            self._note_read(number, now)
            return number

    def _note_read(self, number: int, now: int) -> None:
        self.elements_read += number
        if self._watch.is_due(now):
            for message in self._watch.look(
                now, (task.inputs() for tasks in self._tasks.values() for task in tasks if not task.has_ended)
            ):
                self._warn(message)

    def _hand_over(self, task: ChainTask) -> None:
        for link, writer in task.exchanges.items():
            for target, elements in enumerate(writer.take()):
                if elements:
                    self._waiting.setdefault((link.target, target), []).append(((link.number, task.index), elements))

    def next_due(self) -> int | None:
        """Return the time at which the program needs another step even without input.

        :returns: processing time in ms, None for never
        """
        due = [task.next_due() for tasks in self._tasks.values() for task in tasks]
        return min((each for each in due if each is not None), default=None)

    def sources(self, uid: str) -> list[SourceOperator]:
        """Return the operators that read a source.

        :param uid: the uid of the source
        :returns: one operator for each task
        """
        chain = next(chain for chain in self._plan.chains if chain.head.uid == uid)
        return [task.source for task in self._tasks[chain.number] if task.source is not None]

    def run(self, after_step: Callable[[], None] | None = None) -> None:
        """Run steps until all inputs have ended, or :meth:`cancel` is called.

        :param after_step: a function that is called after each step
        """
        while not self.has_ended and not self._cancelled.is_set():
            self.step_or_wait()
            if after_step is not None:
                after_step()

    def step_or_wait(self) -> None:
        """Run one step, and wait a moment for input if there was nothing to read."""
        if self.step() == 0 and not self.has_ended:
            self._wait()

    def _wait(self) -> None:
        next_due = self.next_due()
        seconds = _LONGEST_WAIT if next_due is None else max(0.0, min(_LONGEST_WAIT, (next_due - self._clock.now()) / 1000))
        self._cancelled.wait(max(seconds, 0.001))

    def cancel(self) -> None:
        """Make :meth:`run` return after the current step. May be called from another thread."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """True if :meth:`cancel` was called."""
        return self._cancelled.is_set()

    def drain(self) -> None:
        """End all inputs here, and run steps until everything has been processed."""
        for tasks in self._tasks.values():
            for task in tasks:
                if task.source is not None:
                    task.source.stop_reading()
        while not self.has_ended:
            self.step()

    def snapshot(self) -> Snapshot:
        """Return the complete state of the program, between two steps.

        :returns: a snapshot with which a runner of the same program can be made
        :raises StreamProgramError: if the program runs in batch mode
        """
        return self._snapshot(ChainTask.snapshot)

    def flush(self) -> Snapshot:
        """Write the changes of the keyed state to the rows at rest.

        :returns: the state of the program besides these rows
        :raises StreamProgramError: if the program runs in batch mode
        """
        return self._snapshot(ChainTask.flush)

    def _snapshot(self, take: Callable[[ChainTask], TaskSnapshot]) -> Snapshot:
        if self._settings.is_batch:
            raise StreamProgramError("A program in batch mode has no snapshots: it is run again from its beginning.")
        snapshot = Snapshot()
        for chain in self._plan.chains:
            snapshot.tasks[chain.head.uid] = [take(task) for task in self._tasks[chain.number]]
            for step in chain.steps:
                snapshot.parallelism[step.uid] = chain.parallelism
                snapshot.max_parallelism[step.uid] = chain.max_parallelism
        return snapshot

    def notify_checkpoint_complete(self) -> None:
        """Handle that the last snapshot is durable: sinks make their output visible, and sources may forget what they gave."""
        for tasks in self._tasks.values():
            for task in tasks:
                task.notify_checkpoint_complete()

    def finish(self) -> None:
        """Commit what the last step wrote, and close all functions, sources and sinks."""
        for tasks in self._tasks.values():
            for task in tasks:
                task.prepare()
        self.notify_checkpoint_complete()
        self.close()

    def close(self) -> None:
        """Close all functions, sources and sinks. Output that was not committed is dropped.

        :raises Exception: if closing failed; the first error that was raised
        """
        self._calls.close()
        first: Exception | None = None
        for tasks in self._tasks.values():
            for task in tasks:
                try:
                    task.close()
                except Exception as error:  # noqa: BLE001 (raised below, when all others are closed)
                    first = first or error
        if self._scratch is not None:
            self._scratch.close()
        if first is not None:
            raise first

    def _close_quietly(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001 (the error that ended the program is the one to raise)
            return

    def abort(self) -> None:
        """Close everything after an error. Errors during closing are ignored, since they follow from that error."""
        self._close_quietly()

    def event_time(self) -> int | None:
        """Return the event time that has been reached at the ends of the program.

        :returns: the lowest watermark of the tasks whose output no other chain reads; None if there was no watermark yet
        """
        ends = [task for chain in self._plan.chains if not self._plan.out_of(chain) for task in self._tasks[chain.number]]
        lowest = min((task.watermark() for task in ends), default=MIN_TIMESTAMP)
        return None if lowest <= MIN_TIMESTAMP else lowest

    def state_bytes(self) -> int:
        """Return the approximate size of the keyed state.

        :returns: the size in bytes, as it would be stored
        """
        return sum(task.state_bytes() for tasks in self._tasks.values() for task in tasks)

    def parts(self) -> Iterator[TaskPart]:
        """Return all operators of all tasks.

        :returns: each operator with its metrics and its state
        """
        return (part for tasks in self._tasks.values() for task in tasks for part in task.parts())

    def metrics(self) -> dict[str, Any]:
        """Return the current metrics of all functions.

        :returns: readings by uid of the operator and number of the task
        """
        reports = {f"{part.uid}/{part.index}": part.metrics.report() for part in self.parts()}
        return {name: report for name, report in reports.items() if report}


def task_of_plan(
    plan: Plan,
    chain: Chain,
    index: int,
    settings: TaskSettings,
    clock: StepClock,
    rows_of: RowsOfOperator = lambda uid, groups, most: MemoryRows(),  # noqa: ARG005
) -> ChainTask:
    """Return one task of a plan, not yet opened.

    :param plan: the plan
    :param chain: the chain that the task runs
    :param index: the number of the task
    :param settings: the settings of the whole program
    :param clock: the clock of the current step
    :param rows_of: the function that gives the rows at rest of each operator
    """
    into = [(link, plan.chains[link.source].parallelism) for link in plan.into(chain)]
    out = [(link, plan.chains[link.target]) for link in plan.out_of(chain)]
    return ChainTask(chain, index, into, out, settings, clock, rows_of)


def _share_memory(settings: TaskSettings, plan: Plan) -> TaskSettings:
    """Return the settings with an equal share of the memory for state by key, for each operator of each task."""
    shares = sum(chain.parallelism for chain in plan.chains for step in chain.steps if step.node.operator.is_keyed)
    return replace(settings, hot_bytes=settings.hot_bytes // max(1, shares))


def _share_splits(chain: Chain, tasks: Iterable[ChainTask]) -> None:
    """Give all tasks that read a source the same list of its splits."""
    reads = chain.head.node.operator
    if isinstance(reads, Read):
        known = KnownSplits(reads.source, chain.parallelism)
        for task in tasks:
            task.known_splits = known
