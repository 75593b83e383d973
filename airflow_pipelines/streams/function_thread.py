"""The thread in which a program of one process runs a source function, so that a function that waits holds up nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

_log = logging.getLogger("airflow_pipelines.streams")
_PATIENCE_S = 0.02
"""The time to wait for the first element of a function that has given some recently."""
_GATHER_S = 0.004
"""The time to wait for more elements after the first one."""
_CHEAP_S = 0.000_02
_PAUSE = 10
"""The factor for the pause after a position that takes long to compute: it is computed again after ten times as long."""
_JOIN_S = 1.0


class RunsInThread(Protocol):
    """A reader whose methods all run in one thread."""

    def hand_over(self, limit: int, take: Callable[[Any, int | None], bool]) -> bool:
        """Read elements one by one, see :meth:`~airflow_pipelines.streams.function_source.FunctionReader.hand_over`."""

    def read_position(self) -> Any:
        """Return the position after the last element that was handed over."""

    def tell_commit(self, position: Any) -> None:
        """Handle the completion of a checkpoint."""

    def finish(self) -> None:
        """Release what the function holds."""


@dataclass(frozen=True, slots=True)
class FunctionElements:
    """Elements that were taken, in order.

    :param values: the elements
    :param timestamps: the timestamp of each, None for none
    :param has_ended: True if nothing follows
    """

    values: list[Any]
    timestamps: list[int | None]
    has_ended: bool


class FunctionThread:
    """A source function that runs in a thread of its own, as far as elements are wanted.

    An element can be taken as soon as the function has yielded it, together with the position after it. Checkpoints are told to the
    function between two elements.

    :param reader: the reader, which is used by the thread alone
    :param name: the name of the function, for messages
    """

    def __init__(self, reader: RunsInThread, name: str) -> None:
        self._reader = reader
        self._name = name
        self._changed = threading.Condition(threading.Lock())
        self._wanted = 0
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._complete = 0
        self._reached = self.position = reader.read_position()
        """The position after the elements that were taken."""
        self._commit: Any | None = None
        self._failure: BaseException | None = None
        self._closing_failure: BaseException | None = None
        self._has_ended = self._is_closed = self._is_idle = self._is_enough = self._is_asked = False
        self._cost = self._due = 0.0
        self._thread = threading.Thread(target=self._run, name=f"source function {name}", daemon=True)
        self._thread.start()

    def take(self, limit: int) -> FunctionElements:
        """Take the elements that the function has yielded, without waiting long for others.

        :param limit: the maximum number of elements
        :raises BaseException: the error that stopped the function, after all elements before it were taken
        """
        with self._changed:
            self._wanted, self._is_idle = limit, False
            self._changed.notify_all()
            # A function that has been asked by an earlier call waits for something, and keeps nobody waiting.
            if not self._is_asked:
                self._changed.wait_for(lambda: bool(self._complete) or self._has_nothing_more, _PATIENCE_S)
            if self._complete:
                # More elements may follow the first at once, so gather them for a moment.
                self._changed.wait_for(lambda: self._complete >= limit or self._has_nothing_more, _GATHER_S)
            self._wanted = 0
            if not self._complete and self._failure is not None:
                raise self._failure
            return self._take_complete()

    def commit(self, position: Any) -> None:
        """Tell the function, between two elements, that everything up to a position is durable.

        :param position: the position
        """
        with self._changed:
            self._commit = position
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread. A function that does not come back from its wait is left behind.

        :raises BaseException: if the function failed when it was closed
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            _log.warning("The source function %s still waits, and is left behind: cancel() should end its wait.", self._name)
        elif self._closing_failure is not None:
            raise self._closing_failure

    def _take_complete(self) -> FunctionElements:
        """Return the elements up to the last known position."""
        number = self._complete
        taken = FunctionElements(self._values[:number], self._timestamps[:number], self._has_ended)
        self._values, self._timestamps = self._values[number:], self._timestamps[number:]
        self._complete, self.position = 0, self._reached
        return taken

    @property
    def _has_nothing_more(self) -> bool:
        return self._has_ended or self._is_idle or self._failure is not None

    @property
    def _is_more_wanted(self) -> bool:
        return self._wanted > len(self._values) and not (self._is_idle or self._has_ended or self._is_closed)

    def _run(self) -> None:
        try:
            while (work := self._wait_for_work()) is not None:
                if work.commit is not None:
                    self._reader.tell_commit(work.commit)
                if work.limit > 0:
                    self._is_enough = False
                    self._leave(self._reader.hand_over(work.limit, self._receive))
        except BaseException as error:  # noqa: BLE001 (raised in the thread that takes, SystemExit too)
            self._fail(error)
        finally:
            try:
                self._reader.finish()
            except BaseException as error:  # noqa: BLE001 (raised by close)
                self._closing_failure = error

    def _wait_for_work(self) -> _Work | None:
        """Wait until something is wanted; None if nothing ever will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._commit is not None or self._is_more_wanted)
            if self._is_closed:
                return None
            commit, self._commit = self._commit, None
            self._is_asked = self._is_more_wanted
            return _Work(commit, self._wanted - len(self._values) if self._is_asked else 0)

    def _receive(self, value: Any, timestamp: int | None) -> bool:
        """Keep an element that the function has just yielded, with the position after it."""
        # If a position takes long to compute, it is computed less often.
        is_due = not self._due or time.monotonic() >= self._due
        position = self._read_position() if is_due else None
        with self._changed:
            self._values.append(value)
            self._timestamps.append(timestamp)
            if is_due:
                self._complete_to(position)
            self._is_enough = not self._is_more_wanted or self._commit is not None
            return not self._is_enough

    def _read_position(self) -> Any:
        began = time.monotonic()
        position = self._reader.read_position()
        # A single long measurement may be due to another thread, so the cost at most doubles each time.
        self._cost = min(time.monotonic() - began, 2 * max(self._cost, _CHEAP_S / 2))
        self._due = time.monotonic() + _PAUSE * self._cost if self._cost > _CHEAP_S else 0.0
        return position

    def _complete_to(self, position: Any) -> None:
        """Let all elements so far be taken."""
        had_none = self._complete == 0
        self._reached, self._complete = position, len(self._values)
        if had_none or self._complete >= self._wanted > 0:
            self._changed.notify_all()

    def _leave(self, has_ended: bool) -> None:
        """Note that the function was left: because of its end, because that is enough, or because it has nothing now."""
        position = self._reader.read_position()
        with self._changed:
            self._has_ended, self._is_idle, self._is_asked = has_ended, not (has_ended or self._is_enough), False
            self._complete_to(position)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure, self._complete, self._is_asked = error, len(self._values), False
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of the thread.

    :param commit: the position to commit, None for none
    :param limit: the number of elements to read
    """

    commit: Any | None
    limit: int
