"""The stored pages of one operator in one task: the page of each key, the pages that are due, and those that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_pipelines.streams.state.due_pages import DuePages
from airflow_pipelines.streams.state.page_layout import find
from airflow_pipelines.streams.state.page_storage import PageStorage
from airflow_pipelines.streams.state.page_tree import DEEPEST, PageTree
from airflow_pipelines.streams.state.page_update import update_page
from airflow_pipelines.streams.state.pages import PageId, PageRows, Row, StoredPage

PAGE_BYTES = 8 * 1024
_ROWS_OF_A_PART = 4


@dataclass
class PageChanges:
    """The changes of pages.

    :param written: the pages that changed or are new
    :param gone: the ids of pages that no longer exist
    """

    written: dict[PageId, StoredPage] = field(default_factory=dict)
    gone: set[PageId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class PageMarks:
    """The marks of pages that differ from those at the last time that the changes were taken.

    :param written: the pages that were written
    :param created: those of them that did not exist then
    :param gone: the pages that existed then and no longer do
    """

    written: frozenset[PageId] = frozenset()
    created: frozenset[PageId] = frozenset()
    gone: frozenset[PageId] = frozenset()

    def after(self, before: Iterable[PageId], written: Iterable[PageId], gone: Iterable[PageId]) -> PageMarks:
        """Return the marks after more changes.

        :param before: the pages that existed before these changes
        :param written: the pages that were written
        :param gone: the pages that were removed
        :returns: the marks
        """
        removed, added = frozenset(gone), frozenset(written)
        new = added - frozenset(before)
        return PageMarks(
            (self.written - removed) | added,
            (self.created - removed) | (new - self.gone),
            (self.gone | (removed - self.created)) - new,
        )


class PagesAtRest:
    """The stored pages of a storage.

    :param max_parallelism: the number of key groups
    :param storage: the storage of the pages
    """

    def __init__(self, max_parallelism: int, storage: PageStorage) -> None:
        self._storage = storage
        self._tree = PageTree(max_parallelism)
        self.locate = self._tree.locate
        self.leaves = self._tree.leaves
        self.due = DuePages()
        self._written: set[PageId] = set()
        self._created: set[PageId] = set()
        self._gone: set[PageId] = set()

    def __contains__(self, page_id: PageId) -> bool:
        return page_id in self._storage

    def load(self, page_id: PageId, page: StoredPage) -> None:
        """Load a page of a snapshot. It does not count as a change.

        :param page_id: its id
        :param page: the page
        """
        self._tree.add(page_id)
        self._storage.write(page_id, page)
        self._storage.spill()
        self._note_due(page_id, page)

    def _note_due(self, page_id: PageId, page: StoredPage) -> None:
        for domain, timestamp in enumerate(page.due):
            if timestamp is not None:
                self.due.note(domain, timestamp, page_id)

    def size(self) -> int:
        """Return the size of all pages.

        :returns: the number of bytes
        """
        return self._storage.size()

    def ids(self) -> Iterator[PageId]:
        """Return the ids of all pages.

        :returns: their ids
        """
        return self._storage.ids()

    def find(self, page_id: PageId, bits: int, key: bytes) -> bytes | None:
        """Find the contents of a key.

        :param page_id: the id of its page
        :param bits: its second hash
        :param key: its canonical bytes
        :returns: the bytes of the contents, None if there are none
        """
        page = self._storage.read(page_id)
        return None if page is None else find(page, bits, key)

    def rows(self, page_id: PageId) -> PageRows:
        """Return all entries of a page.

        :param page_id: its id
        :returns: the entries, none if there is no such page
        """
        return PageRows.of(self._storage.read(page_id))

    def update(self, page_id: PageId, changes: Mapping[bytes, Row | None], now: int | None) -> bool:
        """Change a few entries of a page, if it remains one page.

        :param page_id: its id
        :param changes: entries by their canonical keys, None for one that is removed
        :param now: processing time in ms, None if nothing expires
        :returns: True if it was done; otherwise the caller has to rewrite the whole page
        """
        page = self._storage.read(page_id)
        new = None if page is None else update_page(page, changes, now)
        if new is None or len(new.data) > PAGE_BYTES:
            return False
        self._keep(page_id, new)
        return True

    def put(self, page_id: PageId, rows: PageRows) -> None:
        """Replace the entries of a page. The page splits if it becomes too large.

        :param page_id: its id
        :param rows: the entries
        """
        if not rows:
            self._remove(page_id)
            return
        levels = _count_split_levels(page_id, rows)
        if not levels:
            self._keep(page_id, rows.assemble())
            return
        group, depth, bits = page_id
        for number, part in enumerate(rows.parts(depth, levels)):
            if part:
                half = (group, depth + levels, bits | number << depth)
                self._tree.add(half)
                self.put(half, part)
        self._remove(page_id)

    def _keep(self, page_id: PageId, page: StoredPage) -> None:
        if page_id not in self._storage:
            self._note_due(page_id, page)  # its timers may be known only for the page that was split
            if page_id in self._gone:
                self._gone.remove(page_id)
            else:
                self._created.add(page_id)
        self._written.add(page_id)
        self._storage.write(page_id, page)

    def _remove(self, page_id: PageId) -> None:
        self.due.forget(page_id)
        if page_id not in self._storage:
            return
        self._storage.remove(page_id)
        self._written.discard(page_id)
        if page_id in self._created:
            self._created.remove(page_id)
        else:
            self._gone.add(page_id)

    def note_written(self, page_id: PageId) -> None:
        """Mark a page as changed.

        :param page_id: its id
        """
        if page_id in self._storage:
            self._written.add(page_id)

    @property
    def marks(self) -> PageMarks:
        """The marks of the pages that have changed since the changes were taken last."""
        return PageMarks(frozenset(self._written), frozenset(self._created), frozenset(self._gone))

    @marks.setter
    def marks(self, marks: PageMarks) -> None:
        self._written, self._created, self._gone = set(marks.written), set(marks.created), set(marks.gone)

    def spill(self) -> None:
        """Let the storage spill pages that do not fit into memory.

        :raises StreamProgramError: if they cannot be written
        """
        self._storage.spill()

    def all(self) -> dict[PageId, StoredPage]:
        """Return all pages.

        :returns: pages by their ids
        """
        return {page_id: self._storage.read_stored(page_id) for page_id in self._storage.ids()}

    def changes(self) -> PageChanges:
        """Return the changes since the last call, or since the pages were loaded.

        :returns: the pages
        """
        changes = PageChanges({page_id: self._storage.read_stored(page_id) for page_id in self._written}, set(self._gone))
        self._written.clear()
        self._created.clear()
        self._gone.clear()
        return changes

    def close(self) -> None:
        """Drop all pages."""
        self._storage.close()


def _count_split_levels(page_id: PageId, rows: PageRows) -> int:
    """Return the number of bits by which a page has to split, or 0 if it need not. One large entry among small ones does not
    justify many pages.
    """
    size = rows.size()
    if size <= PAGE_BYTES or len(rows) < 2 or page_id[1] >= DEEPEST:
        return 0
    others = size - max(map(len, rows.data))
    parts = min(others // PAGE_BYTES, len(rows) // _ROWS_OF_A_PART)
    return min(max(1, parts.bit_length() - 1), DEEPEST - page_id[1])
