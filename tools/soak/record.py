"""What the clients of a soak report: what was wrong, and how long calls took."""

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
"""A run in which so much was wrong is ended."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what it was, when it ended (monotonic seconds), and its seconds."""

    kind: str
    at: float
    seconds: float


class Record:
    """Shared by all clients of a run."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._calls: list[Call] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def hopeless(self) -> bool:
        """Whether so much was wrong that to go on tells nothing more."""
        return len(self.faults) >= MOST_FAULTS

    def fault(self, who: str, error: BaseException) -> None:
        """Note, and say, that something was wrong."""
        text = "".join(traceback.format_exception(error))
        with self._lock:
            self.faults.append(f"{who}: {error}")
        say(f"{time.strftime('%H:%M:%S')} WRONG {who}: {text}")

    def count(self, what: str, number: int = 1) -> None:
        """Count what happened."""
        with self._lock:
            self._counts[what] += number

    @property
    def counts(self) -> dict[str, int]:
        """What was counted."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Note the seconds that a call takes, when it succeeds."""
        start = time.monotonic()
        yield
        end = time.monotonic()
        with self._lock:
            self._calls.append(Call(kind, end, end - start))

    def calls(self, since: float, until: float) -> list[Call]:
        """The calls that ended between two moments."""
        with self._lock:
            return [call for call in self._calls if since <= call.at < until]
