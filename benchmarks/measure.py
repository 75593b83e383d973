"""Measurements and the targets they are held against."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class Bound(Enum):
    """Which side of a target is the good one."""

    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure.

    ``name``: dots separate what a figure is of, as in ``tpch.1e6.q1.step_s``; names without dots are the figures of the summary.
    ``unit``: ``s``, ``MiB`` ...; ``x`` for ratios. ``target``: what the project set itself, in the same unit, or None.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    bound: Bound = Bound.AT_MOST

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.bound is Bound.AT_MOST else self.value >= self.target


class Incomplete(Exception):
    """A part could not measure everything. ``measurements``: what it did measure; ``failures``: what went wrong, as text."""

    def __init__(self, measurements: list[Measurement], failures: list[str]) -> None:
        super().__init__(measurements, failures)
        self.measurements = measurements
        self.failures = failures


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
    """Return the median time of ``action(i)`` over ``repeats`` runs, in seconds."""
    times = []
    for index in range(repeats):
        with timed() as watch:
            action(index)
        times.append(watch.seconds)
    return statistics.median(times)


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value below which a part of the values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive values, the right mean of ratios. Raises ValueError if there are none."""
    logarithms = [math.log(value) for value in values]
    if not logarithms:
        raise ValueError("the mean of nothing")
    return math.exp(statistics.fmean(logarithms))
