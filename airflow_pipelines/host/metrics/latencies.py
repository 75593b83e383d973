"""The latency of the batches of an input: from their arrival to the end of the step that consumes them."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Final

KEPT: Final = 10_000
"""The number of the newest batches that are remembered."""
KEPT_S: Final = 600.0
"""The seconds for which they are remembered."""


class Latencies:
    """A record of the latencies of one input's batches.

    Any thread may report arrivals and read; the pipeline's thread reports steps.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._done: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def receive(self, records: int) -> None:
        """Note that a batch has arrived.

        :param records: the number of records that the input has received, this batch included
        """
        self._waiting.append((records, time.monotonic()))

    def process(self, records: int) -> None:
        """Note that a step has consumed records.

        :param records: the number of the input's records that have been consumed by now
        """
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= records:
            self._done.append((now, now - self._waiting.popleft()[1]))

    @property
    def p99_micros(self) -> int | None:
        """The 99th percentile of the latencies of the newest batches, in microseconds, or None if there were none lately."""
        since = time.monotonic() - KEPT_S
        latencies = sorted(latency for at, latency in self._done.copy() if at >= since)
        return int(latencies[math.ceil(0.99 * len(latencies)) - 1] * 1e6) if latencies else None
