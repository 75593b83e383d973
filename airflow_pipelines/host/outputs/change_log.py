"""What the newest steps changed in relations that somebody follows by asking again and again.

A reader names the place up to which it has a relation, and gets what was changed since, as far as that is known; else it begins
anew with the contents. So nothing is kept for readers that have gone, and no reader holds up the pipeline.
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
"""The changes of a log that are in memory have about so many bytes at most, but for those of the newest step."""
STEPS: Final = 10_000
"""A log has at most so many steps."""
ROWS: Final = 10_000_000
"""The changes of a log are about so many rows at most, but for those of the newest step."""
FORGET_S: Final = 600.0
"""A log that nobody has asked for so long is forgotten."""
ANSWER_ROWS: Final = 500_000
"""An answer ends with the step by which it has so many rows."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a pipeline, as places name it.

    :param name: no other run, of this or any other pipeline, has it
    :param before: the place of what the run began with; None when it began with nothing, or with what readers have not seen
    """

    name: str
    before: Place | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """What a relation was after a step.

    :param run: the name of the run that committed the step
    :param step: the step
    """

    run: str
    step: int

    def __str__(self) -> str:
        """The place as readers name it, who need not understand it."""
        return f"{self.run}:{self.step}"

    @classmethod
    def read(cls, text: str) -> Place:
        """The place that a reader names.

        :raises ValueError: when it is none
        """
        run, _, step = text.rpartition(":")
        if not run:
            raise ValueError(f"{text!r} is no place")
        return cls(run, int(step))


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """What a step changed in a relation.

    :param step: its number
    :param delta: rows with weights
    """

    step: int
    delta: Batch


@dataclass(frozen=True, slots=True)
class Since:
    """What was changed since a place.

    :param steps: the oldest of the steps that changed something, in order
    :param until: the step up to which that is all
    :param behind: about how many rows later ones have
    """

    steps: tuple[LoggedStep, ...]
    until: int
    behind: int


class ChangeLog:
    """What the newest steps changed in one relation."""

    def __init__(self, step: int) -> None:
        """Begin with what comes after a step.

        :param step: the newest one whose contents can be read
        """
        self._begin = self._newest = step
        self._steps: deque[LoggedStep] = deque()
        self._bytes = 0
        self._rows = 0
        self.asked = time.monotonic()

    def add(self, step: int, delta: Batch | None) -> None:
        """A step is done.

        :param step: its number
        :param delta: what it changed; None for nothing
        """
        if step <= self._newest:
            # It was the newest when the log began.
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
        """What was changed after a step; None when that is no longer known.

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
    """The logs of the relations of one run. Steps are added by the pipeline's thread, requests come from others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, ChangeLog] = {}
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._run: Run | None = None
        self._note = FollowedNote(None)
        self._first = self._newest = 0
        self._closed = False

    def begin(self, run: Run, step: int, note: FollowedNote) -> None:
        """The pipeline is open.

        :param run: names its places
        :param step: the step that it begins with
        :param note: which relations were followed before, and where to note those that are from now on
        """
        with self._lock:
            self._run, self._note = run, note
            self._first = self._newest = step
            # To those who have read the run before up to its end, the first steps of this one are changes, too.
            followed = note.read() if run.before is not None else frozenset()
            self._logs = {relation: ChangeLog(step) for relation in followed}

    def add(self, step: int, deltas: Mapping[str, Batch]) -> None:
        """A step is done.

        :param step: its number
        :param deltas: by relation
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
        """The place of a step of this run."""
        if self._run is None:
            raise RuntimeError("the pipeline is not open")
        return Place(self._run.name, step)

    def step_of(self, place: Place) -> int | None:
        """The step of this run whose contents a place stands for; None when it is of another history."""
        run = self._run
        if run is None:
            return None
        if place.run == run.name:
            return place.step
        return self._first if place == run.before else None

    def follow(self, relation: str) -> ChangeLog:
        """The log of a relation, which begins now unless it is there.

        A step whose contents can be read and that is not in the log, because it is about to be added, will be.

        :param relation: the relation
        """
        with self._lock:
            return self._followed(relation)

    async def changed(self, relation: str, step: int, wait_s: float) -> Since | None:
        """What was changed in a relation after a step, once there is something, or after a while; None when it is not known.

        :param relation: the relation
        :param step: the step, of this run
        :param wait_s: for how long to wait
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
                    found = self._followed(relation).since(step)
                left = deadline - time.monotonic()
                if found is None or found.steps or left <= 0 or self._closed:
                    return found
                try:
                    await asyncio.wait_for(event.wait(), left)
                except TimeoutError:
                    continue
        finally:
            with self._lock:
                self._waiting.discard(waiter)

    def close(self) -> None:
        """Let nobody wait any more."""
        self._closed = True
        self._wake()

    def _followed(self, relation: str) -> ChangeLog:
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
