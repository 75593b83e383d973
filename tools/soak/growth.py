"""The figures of a run that keep growing beyond their bounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_pipelines.service.store import EVENTS_KEPT
from benchmarks.measure import percentile
from tools.soak.figures import Sample
from tools.soak.record import Call

WARM_UP = 1 / 4
"""The fraction of a run in which caches fill and everything is done for the first time."""
PARTS = 4


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of a figure in the last part of a run: a factor on the first part, plus noise.

    ``known``: a value up to which it grows in any case, because something limits it there.
    """

    factor: float
    noise: float
    known: float = 0.0

    def limit(self, first: float) -> float:
        """Return the maximum of a figure at the end."""
        return max(first * self.factor + self.noise, self.known)


MEMORY = Bound(1.15, 48.0)
COUNT = Bound(1.15, 8.0)
TIME = Bound(2.0, 0.1)
_BOUNDS = {
    # The JVM uses its whole limit before it collects: four gigabytes of heap by default, and memory beside the heap.
    "JVM, resident MiB": Bound(1.15, 48.0, known=5 * 1024.0),
    # It includes running queries, and objects that Python's garbage still holds: that varies by a hundred.
    "reachable objects, MiB": Bound(1.15, 128.0),
    "rows of pipeline_events": Bound(1.15, 8.0, known=4.0 * EVENTS_KEPT),
    # Batches come and go with merges and checkpoints.
    "storage, files": Bound(1.3, 60.0),
    "spark, files": Bound(1.3, 60.0),
    "MiB": MEMORY,
}
"""The bounds by the suffix of a figure's name; the first match counts. Other figures are counts."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure in the parts of a run after its warm-up: the median of each part, and the limit of the last."""

    name: str
    parts: tuple[float, ...]
    limit: float

    @property
    def first(self) -> float:
        """The figure in the first part."""
        return self.parts[0]

    @property
    def last(self) -> float:
        """The figure in the last part."""
        return self.parts[-1]

    @property
    def keeps_growing(self) -> bool:
        """True if each part has more than the one before, and the last exceeds the limit."""
        rises = all(before < after for before, after in pairwise(self.parts))
        return rises and self.last > self.limit


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """Return the growth of each figure that is in all parts of a run."""
    parts = _parts(samples)
    names = [name for name in samples[-1].figures if all(any(name in one.figures for one in part) for part in parts)]
    return [
        _growth(name, [[one.figures[name] for one in part if name in one.figures] for part in parts], _bound_of(name))
        for name in names
    ]


def slowdowns(calls: Sequence[Call], since: float, until: float) -> list[Growth]:
    """Return the growth of the median and the 99th percentile of each kind of call."""
    found = []
    settled = since + (until - since) * WARM_UP
    for kind in sorted({call.kind for call in calls}):
        parts: list[list[float]] = [[] for _ in range(PARTS)]
        for call in calls:
            if call.kind == kind and call.at >= settled:
                parts[min(PARTS - 1, int((call.at - settled) / (until - settled) * PARTS))].append(call.seconds)
        if all(parts):
            found.append(_growth(f"{kind}, median s", parts, TIME))
            found.append(_growth(f"{kind}, 99 % s", [[percentile(part, 0.99)] for part in parts], TIME))
    return found


def _parts(samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    settled = samples[int(len(samples) * WARM_UP) :]
    if len(settled) < PARTS:
        raise ValueError(f"{len(samples)} samples are too few to say what grows: take at least {int(PARTS / (1 - WARM_UP)) + 1}")
    edges = [len(settled) * at // PARTS for at in range(PARTS + 1)]
    return [settled[start:end] for start, end in pairwise(edges)]


def _growth(name: str, parts: Sequence[Sequence[float]], bound: Bound) -> Growth:
    medians = tuple(statistics.median(part) for part in parts)
    return Growth(name, medians, bound.limit(medians[0]))


def _bound_of(name: str) -> Bound:
    return next((bound for ending, bound in _BOUNDS.items() if name.endswith(ending)), COUNT)
