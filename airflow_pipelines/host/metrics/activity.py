"""What a pipeline has done in the last minutes: rows per second of all that rows go through, and the time of its views."""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

EVERY_S: Final = 2.0
"""Seconds between two samples."""
KEPT: Final = 150
"""So many intervals between samples are kept: five minutes."""
COARSE_S: Final = 10.0
"""Seconds that one number of a sparkline stands for."""
_EARLY_S: Final = 0.5
"""Who asks for samples may be so much too early."""


class Measure(StrEnum):
    """What a counter counts, by the names of the REST API."""

    PROCESSED = "processed"
    BUSY = "busy"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    RELATIONS = "relations"
    VIEWS = "views_ms"


Counter = tuple[Measure, str]
"""A counter that only grows: what it counts, and of which connector, relation or view (empty: of the whole pipeline)."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """All counters at one moment, in the order in which they came to be known. Those of later samples were 0."""

    at_ms: int
    values: array[float]

    def value(self, place: int) -> float:
        """One of the counters."""
        return self.values[place] if place < len(self.values) else 0.0


class Activity:
    """Samples of a pipeline's counters. One thread adds them, any other may read."""

    def __init__(self) -> None:
        self._places: dict[Counter, int] = {}
        self._samples: deque[_Sample] = deque(maxlen=KEPT + 1)

    def sample(self, measure: Callable[[], Mapping[Counter, float]], now_s: float | None = None) -> None:
        """Add a sample, if one is due.

        :param measure: reads all counters
        :param now_s: seconds since the epoch
        """
        now_ms = int((time.time() if now_s is None else now_s) * 1000)
        if self._samples and 0 <= now_ms - self._samples[-1].at_ms < (EVERY_S - _EARLY_S) * 1000:
            return
        counters = measure()
        for counter in counters:
            self._places.setdefault(counter, len(self._places))
        self._samples.append(_Sample(now_ms, array("d", (counters.get(counter, 0.0) for counter in self._places))))

    def rate(self, measure: Measure, since_ms: int) -> float | None:
        """How much a counter of the whole pipeline has grown in each second since a moment; None without two samples since then.

        :param measure: what it counts
        :param since_ms: in milliseconds since the epoch
        """
        samples = [sample for sample in list(self._samples) if sample.at_ms >= since_ms]
        return _growth(samples[0], samples[-1], self._places[measure, ""]) if len(samples) > 1 else None

    def sparkline(self, now_ms: int) -> dict[str, Any]:
        """The input rows per second of the last minutes, coarsely: the REST API's ``sparkline``.

        :param now_ms: milliseconds since the epoch
        """
        every_ms = int(COARSE_S * 1000)
        until = now_ms - now_ms % every_ms
        samples = list(self._samples)
        rates = []
        for number in range(round(KEPT * EVERY_S / COARSE_S), 0, -1):
            begin, end = until - number * every_ms, until - (number - 1) * every_ms
            # With the sample at which the interval begins, or the last one before it.
            within = _between(samples, begin, end)
            rates.append(_growth(within[0], within[-1], self._places[Measure.PROCESSED, ""]) if len(within) > 1 else None)
        return {"every_ms": every_ms, "until": until, "rows_per_second": [_rounded(rate) for rate in rates]}

    def to_wire(self, since_ms: int = 0) -> dict[str, Any]:
        """The answer of ``GET activity``.

        :param since_ms: the end of the last interval that is known already, in milliseconds since the epoch
        """
        pairs = [pair for pair in pairwise(list(self._samples)) if pair[1].at_ms > since_ms]
        groups: dict[str, dict[str, list[float | None]]] = {measure.value: {} for measure in Measure}
        for (measure, name), place in list(self._places.items()):
            # Times are milliseconds in each interval, all others are per second.
            grown = _difference if measure is Measure.VIEWS else _growth
            groups[measure.value][name] = [_rounded(grown(before, after, place)) for before, after in pairs]
        none: list[float | None] = [None] * len(pairs)
        return {
            "now": int(time.time() * 1000),
            "every_ms": int(EVERY_S * 1000),
            "begin": pairs[0][0].at_ms if pairs else None,
            "t": [after.at_ms for _, after in pairs],
            "rows_per_second": groups.pop(Measure.PROCESSED.value).get("", none),
            "busy": groups.pop(Measure.BUSY.value).get("", none),
            **groups,
        }


def counters_of(measure: Measure, values: Mapping[str, float] | Iterable[tuple[str, float]]) -> dict[Counter, float]:
    """Counters by name as :meth:`Activity.sample` takes them.

    :param measure: what they count
    :param values: by connector, relation or view
    """
    return {(measure, name): value for name, value in dict(values).items()}


def _between(samples: list[_Sample], begin_ms: int, end_ms: int) -> list[_Sample]:
    """The samples of an interval, and the last one before it when that is not older than a sample should be."""
    found = [sample for sample in samples if begin_ms < sample.at_ms <= end_ms]
    before = [sample for sample in samples if begin_ms - 2 * EVERY_S * 1000 < sample.at_ms <= begin_ms]
    return [*before[-1:], *found]


def _difference(before: _Sample, after: _Sample, place: int) -> float | None:
    """How much a counter has grown between two samples; None when it began anew."""
    grown = after.value(place) - before.value(place)
    return grown if grown >= 0 else None


def _growth(before: _Sample, after: _Sample, place: int) -> float | None:
    """The same in each second."""
    grown, milliseconds = _difference(before, after, place), after.at_ms - before.at_ms
    return None if grown is None or milliseconds <= 0 else grown * 1000 / milliseconds


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
