"""Processing time. It stands still during a step, so that a step that is computed again reads the same time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of processing time."""

    def now(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock for tests, which is moved by hand.

    :param start: ms since 1970
    """

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """
        return self._now

    def advance(self, milliseconds: int) -> None:
        """Move the clock forward.

        :param milliseconds: the number of ms
        """
        self._now += milliseconds


class StepClock:
    """The clock of the current step, which all operators of a task read.

    :param now: ms since 1970
    """

    __slots__ = ("now",)

    def __init__(self, now: int) -> None:
        self.now = now
