"""The memory for large batches, which all pipelines of a process share.

A large batch that is held takes at most twice its size in the driver's memory: its Arrow table in this process, and a copy of the
same size in the JVM once a query reads it. So the limit is a share of the JVM's heap, whose size the operator of the process sets.
"""

from __future__ import annotations

import functools
import weakref

import pyarrow as pa
from pyspark import SparkContext

from airflow_pipelines.engine.spark.application import most_heap

_SHARE = 8
"""The divisor of the heap: all large batches together take at most this part of it ..."""
_OF_ALL = 4
"""... and a single batch at most this part of that."""


class HeldMemory:
    """A counter of the bytes of the large tables in memory. Several threads may use it."""

    def __init__(self, most: int) -> None:
        """:param most: the maximum number of bytes of all tables together."""
        self.most = most
        self._sizes: dict[int, int] = {}

    @property
    def used(self) -> int:
        """The bytes of all tables that are held now."""
        return sum(list(self._sizes.values()))

    @property
    def most_of_one(self) -> int:
        """The maximum number of bytes of a single table."""
        return self.most // _OF_ALL

    @property
    def excess(self) -> int:
        """The number of bytes held for long that should go to files, so that steps have half of the room; 0 or less for none."""
        return self.used - self.most // 2

    def has_room(self, size: int) -> bool:
        """Return True if a table of the given number of bytes may be held besides the others."""
        return size <= self.most_of_one and self.used + size <= self.most

    def hold(self, table: pa.Table) -> None:
        """Count a table for as long as something refers to it. A second call for the same table changes nothing."""
        if id(table) not in self._sizes:
            self._sizes[id(table)] = int(table.nbytes)
            weakref.finalize(table, self._sizes.pop, id(table), None)


@functools.lru_cache(maxsize=4)
def held_memory(context: SparkContext) -> HeldMemory:
    """Return the memory counter of an application."""
    return HeldMemory(most_heap(context) // _SHARE)
