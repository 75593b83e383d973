"""The throughput, memory and storage of a pipeline in the last minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

EVERY_S: Final = 1.0
"""The seconds between two samples."""
KEPT: Final = 60


@dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of one moment.

    :param at_ms: the moment, in milliseconds since the epoch
    :param processed_records: the number of input records that steps have consumed since the pipeline first started
    :param memory_bytes: the resident memory of the host's Python process
    :param storage_bytes: the size of the pipeline's storage folder
    """

    at_ms: int
    processed_records: int
    memory_bytes: int
    storage_bytes: int

    def to_wire(self) -> dict[str, int]:
        """Return the sample in the form of the REST contract."""
        return {"t": self.at_ms, "r": self.processed_records, "m": self.memory_bytes, "s": self.storage_bytes}


class TimeSeries:
    """The newest samples of one pipeline. One thread adds them, any other may read."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=KEPT)

    def add(self, sample: Sample) -> None:
        """Add the newest sample."""
        self._samples.append(sample)

    @property
    def newest(self) -> Sample | None:
        """The newest sample, or None before the first one."""
        samples = list(self._samples)
        return samples[-1] if samples else None

    def after(self, at_ms: int) -> list[Sample]:
        """Return the samples later than the given moment, oldest first."""
        return [sample for sample in list(self._samples) if sample.at_ms > at_ms]

    def to_wire(self) -> dict[str, Any]:
        """Return the answer of ``GET time_series``."""
        return {"now": int(time.time() * 1000), "samples": [sample.to_wire() for sample in self.after(0)]}

    async def stream(self, goes_on: Callable[[], bool]) -> AsyncIterator[dict[str, int]]:
        """Yield the samples that exist, then each new one.

        :param goes_on: returns True while there may be more samples
        """
        told = 0
        while True:
            for sample in self.after(told):
                told = sample.at_ms
                yield sample.to_wire()
            if not goes_on():
                return
            await asyncio.sleep(EVERY_S / 4)
