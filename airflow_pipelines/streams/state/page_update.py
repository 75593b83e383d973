"""Changes a few entries of a page without taking the others apart: their bytes are copied as they are."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from airflow_pipelines.streams.state.page_layout import BITS, EXPIRY, NEVER, Layout, header
from airflow_pipelines.streams.state.pages import Row, StoredPage

FEW = 4
"""Of more entries that change at once, all are taken apart in less time."""
_TIME = struct.Struct("<q")


def updated(page: bytes, changes: Mapping[bytes, Row | None], now: int | None) -> StoredPage | None:
    """The page with entries that are new or in place of earlier ones.

    :param page: bytes of the page
    :param changes: entries by their canonical keys, None for one that is no more
    :param now: processing time in ms, None where nothing expires
    :returns: the page; None for changes of another kind: many, an entry that is no more, times that the page has no column for,
        or entries that have expired
    :raises StreamProgramError: when these are no bytes of a page
    """
    if len(changes) > FEW:
        return None
    for key, row in changes.items():
        layout = Layout.of(page)
        if row is None or not _has_columns_for(layout, row):
            return None
        number = layout.position(page, row.bits, key)
        page = _with_more(page, layout, row) if number is None else _with_another(page, layout, number, row)
    layout = Layout.of(page)
    if now is not None and _earliest(page, layout, EXPIRY) <= now:
        return None
    event, processing = (_earliest(page, layout, column) for column in (0, 1))
    return StoredPage(page, (None if event == NEVER else event, None if processing == NEVER else processing))


def _has_columns_for(layout: Layout, row: Row) -> bool:
    return all(time == NEVER or layout.flags >> column & 1 for column, time in enumerate(row.times))


def _with_another(page: bytes, layout: Layout, number: int, row: Row) -> bytes:
    """The page with another entry in the place of one."""
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


def _with_more(page: bytes, layout: Layout, row: Row) -> bytes:
    """The page with one more entry at its end."""
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


def _earliest(page: bytes, layout: Layout, column: int) -> int:
    at = next((at for number, at in layout.times() if number == column), None)
    return NEVER if at is None or not layout.entries else min(struct.unpack_from(f"<{layout.entries}q", page, at))
