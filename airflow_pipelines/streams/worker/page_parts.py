"""Pages of state in parts. However many pages there are, no message between two processes is large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_pipelines.streams.worker.messages import StoredPages

PART_BYTES = 4 * 1024 * 1024
"""The maximum number of bytes of a part, unless a single page has more."""


def in_parts(pages: Iterable[StoredPages]) -> Iterator[StoredPages]:
    """Yield the same pages in messages of limited size.

    :param pages: the pages, read while the parts are taken
    :returns: the parts
    """
    for stored in pages:
        part: dict[tuple[int, int, int], tuple[bytes, int | None, int | None]] = {}
        size = 0
        for page_id, page in stored.pages.items():
            if part and size + len(page[0]) > PART_BYTES:
                yield StoredPages(stored.uid, part)
                part, size = {}, 0
            part[page_id] = page
            size += len(page[0])
        if part:
            yield StoredPages(stored.uid, part)
