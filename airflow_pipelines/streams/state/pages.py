"""Pages: the bytes in which entries of keys are stored (their layout is in ``page_layout.py``), and their entries as columns."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import NamedTuple, TypeAlias
from zlib import crc32

from airflow_pipelines.streams.state.page_layout import BITS, EXPIRY, NEVER, TIMES, Layout, header

PageId: TypeAlias = tuple[int, int, int]
"""The id of a page: key group, depth, and the lowest bits of the second hash of its keys; the depth is the number of these bits."""
Due: TypeAlias = tuple[int | None, int | None]
"""The timestamps of the next timers, in event time and in processing time; None for no timer."""

_SPREAD = 0x9E3779B97F4A7C15
_BITS = 0xFFFFFFFF
NEVER_DUE: Due = (None, None)
_U32 = struct.Struct("<I")
_FEW = 8


def key_hashes(key: bytes) -> tuple[int, int]:
    """Return the hashes by which the page of a key is found.

    :param key: the canonical bytes of the key
    :returns: its hash, from which :func:`~airflow_pipelines.streams.keys.key_group` derives the key group, and the second hash, by
        which keys of one group differ: 32 bits each
    """
    code = crc32(key)
    return code, code * _SPREAD >> 32 & _BITS


@dataclass(frozen=True)
class StoredPage:
    """A page in its stored form.

    :param data: keys with their values and timers
    :param due: the timestamps of its next timers
    """

    data: bytes
    due: Due = NEVER_DUE


class Row(NamedTuple):
    """An entry in its stored form.

    :param bits: the second hash of its key
    :param data: the canonical bytes of its key and its contents, in the form of :func:`frame_entry`
    :param times: the timestamps of its next timers in event time and in processing time, and of its first expiry; ``NEVER`` for
        none
    """

    bits: int
    data: bytes
    times: tuple[int, int, int] = (NEVER, NEVER, NEVER)


def frame_entry(key: bytes, kept: bytes) -> bytes:
    """Return the bytes of an entry.

    :param key: the canonical bytes of its key
    :param kept: the bytes of its contents
    :returns: both
    """
    return _U32.pack(len(key)) + key + kept


def key_in(data: bytes) -> bytes:
    """Return the key of an entry.

    :param data: the bytes of the entry
    :returns: the canonical bytes of its key
    """
    return data[4 : 4 + _U32.unpack_from(data)[0]]


def kept_in(data: bytes) -> bytes:
    """Return the contents of an entry.

    :param data: the bytes of the entry
    :returns: the bytes after its key
    """
    return data[4 + _U32.unpack_from(data)[0] :]


class PageRows:
    """The entries of a page as columns, to be changed and written again. Their contents are not decoded."""

    __slots__ = ("bits", "data", "times")

    def __init__(self) -> None:
        self.bits: list[int] = []
        self.data: list[bytes] = []
        self.times: list[list[int] | None] = [None] * TIMES

    @staticmethod
    def of(page: bytes | None) -> PageRows:
        """Take the bytes of a page apart.

        :param page: the bytes; None for an empty page
        :returns: its entries
        :raises StreamProgramError: if the bytes do not have the layout of this release
        """
        rows = PageRows()
        if page is None:
            return rows
        layout = Layout.of(page)
        count = layout.entries
        numbers = struct.unpack_from(f"<{2 * count}I", page, BITS)
        rows.bits = list(numbers[:count])
        for column, at in layout.times():
            rows.times[column] = list(struct.unpack_from(f"<{count}q", page, at))
        start = layout.body
        for length in numbers[count:]:
            end = layout.body + length
            rows.data.append(page[start:end])
            start = end
        return rows

    def __len__(self) -> int:
        return len(self.bits)

    def get_contents(self) -> dict[bytes, bytes]:
        """Return the contents of all entries, by key.

        :returns: the bytes of the contents by canonical key
        """
        return {key_in(data): kept_in(data) for data in self.data}

    def change(self, changes: Mapping[bytes, Row | None]) -> None:
        """Replace, add and remove entries.

        :param changes: entries by their canonical keys, None for one that is removed
        """
        if not self.bits:
            self.extend(row for row in changes.values() if row is not None)
            return
        removed: list[int] = []
        added: list[Row] = []
        positions = self._positions(changes)
        for key, row in changes.items():
            number = positions.get(key)
            if row is None:
                if number is not None:
                    removed.append(number)
            elif number is None:
                added.append(row)
            else:
                self._replace(number, row)
        if removed:
            self.remove(removed)
        if added:
            self.extend(added)

    def _positions(self, keys: Mapping[bytes, Row | None]) -> dict[bytes, int]:
        if len(keys) > _FEW:
            return {key_in(data): number for number, data in enumerate(self.data)}
        positions: dict[bytes, int] = {}
        for key, row in keys.items():
            number = self._position(key, key_hashes(key)[1] if row is None else row.bits)
            if number is not None:
                positions[key] = number
        return positions

    def _position(self, key: bytes, bits: int) -> int | None:
        prefix = _U32.pack(len(key)) + key
        number = -1
        try:
            while True:
                number = self.bits.index(bits, number + 1)
                if self.data[number].startswith(prefix):
                    return number
        except ValueError:
            return None

    def _replace(self, number: int, row: Row) -> None:
        self.bits[number] = row.bits
        self.data[number] = row.data
        for column, time in enumerate(row.times):
            times = self.times[column]
            if times is not None:
                times[number] = time
            elif time != NEVER:
                times = self.times[column] = [NEVER] * len(self.bits)
                times[number] = time

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove entries.

        :param numbers: the numbers of the entries
        """
        left = [True] * len(self.bits)
        for number in numbers:
            left[number] = False
        self.bits = list(compress(self.bits, left))
        self.data = list(compress(self.data, left))
        self.times = [None if times is None else list(compress(times, left)) for times in self.times]

    def extend(self, rows: Iterable[Row]) -> None:
        """Add entries at the end.

        :param rows: entries of keys that the page does not have
        """
        for bits, data, times in rows:
            self.bits.append(bits)
            self.data.append(data)
            for column, time in enumerate(times):
                known = self.times[column]
                if known is not None:
                    known.append(time)
                elif time != NEVER:
                    self.times[column] = [*[NEVER] * (len(self.bits) - 1), time]

    def find_expired(self, now: int) -> list[int]:
        """Return the entries in which a value has expired.

        :param now: processing time in ms
        :returns: their numbers
        """
        times = self.times[EXPIRY]
        return [] if times is None else [number for number, time in enumerate(times) if time <= now]

    def size(self) -> int:
        """Return the size of the page in bytes.

        :returns: the length of the result of :meth:`assemble`
        """
        columns = sum(times is not None for times in self.times)
        return BITS + (8 + 8 * columns) * len(self.bits) + sum(map(len, self.data))

    def parts(self, depth: int, levels: int) -> list[PageRows]:
        """Split the entries by bits of the second hash.

        :param depth: the number of the lowest bits that the entries have in common
        :param levels: the number of further bits by which to split
        :returns: 2 to the power of ``levels`` parts, numbered by the value of these bits
        """
        parts = [PageRows() for _ in range(1 << levels)]
        mask = len(parts) - 1
        chosen: list[list[int]] = [[] for _ in parts]
        for number, bits in enumerate(self.bits):
            chosen[bits >> depth & mask].append(number)
        for part, numbers in zip(parts, chosen, strict=True):
            part.bits = [self.bits[number] for number in numbers]
            part.data = [self.data[number] for number in numbers]
            part.times = [None if times is None else [times[number] for number in numbers] for times in self.times]
        return parts

    def assemble(self) -> StoredPage:
        """Assemble the page.

        :returns: its bytes, and the timestamps of its next timers
        """
        flags = 0
        due: list[int | None] = []
        columns = []
        for column, times in enumerate(self.times):
            earliest = NEVER if times is None else min(times)
            due.append(None if earliest == NEVER else earliest)
            if earliest != NEVER:
                flags |= 1 << column
                columns.append(struct.pack(f"<{len(self.bits)}q", *times or ()))
        count = len(self.bits)
        index = struct.pack(f"<{2 * count}I", *self.bits, *accumulate(map(len, self.data)))
        data = b"".join([header(flags, count), index, *columns, *self.data])
        return StoredPage(data, (due[0], due[1]))
