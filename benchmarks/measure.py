"""Measurements and the targets they are held against."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure. ``target`` is the upper bound that the project set itself, in the same unit, or None."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        return None if self.target is None else self.value <= self.target


class Stopwatch:
    """Seconds of one timed block."""

    seconds: float = 0.0


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time a block with the monotonic clock."""
    watch = Stopwatch()
    start = time.perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = time.perf_counter() - start


def median_seconds(action: Callable[[int], object], repeats: int) -> float:
    """The median time of ``action(i)`` over ``repeats`` runs, in seconds."""
    times = []
    for index in range(repeats):
        with timed() as watch:
            action(index)
        times.append(watch.seconds)
    return statistics.median(times)
