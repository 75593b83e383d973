"""How long the batches of an input take from their arrival to the end of the step that consumes them."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Final

KEPT: Final = 10_000
"""How many of the newest batches are remembered."""
KEPT_S: Final = 600.0
"""For how long they are."""


class Latencies:
    """Follows the batches of one input. Any thread may tell of arrivals, and read; the pipeline's thread tells of steps."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._done: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def receive(self, records: int) -> None:
        """A batch has arrived.

        :param records: how many records the input has received with it
        """
        self._waiting.append((records, time.monotonic()))

    def process(self, records: int) -> None:
        """A step has consumed records.

        :param records: how many of the input have been consumed by then
        """
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= records:
            self._done.append((now, now - self._waiting.popleft()[1]))

    @property
    def p99_micros(self) -> int | None:
        """In how many microseconds 99 of 100 of the newest batches were processed; None when there were none lately."""
        since = time.monotonic() - KEPT_S
        latencies = sorted(latency for at, latency in self._done.copy() if at >= since)
        return int(latencies[math.ceil(0.99 * len(latencies)) - 1] * 1e6) if latencies else None
