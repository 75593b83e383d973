"""The room for large batches in memory, which all pipelines of a process share.

A large batch that is held takes the driver's memory twice at most: its Arrow table in this process, and a copy of the same size in
the JVM once a query reads it. So the room is a share of the JVM's heap, which is what an operator of the process gives it.
"""

from __future__ import annotations

import functools
import weakref

import pyarrow as pa
from pyspark import SparkContext

from airflow_pipelines.engine.spark.application import most_heap

_SHARE = 8
"""All large batches together take at most this part of the heap ..."""
_OF_ALL = 4
"""... and a single one at most this part of that."""


class HeldMemory:
    """Counts the bytes of the large tables that are in memory. Several threads may use it."""

    def __init__(self, most: int) -> None:
        """:param most: so many bytes are there for all tables together."""
        self.most = most
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """The bytes of all tables that are held now."""
        return sum(list(self._sizes.values()))

    @property
    def most_of_one(self) -> int:
        """The bytes that a single table may have."""
        return self.most // _OF_ALL

    @property
    def excess(self) -> int:
        """So many bytes of what is held for long should go to files, so that steps have half of the room; 0 or less for none."""
        return self.used - self.most // 2

    def has_room(self, size: int) -> bool:
        """Whether a table of so many bytes may be held besides those that are."""
        return size <= self.most_of_one and self.used + size <= self.most

    def hold(self, table: pa.Table) -> None:
        """Count a table for as long as something refers to it. To hold it again changes nothing."""
        if id(table) not in self._sizes:
            self._sizes[id(table)] = int(table.nbytes)
            weakref.finalize(table, self._sizes.pop, id(table), None)


@functools.lru_cache(maxsize=4)
def held_memory(context: SparkContext) -> HeldMemory:
    """The room of an application."""
    return HeldMemory(most_heap(context) // _SHARE)
