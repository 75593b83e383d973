"""The reports of the clients of a soak: faults, counts, and durations of calls."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tools.console import say

MOST_FAULTS = 20
"""The number of faults at which a run is ended."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its kind, its end (monotonic seconds), and its duration in seconds."""

    kind: str
    at: float
    seconds: float


class Record:
    """The record that all clients of a run share."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._calls: list[Call] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def hopeless(self) -> bool:
        """True if there were so many faults that the run is ended."""
        return len(self.faults) >= MOST_FAULTS

    def fault(self, who: str, error: BaseException) -> None:
        """Record and print a fault."""
        text = "".join(traceback.format_exception(error))
        with self._lock:
            self.faults.append(f"{who}: {error}")
        say(f"{time.strftime('%H:%M:%S')} WRONG {who}: {text}")

    def count(self, what: str, number: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self._counts[what] += number

    @property
    def counts(self) -> dict[str, int]:
        """The counts of events."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Record the duration of a call, if it succeeds."""
        start = time.monotonic()
        yield
        end = time.monotonic()
        with self._lock:
            self._calls.append(Call(kind, end, end - start))

    def calls(self, since: float, until: float) -> list[Call]:
        """Return the calls that ended between two points in time."""
        with self._lock:
            return [call for call in self._calls if since <= call.at < until]
