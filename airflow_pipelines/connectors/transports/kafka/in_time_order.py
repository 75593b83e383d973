"""Puts the records of several partitions into the order of their timestamps."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

MOST_WAITING: Final = 20_000
"""When so many records of a partition wait for others, no more of it are asked for."""


class Timed(Protocol):
    """A record of a partition."""

    def partition(self) -> int | None:
        """The number of its partition."""

    def timestamp(self) -> tuple[int, int]:
        """What kind of time it has, and the time in milliseconds."""


class InTimeOrder:
    """Holds records back until each partition has one, or has been read to its end: only then it is known which is the oldest.

    Within a partition the order stays as it is, whatever the timestamps are.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        """Begin with nothing.

        :param partitions: those that are read
        """
        self._waiting: dict[int, deque[Timed]] = {partition: deque() for partition in partitions}
        self._ended: set[int] = set()

    def add_partition(self, partition: int) -> None:
        """Another partition is read, too."""
        self._waiting.setdefault(partition, deque())

    def add(self, record: Timed) -> None:
        """Take a record, the next of its partition."""
        partition = record.partition() or 0
        self._waiting[partition].append(record)
        self._ended.discard(partition)

    def ended(self, partition: int) -> None:
        """A partition has been read to its end; another record may come later."""
        self._ended.add(partition)

    @property
    def full(self) -> frozenset[int]:
        """The partitions of which enough records wait."""
        return frozenset(partition for partition, waiting in self._waiting.items() if len(waiting) >= MOST_WAITING)

    @property
    def is_empty(self) -> bool:
        """Whether no record waits."""
        return not any(self._waiting.values())

    def take(self, most: int) -> list[Timed]:
        """The oldest records, in order.

        :param most: how many at most
        """
        taken: list[Timed] = []
        heads = [(waiting[0].timestamp()[1], partition) for partition, waiting in self._waiting.items() if waiting]
        silent = sum(not waiting and partition not in self._ended for partition, waiting in self._waiting.items())
        heapq.heapify(heads)
        while heads and not silent and len(taken) < most:
            _, partition = heapq.heappop(heads)
            waiting = self._waiting[partition]
            taken.append(waiting.popleft())
            if waiting:
                heapq.heappush(heads, (waiting[0].timestamp()[1], partition))
            elif partition not in self._ended:
                silent += 1
        return taken
