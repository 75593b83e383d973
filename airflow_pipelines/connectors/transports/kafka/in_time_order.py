"""A merge of the records of several partitions in the order of their timestamps."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

MOST_WAITING: Final = 20_000
"""The number of waiting records of a partition at which it is paused."""


class Timed(Protocol):
    """A record of a partition."""

    def partition(self) -> int | None:
        """Return the number of its partition."""

    def timestamp(self) -> tuple[int, int]:
        """Return the type of its timestamp, and the time in milliseconds."""


class InTimeOrder:
    """A buffer that holds records back until each partition has one, or has been read to its end: then the oldest is known.

    The order within a partition does not change, whatever the timestamps are.
    """

    def __init__(self, partitions: Iterable[int]) -> None:
        """Begin with nothing.

        :param partitions: the numbers of the partitions that are read
        """
        self._waiting: dict[int, deque[Timed]] = {partition: deque() for partition in partitions}
        self._ended: set[int] = set()

    def add_partition(self, partition: int) -> None:
        """Add a partition that is read from now on."""
        self._waiting.setdefault(partition, deque())

    def add(self, record: Timed) -> None:
        """Add a record, the next of its partition."""
        partition = record.partition() or 0
        self._waiting[partition].append(record)
        self._ended.discard(partition)

    def note_end(self, partition: int) -> None:
        """Record that a partition has been read to its end; another record may come later."""
        self._ended.add(partition)

    @property
    def full(self) -> frozenset[int]:
        """The partitions that have enough waiting records."""
        return frozenset(partition for partition, waiting in self._waiting.items() if len(waiting) >= MOST_WAITING)

    @property
    def is_empty(self) -> bool:
        """True if no record waits."""
        return not any(self._waiting.values())

    def take(self, most: int) -> list[Timed]:
        """Remove and return the oldest records, in order.

        :param most: the maximum number of records
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
