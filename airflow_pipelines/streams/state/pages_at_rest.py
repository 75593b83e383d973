"""The pages at rest of one operator in one task: which key is in which, which are due, and which changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from airflow_pipelines.streams.state.due_pages import DuePages
from airflow_pipelines.streams.state.page_layout import find
from airflow_pipelines.streams.state.page_storage import PageStorage
from airflow_pipelines.streams.state.page_tree import DEEPEST, PageTree
from airflow_pipelines.streams.state.page_update import updated
from airflow_pipelines.streams.state.pages import PageId, PageRows, Row, StoredPage

PAGE_BYTES = 8 * 1024
_ROWS_OF_A_PART = 4


@dataclass
class PageChanges:
    """Which pages are others than before.

    :param written: pages that changed or are new
    :param gone: ids of pages that are no more
    """

    written: dict[PageId, StoredPage] = field(default_factory=dict)
    gone: set[PageId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class PageMarks:
    """Which pages are others than at the last time that somebody took the changes.

    :param written: pages that were written
    :param created: those of them that were not there then
    :param gone: pages that were there then and are no more
    """

    written: frozenset[PageId] = frozenset()
    created: frozenset[PageId] = frozenset()
    gone: frozenset[PageId] = frozenset()

    def after(self, before: Iterable[PageId], written: Iterable[PageId], gone: Iterable[PageId]) -> PageMarks:
        """The marks after more changes.

        :param before: the pages that were there before these changes
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
    """Pages in a storage.

    :param max_parallelism: number of key groups
    :param storage: where pages are
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
        """Take a page of a snapshot over. It does not count as a change.

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
        """How large all pages are.

        :returns: their bytes
        """
        return self._storage.size()

    def ids(self) -> Iterator[PageId]:
        """All pages.

        :returns: their ids
        """
        return self._storage.ids()

    def find(self, page_id: PageId, bits: int, key: bytes) -> bytes | None:
        """What is kept for a key.

        :param page_id: id of its page
        :param bits: its second hash
        :param key: its canonical bytes
        :returns: the kept bytes, None when nothing is kept
        """
        page = self._storage.read(page_id)
        return None if page is None else find(page, bits, key)

    def rows(self, page_id: PageId) -> PageRows:
        """All entries of a page.

        :param page_id: its id
        :returns: the entries, none when there is no such page
        """
        return PageRows.of(self._storage.read(page_id))

    def update(self, page_id: PageId, changes: Mapping[bytes, Row | None], now: int | None) -> bool:
        """Change a few entries of a page that stays one page.

        :param page_id: its id
        :param changes: entries by their canonical keys, None for one that is no more
        :param now: processing time in ms, None where nothing expires
        :returns: whether that was done; if not, who calls takes the page apart and puts it together
        """
        page = self._storage.read(page_id)
        new = None if page is None else updated(page, changes, now)
        if new is None or len(new.data) > PAGE_BYTES:
            return False
        self._keep(page_id, new)
        return True

    def put(self, page_id: PageId, rows: PageRows) -> None:
        """Keep these entries in place of those that a page had. It splits when they are too many.

        :param page_id: its id
        :param rows: the entries
        """
        if not rows:
            self._remove(page_id)
            return
        levels = _levels(page_id, rows)
        if not levels:
            self._keep(page_id, rows.stored())
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
            self._note_due(page_id, page)  # it may come from one that was split
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
        """Have a page count as changed.

        :param page_id: its id
        """
        if page_id in self._storage:
            self._written.add(page_id)

    @property
    def marks(self) -> PageMarks:
        """Which pages have changed since the changes were taken last."""
        return PageMarks(frozenset(self._written), frozenset(self._created), frozenset(self._gone))

    @marks.setter
    def marks(self, marks: PageMarks) -> None:
        self._written, self._created, self._gone = set(marks.written), set(marks.created), set(marks.gone)

    def spill(self) -> None:
        """Let the storage bring elsewhere what does not fit into memory.

        :raises StreamProgramError: when it cannot
        """
        self._storage.spill()

    def all(self) -> dict[PageId, StoredPage]:
        """All pages.

        :returns: pages by their ids
        """
        return {page_id: self._storage.stored(page_id) for page_id in self._storage.ids()}

    def changes(self) -> PageChanges:
        """What has changed since the last call, or since the pages were loaded.

        :returns: the pages
        """
        changes = PageChanges({page_id: self._storage.stored(page_id) for page_id in self._written}, set(self._gone))
        self._written.clear()
        self._created.clear()
        self._gone.clear()
        return changes

    def close(self) -> None:
        """Keep nothing more."""
        self._storage.close()


def _levels(page_id: PageId, rows: PageRows) -> int:
    """By how many bits a page has to split; 0 when it need not. One large entry among small ones is no reason for many pages."""
    size = rows.size()
    if size <= PAGE_BYTES or len(rows) < 2 or page_id[1] >= DEEPEST:
        return 0
    others = size - max(map(len, rows.data))
    parts = min(others // PAGE_BYTES, len(rows) // _ROWS_OF_A_PART)
    return min(max(1, parts.bit_length() - 1), DEEPEST - page_id[1])
