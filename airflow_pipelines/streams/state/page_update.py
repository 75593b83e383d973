"""Changes of a few entries of a page. The bytes of the other entries are copied without being decoded."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from airflow_pipelines.streams.state.page_layout import BITS, EXPIRY, NEVER, Layout, header
from airflow_pipelines.streams.state.pages import Row, StoredPage

FEW = 4
"""The maximum number of entries to change in this way; for more it is faster to take the whole page apart."""
_TIME = struct.Struct("<q")


def update_page(page: bytes, changes: Mapping[bytes, Row | None], now: int | None) -> StoredPage | None:
    """Return a page with some entries added or replaced.

    :param page: the bytes of the page
    :param changes: entries by their canonical keys, None for one that is removed
    :param now: processing time in ms, None if nothing expires
    :returns: the page; None for changes that need more: many entries, a removed entry, times for which the page has no column, or
        expired entries
    :raises StreamProgramError: if the bytes do not have the layout of this release
    """
    if len(changes) > FEW:
        return None
    for key, row in changes.items():
        layout = Layout.of(page)
        if row is None or not _has_columns_for(layout, row):
            return None
        number = layout.position(page, row.bits, key)
        page = _append_entry(page, layout, row) if number is None else _replace_entry(page, layout, number, row)
    layout = Layout.of(page)
    if now is not None and _find_earliest(page, layout, EXPIRY) <= now:
        return None
    event, processing = (_find_earliest(page, layout, column) for column in (0, 1))
    return StoredPage(page, (None if event == NEVER else event, None if processing == NEVER else processing))


def _has_columns_for(layout: Layout, row: Row) -> bool:
    return all(time == NEVER or layout.flags >> column & 1 for column, time in enumerate(row.times))


def _replace_entry(page: bytes, layout: Layout, number: int, row: Row) -> bytes:
    """Return the page with one entry replaced."""
    start, end = layout.bounds(page, number)
    growth = len(row.data) - (end - start)
    parts = [page[: layout.ends]]
    if growth:
        later = layout.entries - number
        ends = struct.unpack_from(f"<{later}I", page, layout.ends + 4 * number)
        parts += [page[layout.ends : layout.ends + 4 * number], struct.pack(f"<{later}I", *(end + growth for end in ends))]
    else:
        parts.append(page[layout.ends : layout.columns])
    for column, at in layout.times():
        parts += [page[at : at + 8 * number], _TIME.pack(row.times[column]), page[at + 8 * (number + 1) : at + 8 * layout.entries]]
    parts += [page[layout.body : start], row.data, page[end:]]
    return b"".join(parts)


def _append_entry(page: bytes, layout: Layout, row: Row) -> bytes:
    """Return the page with one more entry at its end."""
    last = len(page) - layout.body
    parts = [
        header(layout.flags, layout.entries + 1),
        page[BITS : layout.ends],
        struct.pack("<I", row.bits),
        page[layout.ends : layout.columns],
        struct.pack("<I", last + len(row.data)),
    ]
    for column, at in layout.times():
        parts += [page[at : at + 8 * layout.entries], _TIME.pack(row.times[column])]
    parts += [page[layout.body :], row.data]
    return b"".join(parts)


def _find_earliest(page: bytes, layout: Layout, column: int) -> int:
    at = next((at for number, at in layout.times() if number == column), None)
    return NEVER if at is None or not layout.entries else min(struct.unpack_from(f"<{layout.entries}q", page, at))
