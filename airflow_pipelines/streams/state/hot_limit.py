"""The limit of the keys of a store that are Python objects in memory, by their number and by their size."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection
from itertools import islice
from typing import TypeVar

from airflow_pipelines.streams.state.entries import Entry

_T = TypeVar("_T")
HOT_BYTES = 640 << 20
"""The default limit: enough for a million keys with a number each."""
_BYTES_OF_ENTRY = 330
"""The bytes of an entry itself: the object, its key in both forms, and its places in the dictionaries of the store."""
_MEASURED = 32
"""The maximum number of entries that are measured at a time, and of the parts of a collection that are."""
_MEASURED_EVERY = 16
_DEPTH = 6
_COLLECTIONS = (list, tuple, set, frozenset, deque)


class HotLimit:
    """A limit of the number of keys. The size of an entry is that of a sample, which is taken again from time to time.

    :param keys: the maximum number of keys; None for as many as memory allows
    :param bytes_: the maximum number of bytes of all of them
    """

    def __init__(self, keys: int | None = None, bytes_: int = HOT_BYTES) -> None:
        self._keys = sys.maxsize if keys is None else keys
        self._bytes = bytes_
        self._calls = 0
        self._bytes_of_entry = _BYTES_OF_ENTRY

    def compute(self, entries: Collection[Entry]) -> int:
        """Return the maximum number of keys.

        :param entries: the present ones
        """
        if self._calls % _MEASURED_EVERY == 0 and entries:
            sample = _sample_of(entries)
            self._bytes_of_entry = _BYTES_OF_ENTRY + sum(map(_measure_entry, sample)) // len(sample)
        self._calls += 1
        return min(self._keys, self._bytes // self._bytes_of_entry)


def _measure_entry(entry: Entry) -> int:
    return _measure(entry.values, _DEPTH) + (_measure(entry.timers, _DEPTH) if entry.timers else 0)


def _measure(value: object, depth: int) -> int:
    """Return the approximate number of bytes of an object with its parts.

    :param value: the object
    :param depth: the number of levels of parts that are looked at
    """
    size = sys.getsizeof(value)
    if depth == 0:
        return size
    if isinstance(value, dict):
        return size + _measure_parts(value.keys(), depth) + _measure_parts(value.values(), depth)
    if isinstance(value, _COLLECTIONS):
        return size + _measure_parts(value, depth)
    own = getattr(value, "__dict__", None)
    return size + _measure(own, depth - 1) if isinstance(own, dict) and not isinstance(value, type) else size


def _measure_parts(parts: Collection[object], depth: int) -> int:
    sample = _sample_of(parts)
    return sum(_measure(part, depth - 1) for part in sample) * len(parts) // len(sample) if sample else 0


def _sample_of(parts: Collection[_T]) -> list[_T]:
    """Return some parts of a collection, evenly spaced."""
    return list(islice(parts, 0, None, -(-len(parts) // _MEASURED) or 1))
