"""The layout of the bytes of a page.

A page begins with an index: for each entry a hash of its key, the end of the entry, and the times at which it is due. The entries
follow, each pickled separately. So one entry is read without the others, and a page is changed or split by copying the bytes of the
others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from airflow_pipelines.streams.errors import StreamProgramError

NEVER = (1 << 63) - 1
"""The number for "no time" in the index of a page."""
TIMES = 3
"""The number of times of an entry: the next event-time timer, the next processing-time timer, and the first expiry."""
EXPIRY = 2
_VERSION = 1
_HEADER = struct.Struct("<BBxxI")
_U32 = struct.Struct("<I")
BITS = _HEADER.size
"""The offset of the hashes, which have four bytes each."""


class Layout(NamedTuple):
    """The offsets of the parts of a page, in bytes from its beginning.

    :param flags: the times that have a column: 1, 2 and 4
    :param entries: the number of entries
    :param ends: the offset of the ends of the entries, which are counted in bytes from the first entry and have four bytes each
    :param columns: the offset of the columns of times, which have eight bytes for each entry
    :param body: the offset of the entries
    """

    flags: int
    entries: int
    ends: int
    columns: int
    body: int

    @staticmethod
    def of(page: bytes) -> Layout:
        """Read the header of a page.

        :param page: the bytes of the page
        :returns: its layout
        :raises StreamProgramError: if the bytes do not have the layout of this release
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
        """Yield the columns of times that the page has.

        :returns: the number of each column, and its offset
        """
        at = self.columns
        for column in range(TIMES):
            if self.flags >> column & 1:
                yield column, at
                at += 8 * self.entries

    def bounds(self, page: bytes, number: int) -> tuple[int, int]:
        """Return the offsets of an entry.

        :param page: the bytes of the page
        :param number: the number of the entry
        :returns: its start and end
        """
        start = _U32.unpack_from(page, self.ends + 4 * number - 4)[0] if number else 0
        return self.body + start, self.body + _U32.unpack_from(page, self.ends + 4 * number)[0]

    def position(self, page: bytes, bits: int, key: bytes) -> int | None:
        """Find the entry of a key, without reading other entries.

        :param page: the bytes of the page
        :param bits: the second hash of the key
        :param key: its canonical bytes
        :returns: the number of the entry, None if the page does not have the key
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
    """Return the header of a page.

    :param flags: the times that have a column
    :param count: the number of entries
    :returns: :data:`BITS` bytes
    """
    return _HEADER.pack(_VERSION, flags, count)


def find(page: bytes, bits: int, key: bytes) -> bytes | None:
    """Find the stored bytes of a key.

    :param page: the bytes of the page
    :param bits: the second hash of the key
    :param key: its canonical bytes
    :returns: the stored bytes, None if the page does not have the key
    :raises StreamProgramError: if the bytes do not have the layout of this release
    """
    layout = Layout.of(page)
    number = layout.position(page, bits, key)
    if number is None:
        return None
    start, end = layout.bounds(page, number)
    return page[start + 4 + len(key) : end]
