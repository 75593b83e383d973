"""The numbers that a strategy picks: whole numbers and floating-point numbers from a range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_pipelines.connectors.transports.datagen.options import Strategy

Rows: TypeAlias = npt.NDArray[np.int64]
"""The numbers of the rows to make: within the plan, or of elements within their collection."""
Random: TypeAlias = np.random.Generator

LEAST, MOST = -(2**63), 2**63 - 1
_NO_OVERFLOW = 2**62


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """A picker of whole numbers from a range.

    :param start: the least number
    :param end: the number after the greatest
    :param strategy: ``increment``, ``uniform`` or ``zipf``
    :param step: the step from one number to the next, for ``increment``
    :param exponent: the exponent of a Zipf distribution
    """

    start: int
    end: int
    strategy: Strategy = Strategy.INCREMENT
    step: int | float = 1
    exponent: float = 1.0

    def pick(self, rows: Rows, random: Random) -> npt.NDArray[Any]:
        """Pick a number for each row.

        :param rows: the numbers of the rows
        :param random: the random number generator
        :returns: eight-byte integers, or Python's where these are too small
        """
        if self.strategy is Strategy.INCREMENT:
            return self._increments(rows)
        if self.strategy is Strategy.ZIPF:
            ranks = zipf_ranks(min(self._span, MOST), self.exponent, len(rows), random)
            return self._from_start(np.minimum(ranks - 1, self._span - 1) if self._span <= MOST else ranks - 1)
        if self.start >= LEAST and self.end - 1 <= MOST:
            return random.integers(self.start, self.end - 1, len(rows), dtype=np.int64, endpoint=True)
        size = (self._span.bit_length() + 7) // 8 + 8
        data = random.bytes(size * len(rows))
        drawn = (int.from_bytes(data[at : at + size], "little") % self._span for at in range(0, len(data), size))
        return _objects([self.start + number for number in drawn])

    @property
    def _span(self) -> int:
        return self.end - self.start

    def _increments(self, rows: Rows) -> npt.NDArray[Any]:
        if not len(rows):
            return rows
        farthest = math.ceil(int(rows.max()) * abs(self.step))
        if farthest >= _NO_OVERFLOW:
            return self._from_start(_objects([math.floor(int(row) * self.step) % self._span for row in rows]))
        offsets = rows * self.step
        if offsets.dtype != np.int64:
            offsets = np.floor(offsets).astype(np.int64)
        if farthest >= self._span or self.step < 0:
            # A greater span than this is not reached.
            offsets = offsets % self._span if self._span <= MOST else _objects([int(offset) % self._span for offset in offsets])
        return self._from_start(offsets)

    def _from_start(self, offsets: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if offsets.dtype == np.int64 and self.start >= LEAST and self.end - 1 <= MOST:
            return offsets + self.start
        if offsets.dtype == np.int64 and abs(self.start) < _NO_OVERFLOW and (not len(offsets) or int(offsets.max()) < _NO_OVERFLOW):
            return offsets + self.start
        return _objects([int(offset) + self.start for offset in offsets])


@dataclass(frozen=True, slots=True)
class FloatingNumbers:
    """A picker of floating-point numbers from a range.

    :param start: the least number
    :param end: the bound that all numbers stay below
    :param strategy: ``increment``, ``uniform`` or ``zipf``
    :param scale: the step of ``increment``, and the factor for numbers of ``uniform``
    :param exponent: the exponent of a Zipf distribution
    """

    start: float
    end: float
    strategy: Strategy = Strategy.INCREMENT
    scale: float = 1.0
    exponent: float = 1.0

    def pick(self, rows: Rows, random: Random) -> npt.NDArray[np.floating[Any]]:
        """Pick a number for each row.

        :param rows: the numbers of the rows
        :param random: the random number generator
        """
        # Compute with halves, because the width of the whole range of a type is infinite.
        half = self.end / 2 - self.start / 2
        if self.strategy is Strategy.INCREMENT:
            offsets = rows * self.scale
            return self.start + (offsets if half * 2 == math.inf else np.mod(offsets, half * 2))
        if self.strategy is Strategy.ZIPF:
            count = max(1, math.ceil(min(half * 2, MOST)))
            return zipf_ranks(count, self.exponent, len(rows), random) + (self.start - 1.0)
        drawn = (self.start / 2 + random.random(len(rows)) * half) * 2
        return drawn * self.scale


def zipf_ranks(count: int, exponent: float, size: int, random: Random) -> npt.NDArray[np.int64]:
    """Draw ranks from 1 to ``count``, each with a probability proportional to ``rank ** -exponent``.

    This is rejection-inversion (W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from monotone discrete
    distributions, 1996), for which no table of ``count`` entries is needed.

    :param count: the greatest rank
    :param exponent: the exponent; 0 makes all equally likely
    :param size: the number of ranks
    :param random: the random number generator
    """

    def integral(x: Any) -> Any:
        return np.log(x) if exponent == 1 else (x ** (1 - exponent) - 1) / (1 - exponent)

    def inverse(y: Any) -> Any:
        return np.exp(y) if exponent == 1 else np.maximum(1 + (1 - exponent) * y, 0) ** (1 / (1 - exponent))

    first, last = integral(1.5) - 1, integral(count + 0.5)
    sure = 2 - inverse(integral(2.5) - 2.0**-exponent)
    ranks: list[npt.NDArray[np.int64]] = []
    missing = size
    while missing:
        area = last + random.random(missing) * (first - last)
        x = inverse(area)
        rank = np.clip(np.floor(x + 0.5), 1, count)
        kept = rank[(rank - x <= sure) | (area >= integral(rank + 0.5) - rank**-exponent)]
        # The greatest float of this size is one more than what eight bytes hold.
        ranks.append(np.minimum(kept, float(MOST - 1023)).astype(np.int64))
        missing -= len(kept)
    return np.concatenate(ranks) if ranks else np.empty(0, np.int64)


def _objects(numbers: list[int]) -> npt.NDArray[Any]:
    array = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return array
