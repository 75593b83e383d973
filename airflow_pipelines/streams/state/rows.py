"""Rows of state at rest, by key.

A row belongs to an operator, a key group and a key. The rows of an operator are in the order of key groups, so those of a task,
which owns a range of key groups, are a range, too. Beside them are three indexes by time, for the next timers and the first expiry
of each row. An entry of an index may be out of date; a row that is found by it says itself what is due.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Row: TypeAlias = bytes
"""A row in its stored form: times, then the pickled contents."""
Times: TypeAlias = tuple[int, int, int]
"""A time for each index."""
RowKey: TypeAlias = tuple[int, bytes]
"""The key group and the canonical bytes of a key."""

NEVER = 2**63 - 1
EVENT_DUE, PROCESSING_DUE, EXPIRY = range(3)
"""The indexes by time."""
NO_TIMES: Times = (NEVER, NEVER, NEVER)
_TIME = struct.Struct(">Q")
_ENDS_OF_TIMES = [1 + _TIME.size * has.bit_count() for has in range(8)]
TIME_BIAS = 1 << 63
"""A number that makes each timestamp positive when it is added, so that their bytes are in the order of time."""


def pack_row(times: Times, contents: bytes) -> Row:
    """Return a row: a byte that says which times it has, these times, and the contents.

    :param times: the timestamps of its next timers in event time and in processing time, and of its first expiry; ``NEVER`` for
        none
    :param contents: the bytes of its contents
    :returns: the row
    """
    if times is NO_TIMES or times == NO_TIMES:
        return b"\0" + contents
    has = 0
    packed = b""
    for index, time in enumerate(times):
        if time != NEVER:
            has |= 1 << index
            packed += _TIME.pack(time + TIME_BIAS)
    return bytes((has,)) + packed + contents


def times_of(row: Row) -> Times:
    """Return the times of a row.

    :param row: the row
    :returns: timestamps as for :func:`pack_row`
    """
    has = row[0]
    if not has:
        return NO_TIMES
    packed = iter(_TIME.iter_unpack(row[1 : _ENDS_OF_TIMES[has]]))
    first, second, third = (next(packed)[0] - TIME_BIAS if has >> index & 1 else NEVER for index in range(3))
    return first, second, third


def contents_of(row: Row) -> bytes:
    """Return the contents of a row.

    :param row: the row
    :returns: the bytes without its times
    """
    return row[_ENDS_OF_TIMES[row[0]] :]


class StateRows(ABC):
    """The rows at rest of one operator in one task, with their indexes by time."""

    @abstractmethod
    def get(self, key: RowKey) -> Row | None:
        """Return a row.

        :param key: its key
        :returns: the row, None if there is none
        """

    @abstractmethod
    def get_all(self, keys: Sequence[RowKey]) -> list[Row | None]:
        """Return several rows.

        :param keys: their keys
        :returns: the rows in the same order
        """

    @abstractmethod
    def is_new(self) -> bool:
        """Return True if nothing was ever written.

        :returns: True if there are no rows, and it takes no time to say so
        """

    @abstractmethod
    def write(self, rows: Mapping[RowKey, Row | None]) -> None:
        """Add, replace and remove rows.

        :param rows: rows by their keys; None to remove one
        """

    def load(self, rows: Mapping[RowKey, Row | None]) -> None:
        """Add rows of a snapshot, before any others are written. They do not count as changes.

        :param rows: rows by their keys
        """
        self.write(rows)

    @abstractmethod
    def scan(self) -> Iterator[tuple[RowKey, Row]]:
        """Yield all rows of the task as they are at the beginning.

        :returns: keys and rows, in the order of their keys
        """

    @abstractmethod
    def next_time(self, index: int) -> int | None:
        """Return the earliest time of an index.

        :param index: the number of the index
        :returns: the timestamp, which may be too early; None if there is none
        """

    @abstractmethod
    def take_due(self, index: int, until: int, limit: int) -> list[RowKey]:
        """Remove and return entries of an index.

        :param index: the number of the index
        :param until: the latest timestamp
        :param limit: the maximum number of entries
        :returns: the keys of their rows, in the order of their times; rows that are out of date among them
        """

    @abstractmethod
    def clear(self) -> None:
        """Remove all rows, without reading them."""

    @abstractmethod
    def size(self) -> int:
        """Return the approximate size of the rows.

        :returns: the number of bytes
        """


class MemoryRows(StateRows):
    """Rows in memory: for small states, and for tasks that run elsewhere. Its changes are recorded."""

    def __init__(self, rows: Mapping[RowKey, Row] | None = None) -> None:
        self._rows = dict(rows or {})
        self._due: tuple[list[tuple[int, RowKey]], ...] = ([], [], [])
        self._changed: set[RowKey] = set()
        for key, row in self._rows.items():
            self._index(key, row)

    def _index(self, key: RowKey, row: Row) -> None:
        for index, time in enumerate(times_of(row)):
            if time != NEVER:
                insort(self._due[index], (time, key))

    def get(self, key: RowKey) -> Row | None:
        """Return a row."""
        return self._rows.get(key)

    def get_all(self, keys: Sequence[RowKey]) -> list[Row | None]:
        """Return several rows."""
        return [self._rows.get(key) for key in keys]

    def is_new(self) -> bool:
        """Return True if there are no rows."""
        return not self._rows

    def write(self, rows: Mapping[RowKey, Row | None]) -> None:
        """Add, replace and remove rows."""
        self._changed.update(rows)
        for key, row in rows.items():
            if row is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = row
                self._index(key, row)

    def load(self, rows: Mapping[RowKey, Row | None]) -> None:
        """Add rows of a snapshot."""
        self.write(rows)
        self._changed.clear()

    def take_changes(self) -> dict[RowKey, Row | None]:
        """Return the rows that were written since the last call, or since the beginning.

        :returns: rows by their keys; None for one that no longer exists
        """
        changed, self._changed = self._changed, set()
        return {key: self._rows.get(key) for key in changed}

    def scan(self) -> Iterator[tuple[RowKey, Row]]:
        """Yield all rows."""
        return iter(sorted(self._rows.items()))

    def next_time(self, index: int) -> int | None:
        """Return the earliest time of an index."""
        due = self._due[index]
        return due[0][0] if due else None

    def take_due(self, index: int, until: int, limit: int) -> list[RowKey]:
        """Remove and return entries of an index."""
        due = self._due[index]
        number = min(limit, bisect_left(due, (until + 1,)))
        taken, due[:number] = due[:number], []
        return [key for _, key in taken]

    def clear(self) -> None:
        """Remove all rows."""
        self._changed.update(self._rows)
        self._rows.clear()
        self._due = ([], [], [])

    def size(self) -> int:
        """Return the size of the rows."""
        return sum(len(key) + len(row) for (_, key), row in self._rows.items())
