"""Where in the bytes of a page is what.

A page begins with an index: for each entry a hash of its key, where it ends, and when it wants to be looked at. The entries follow,
each pickled alone. So one entry is read without the others, and a page is changed or split by copying the bytes of the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from airflow_pipelines.streams.errors import StreamProgramError

NEVER = (1 << 63) - 1
"""Stands for no time in the index of a page."""
TIMES = 3
"""Times of an entry: of its next timer in event time, and in processing time, and when something in it expires first."""
EXPIRY = 2
_VERSION = 1
_HEADER = struct.Struct("<BBxxI")
_U32 = struct.Struct("<I")
BITS = _HEADER.size
"""Where the hashes begin, of four bytes each."""


class Layout(NamedTuple):
    """Where the parts of a page begin, in bytes from its beginning.

    :param flags: which of the times have a column: 1, 2 and 4
    :param entries: how many there are
    :param ends: of the numbers that say where entries end, in bytes from the first entry: of four bytes each
    :param columns: of the columns of times, of eight bytes for each entry
    :param body: of the entries
    """

    flags: int
    entries: int
    ends: int
    columns: int
    body: int

    @staticmethod
    def of(page: bytes) -> Layout:
        """Read the header of a page.

        :param page: bytes of the page
        :returns: its layout
        :raises StreamProgramError: when these are no bytes of a page
        """
        version, flags, count = _HEADER.unpack_from(page)
        if version != _VERSION:
            raise StreamProgramError(
                f"A page of state has the layout {version}, and this release reads {_VERSION}: it was written by another release,"
                " or is damaged. Start without this state, or with the release that wrote it."
            )
        ends = BITS + 4 * count
        columns = ends + 4 * count
        return Layout(flags, count, ends, columns, columns + 8 * count * flags.bit_count())

    def times(self) -> Iterator[tuple[int, int]]:
        """The columns of times that the page has.

        :returns: the number of each, and where it begins
        """
        at = self.columns
        for column in range(TIMES):
            if self.flags >> column & 1:
                yield column, at
                at += 8 * self.entries

    def bounds(self, page: bytes, number: int) -> tuple[int, int]:
        """Where an entry is.

        :param page: bytes of the page
        :param number: of the entry
        :returns: where it begins and ends
        """
        start = _U32.unpack_from(page, self.ends + 4 * number - 4)[0] if number else 0
        return self.body + start, self.body + _U32.unpack_from(page, self.ends + 4 * number)[0]

    def position(self, page: bytes, bits: int, key: bytes) -> int | None:
        """Which entry a key has, without a look at other entries.

        :param page: bytes of the page
        :param bits: second hash of the key
        :param key: its canonical bytes
        :returns: its number, None when the page does not have the key
        """
        wanted, prefix = _U32.pack(bits), _U32.pack(len(key)) + key
        at = page.find(wanted, BITS, self.ends)
        while at >= 0:
            number, unaligned = divmod(at - BITS, 4)
            if not unaligned:
                start = self.body + (_U32.unpack_from(page, self.ends + 4 * number - 4)[0] if number else 0)
                if page.startswith(prefix, start):
                    return number
            at = page.find(wanted, at + 1, self.ends)
        return None


def header(flags: int, count: int) -> bytes:
    """The first bytes of a page.

    :param flags: which of the times have a column
    :param count: number of entries
    :returns: :data:`BITS` bytes
    """
    return _HEADER.pack(_VERSION, flags, count)


def find(page: bytes, bits: int, key: bytes) -> bytes | None:
    """What is kept for a key.

    :param page: bytes of the page
    :param bits: second hash of the key
    :param key: its canonical bytes
    :returns: the kept bytes, None when the page does not have the key
    :raises StreamProgramError: when these are no bytes of a page
    """
    layout = Layout.of(page)
    number = layout.position(page, bits, key)
    if number is None:
        return None
    start, end = layout.bounds(page, number)
    return page[start + 4 + len(key) : end]
