"""The activity of a pipeline in the last minutes: rows per second by connector and relation, and the time of its views."""

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
"""The seconds between two samples."""
KEPT: Final = 150
"""The number of intervals between samples that are kept: five minutes."""
COARSE_S: Final = 10.0
"""The seconds that one number of a sparkline stands for."""
_EARLY_S: Final = 0.5
"""The seconds by which a request for a sample may come too early."""


class Measure(StrEnum):
    """The quantity that a counter counts, by its name in the REST API."""

    PROCESSED = "processed"
    BUSY = "busy"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    RELATIONS = "relations"
    VIEWS = "views_ms"


Counter = tuple[Measure, str]
"""A counter that only grows: its quantity, and its connector, relation or view (empty for the whole pipeline)."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """The values of all counters at one moment, in the order in which the counters became known.

    A counter that became known only later was 0.
    """

    at_ms: int
    values: array[float]

    def value(self, place: int) -> float:
        """Return the value of one counter."""
        return self.values[place] if place < len(self.values) else 0.0


class Activity:
    """The samples of a pipeline's counters. One thread adds them, any other may read."""

    def __init__(self) -> None:
        self._places: dict[Counter, int] = {}
        self._samples: deque[_Sample] = deque(maxlen=KEPT + 1)

    def sample(self, measure: Callable[[], Mapping[Counter, float]], now_s: float | None = None) -> None:
        """Add a sample, if one is due.

        :param measure: reads all counters
        :param now_s: the time in seconds since the epoch
        """
        now_ms = int((time.time() if now_s is None else now_s) * 1000)
        if self._samples and 0 <= now_ms - self._samples[-1].at_ms < (EVERY_S - _EARLY_S) * 1000:
            return
        counters = measure()
        for counter in counters:
            self._places.setdefault(counter, len(self._places))
        self._samples.append(_Sample(now_ms, array("d", (counters.get(counter, 0.0) for counter in self._places))))

    def rate(self, measure: Measure, since_ms: int) -> float | None:
        """Return the growth per second of a counter of the whole pipeline since a moment, or None without two samples since then.

        :param measure: the quantity that it counts
        :param since_ms: the moment, in milliseconds since the epoch
        """
        samples = [sample for sample in list(self._samples) if sample.at_ms >= since_ms]
        return _growth(samples[0], samples[-1], self._places[measure, ""]) if len(samples) > 1 else None

    def sparkline(self, now_ms: int) -> dict[str, Any]:
        """Return the input rows per second of the last minutes at a coarse resolution: the REST API's ``sparkline``.

        :param now_ms: the time in milliseconds since the epoch
        """
        every_ms = int(COARSE_S * 1000)
        until = now_ms - now_ms % every_ms
        samples = list(self._samples)
        rates = []
        for number in range(round(KEPT * EVERY_S / COARSE_S), 0, -1):
            begin, end = until - number * every_ms, until - (number - 1) * every_ms
            # Includes the sample at the beginning of the interval, or the last one before it.
            within = _find_between(samples, begin, end)
            rates.append(_growth(within[0], within[-1], self._places[Measure.PROCESSED, ""]) if len(within) > 1 else None)
        return {"every_ms": every_ms, "until": until, "rows_per_second": [_round(rate) for rate in rates]}

    def to_wire(self, since_ms: int = 0) -> dict[str, Any]:
        """Return the answer of ``GET activity``.

        :param since_ms: the end of the last interval that the caller knows already, in milliseconds since the epoch
        """
        pairs = [pair for pair in pairwise(list(self._samples)) if pair[1].at_ms > since_ms]
        groups: dict[str, dict[str, list[float | None]]] = {measure.value: {} for measure in Measure}
        for (measure, name), place in list(self._places.items()):
            # Times are milliseconds in each interval, all others are per second.
            grown = _subtract if measure is Measure.VIEWS else _growth
            groups[measure.value][name] = [_round(grown(before, after, place)) for before, after in pairs]
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
    """Return counters by name in the form that :meth:`Activity.sample` takes.

    :param measure: the quantity that they count
    :param values: the values by connector, relation or view
    """
    return {(measure, name): value for name, value in dict(values).items()}


def _find_between(samples: list[_Sample], begin_ms: int, end_ms: int) -> list[_Sample]:
    """Return the samples of an interval, preceded by the last one before it unless that is older than a sample should be."""
    inside = [sample for sample in samples if begin_ms < sample.at_ms <= end_ms]
    before = [sample for sample in samples if begin_ms - 2 * EVERY_S * 1000 < sample.at_ms <= begin_ms]
    return [*before[-1:], *inside]


def _subtract(before: _Sample, after: _Sample, place: int) -> float | None:
    """Return the growth of a counter between two samples, or None if the counter began anew."""
    grown = after.value(place) - before.value(place)
    return grown if grown >= 0 else None


def _growth(before: _Sample, after: _Sample, place: int) -> float | None:
    """Return the growth per second of a counter between two samples, or None if the counter began anew."""
    grown, milliseconds = _subtract(before, after, place), after.at_ms - before.at_ms
    return None if grown is None or milliseconds <= 0 else grown * 1000 / milliseconds


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
