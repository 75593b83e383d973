"""The log of the newest steps' changes in relations that readers follow by repeated requests.

A reader names the place up to which it has a relation, and gets the changes since then, as long as they are known; otherwise it
begins anew with the contents. So nothing is kept for readers that have gone, and no reader holds up the pipeline.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.host.outputs.followed_note import FollowedNote

MEMORY_BYTES: Final = 64 << 20
"""The approximate number of bytes in memory that the changes of a log may take, those of the newest step excepted."""
STEPS: Final = 10_000
"""The greatest number of steps in a log."""
ROWS: Final = 10_000_000
"""The approximate number of rows that the changes of a log may have, those of the newest step excepted."""
FORGET_S: Final = 600.0
"""The seconds after which a log that nobody has read is dropped."""
ANSWER_ROWS: Final = 500_000
"""The number of rows at which an answer ends. An answer has at least one step."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a pipeline, as places name it.

    :param name: a name that no other run has, of this or any other pipeline
    :param before: the place of the state that the run began with, or None if it began empty or with a state that readers have not
        seen
    """

    name: str
    before: Place | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The state of a relation after a step.

    :param run: the name of the run that committed the step
    :param step: the step
    """

    run: str
    step: int

    def __str__(self) -> str:
        """Return the text by which readers name the place. They need not understand it."""
        return f"{self.run}:{self.step}"

    @classmethod
    def read(cls, text: str) -> Place:
        """Return the place that a reader names.

        :raises ValueError: if the text is not a place
        """
        run, _, step = text.rpartition(":")
        if not run:
            raise ValueError(f"{text!r} is no place")
        return cls(run, int(step))


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """The changes of a step in a relation.

    :param step: the step's number
    :param delta: rows with weights
    """

    step: int
    delta: Batch


@dataclass(frozen=True, slots=True)
class Since:
    """The changes since a place.

    :param steps: the oldest of the steps with changes, in order
    :param until: the step up to which these are all changes
    :param behind: the approximate number of rows in later steps
    """

    steps: tuple[LoggedStep, ...]
    until: int
    behind: int


class ChangeLog:
    """The changes of the newest steps in one relation."""

    def __init__(self, step: int) -> None:
        """Begin the log after a step.

        :param step: the newest step whose contents can be read
        """
        self._begin = self._newest = step
        self._steps: deque[LoggedStep] = deque()
        self._bytes = 0
        self._rows = 0
        self.asked = time.monotonic()

    def add(self, step: int, delta: Batch | None) -> None:
        """Add a step.

        :param step: the step's number
        :param delta: its changes, or None if there are none
        """
        if step <= self._newest:
            # The step was the newest when the log began.
            return
        self._newest = step
        if delta is None or not delta.rows:
            return
        self._steps.append(LoggedStep(step, delta))
        self._bytes += delta.memory_bytes
        self._rows += delta.rows
        while len(self._steps) > 1 and (self._bytes > MEMORY_BYTES or self._rows > ROWS or len(self._steps) > STEPS):
            oldest = self._steps.popleft()
            self._bytes -= oldest.delta.memory_bytes
            self._rows -= oldest.delta.rows
            self._begin = oldest.step

    def since(self, step: int) -> Since | None:
        """Return the changes after a step, or None if they are no longer known.

        :param step: the step, of this run
        """
        if step < self._begin:
            return None
        later = [each for each in self._steps if each.step > step]
        taken: list[LoggedStep] = []
        rows = 0
        for each in later:
            if taken and rows + each.delta.rows > ANSWER_ROWS:
                break
            taken.append(each)
            rows += each.delta.rows
        rest = later[len(taken) :]
        until = taken[-1].step if rest else max(step, self._newest)
        return Since(tuple(taken), until, sum(each.delta.rows for each in rest))


class ChangeLogs:
    """The logs of the relations of one run. The pipeline's thread adds steps, requests come from other threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, ChangeLog] = {}
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._run: Run | None = None
        self._note = FollowedNote(None)
        self._first = self._newest = 0
        self._closed = False

    def begin(self, run: Run, step: int, note: FollowedNote) -> None:
        """Begin to log, once the pipeline is open.

        :param run: the run that the places name
        :param step: the step that it begins with
        :param note: the relations that were followed before; those that are followed from now on are noted there
        """
        with self._lock:
            self._run, self._note = run, note
            self._first = self._newest = step
            # For readers that have read the previous run up to its end, the first steps of this run are changes, too.
            followed = note.read() if run.before is not None else frozenset()
            self._logs = {relation: ChangeLog(step) for relation in followed}

    def add(self, step: int, deltas: Mapping[str, Batch]) -> None:
        """Add a step.

        :param step: the step's number
        :param deltas: its changes, by relation
        """
        with self._lock:
            self._newest = step
            if not self._logs:
                return
            forgotten = time.monotonic() - FORGET_S
            self._logs = {name: log for name, log in self._logs.items() if log.asked >= forgotten}
            for name, log in self._logs.items():
                log.add(step, deltas.get(name))
        self._wake()

    def place(self, step: int) -> Place:
        """Return the place of a step of this run."""
        if self._run is None:
            raise RuntimeError("the pipeline is not open")
        return Place(self._run.name, step)

    def step_of(self, place: Place) -> int | None:
        """Return the step of this run whose contents a place names, or None if the place is of another history."""
        run = self._run
        if run is None:
            return None
        if place.run == run.name:
            return place.step
        return self._first if place == run.before else None

    def follow(self, relation: str) -> ChangeLog:
        """Return the log of a relation, which begins now unless it exists.

        A step whose contents can be read, but which is not in the log because it is about to be added, will still be added.

        :param relation: the relation
        """
        with self._lock:
            return self._follow(relation)

    async def wait_for_changes(self, relation: str, step: int, wait_s: float) -> Since | None:
        """Return the changes in a relation after a step, once there are any or the time is over; None if they are not known.

        :param relation: the relation
        :param step: the step, of this run
        :param wait_s: the seconds to wait at most
        """
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        deadline = time.monotonic() + wait_s
        with self._lock:
            self._waiting.add(waiter)
        try:
            while True:
                event.clear()
                with self._lock:
                    changes = self._follow(relation).since(step)
                left = deadline - time.monotonic()
                if changes is None or changes.steps or left <= 0 or self._closed:
                    return changes
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    continue
        finally:
            with self._lock:
                self._waiting.discard(waiter)

    def close(self) -> None:
        """Wake all waiting requests, and let none wait any more."""
        self._closed = True
        self._wake()

    def _follow(self, relation: str) -> ChangeLog:
        log = self._logs.get(relation)
        if log is None:
            log = self._logs[relation] = ChangeLog(self._newest)
            self._note.write(self._logs)
        log.asked = time.monotonic()
        return log

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
