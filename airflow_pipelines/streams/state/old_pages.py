"""Pages, in which releases before the database kept state by key. They are read once, and become rows.

A page has a header (version, flags of the columns of times that it has, number of entries), a hash of each key, the end of each
entry, the columns of times, and the entries: the length of a key, its canonical bytes, and the pickled contents.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.rows import NEVER, Row, pack_row

_HEADER = struct.Struct("<BBxxI")
_VERSION = 1
_TIMES = 3
_LENGTH = struct.Struct("<I")


def rows_of_page(page: bytes) -> Iterator[tuple[bytes, Row]]:
    """Yield the rows of a page.

    :param page: its bytes
    :returns: the canonical bytes of each key, and its row
    :raises StreamProgramError: if it has another layout
    """
    version, flags, count = _HEADER.unpack_from(page)
    if version != _VERSION:
        raise StreamProgramError(f"State is kept in pages of the layout {version}, and this release knows {_VERSION}.")
    ends = struct.unpack_from(f"<{count}I", page, _HEADER.size + 4 * count)
    at = _HEADER.size + 8 * count
    times = []
    for column in range(_TIMES):
        if flags >> column & 1:
            times.append(struct.unpack_from(f"<{count}q", page, at))
            at += 8 * count
        else:
            times.append((NEVER,) * count)
    start = 0
    for number, end in enumerate(ends):
        entry = page[at + start : at + end]
        (length,) = _LENGTH.unpack_from(entry)
        key, contents = entry[_LENGTH.size : _LENGTH.size + length], entry[_LENGTH.size + length :]
        yield key, pack_row((times[0][number], times[1][number], times[2][number]), contents)
        start = end
