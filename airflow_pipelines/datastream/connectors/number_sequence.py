"""A source of consecutive numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.base import Source
from airflow_pipelines.streams.sources import Polled, SourceReader


@dataclass(frozen=True)
class NumberSequenceSource(Source):
    """A source of the whole numbers from one to another. Each task reads a part of them in order.

    :param start: the first number
    :param end: the last number, inclusive
    :raises ValueError: if the last is less than the first, or one has more than 64 bits
    """

    start: int
    end: int
    gives_timestamps = False

    def __post_init__(self) -> None:
        checks.integer("start", self.start, -(2**63), 2**63 - 1)
        checks.integer("end", self.end, -(2**63), 2**63 - 1)
        if self.end < self.start:
            raise ValueError(f"end must not be less than start: {self.end} is less than {self.start}")

    @property
    def is_bounded(self) -> bool:
        """True, because it ends after the last number."""
        return True

    @property
    def places(self) -> Sequence[str]:
        """The bounds of the sequence: each task reads a part between them."""
        return (f"the numbers from {self.start} to {self.end}",)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of 64-bit ints.

        :returns: the type
        """
        return Types.LONG()

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Return parts of equal size, one for each task, but no empty ones.

        :param parallelism: the number of tasks that read
        :returns: first and last number of each part
        """
        count = self.end - self.start + 1
        parts = min(parallelism, count)
        bounds = [self.start + count * part // parts for part in range(parts + 1)]
        return [(low, high - 1) for low, high in pairwise(bounds)]

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of a part.

        :param split: the first and last number of the part
        :param position: the number to resume at, None for the first
        :returns: the reader
        """
        first, last = split
        return _NumberReader(first if position is None else position, last)


class _NumberReader(SourceReader):
    def __init__(self, first: int, last: int) -> None:
        self._next = first
        self._last = last

    def poll(self, limit: int) -> Polled:
        stop = min(self._next + limit, self._last + 1)
        values = list(range(self._next, stop))
        self._next = stop
        return Polled(values, finished=stop > self._last)

    def position(self) -> Any:
        return self._next

    def left(self) -> int:
        return self._last + 1 - self._next
