"""The state of all keys of one operator in one task, in pages.

A page holds the keys of one key group that hash to it, with all that is kept for them: the values of states, and timers. At
rest a page is bytes, and when
its next timers are due is known without reading it; hot pages are Python objects. A page that outgrows its size splits in two.
"""

from __future__ import annotations

import heapq
import itertools
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

from airflow_pipelines.streams.errors import NoKeyError
from airflow_pipelines.streams.keys import canonical_bytes, key_group
from airflow_pipelines.streams.pickled import to_bytes

EVENT_TIME = 0
PROCESSING_TIME = 1

Timer: TypeAlias = tuple[int, int, Any]
"""Domain, timestamp in ms, namespace (a window, or None)."""
PageId: TypeAlias = tuple[int, int, int]
"""Key group, depth, and the lowest bits of the second hash of its keys: as many as it is deep."""

PAGE_BYTES = 64 * 1024
_DEEPEST = 24
_SAMPLE = 32
_NEVER: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class StoredPage:
    """A page at rest.

    :param data: keys with their values and timers
    :param due: when its next timers are due, in event time and in processing time; None for no timer
    """

    data: bytes
    due: tuple[int | None, int | None] = _NEVER


class Page:
    """A hot page."""

    __slots__ = ("dirty", "entries", "id")

    def __init__(self, page_id: PageId) -> None:
        self.id = page_id
        self.entries: dict[bytes, Entry] = {}
        self.dirty = False


class Entry:
    """All that is kept for one key."""

    __slots__ = ("data", "key", "page", "timers", "values")

    def __init__(self, key: Any, data: bytes, page: Page) -> None:
        self.key = key
        self.data = data
        self.page = page
        self.values: dict[Any, Any] = {}
        self.timers: set[Timer] = set()


class _NoEntry(Entry):
    """Stands for the entry where no key is current."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise NoKeyError(
            "State and timers belong to a key, and there is no current key here. Use them in process_element, on_timer and the"
            " like, not in open() or close()."
        )


NO_ENTRY: Entry = _NoEntry()


class _HotEntries(dict[Any, Entry]):
    """Entries by key. What is missing is read from its page."""

    def __init__(self, store: KeyedStore) -> None:
        super().__init__()
        self._store = store

    def __missing__(self, key: Any) -> Entry:
        entry = self[key] = self._store.find(key)
        return entry


class KeyedStore:
    """State by key.

    :param max_parallelism: number of key groups
    :param pages: the pages at rest of the key groups of this task
    """

    def __init__(self, max_parallelism: int, pages: Mapping[PageId, StoredPage] | None = None) -> None:
        self._max_parallelism = max_parallelism
        self._stored: dict[PageId, StoredPage] = dict(pages or {})
        self._pages: dict[PageId, Page] = {}
        self._splits = {parent for page_id in self._stored for parent in _ancestors(page_id)}
        self._due: tuple[list[tuple[int, PageId]], list[tuple[int, PageId]]] = ([], [])
        self._sweepers: dict[str, Callable[[dict[Any, Any], Any], None]] = {}
        self.entry: Entry = NO_ENTRY
        self.hot = _HotEntries(self)
        self.on_timers: Callable[[Entry], None] | None = None
        for page_id, stored in self._stored.items():
            self._note_due(page_id, stored)

    def find(self, key: Any) -> Entry:
        """What is kept for a key.

        :param key: the key
        :returns: its entry, a new one when nothing is kept
        """
        data = canonical_bytes(key)
        page = self._page(self._locate(data))
        entry = page.entries.get(data)
        if entry is None:
            entry = page.entries[data] = Entry(key, data, page)
        return entry

    def entries(self) -> list[Entry]:
        """All that is kept, for functions that walk over all keys.

        :returns: entries that hold something, in an order that follows from their keys
        """
        for page_id in [page_id for page_id in self._stored if page_id not in self._pages]:
            self._page(page_id)
        found = [entry for page in self._pages.values() for entry in page.entries.values() if entry.values or entry.timers]
        return sorted(found, key=lambda entry: entry.data)

    def drop(self, entry: Entry) -> None:
        """Forget a key.

        :param entry: what was kept for it
        """
        entry.values.clear()
        entry.timers.clear()
        entry.page.dirty = True
        entry.page.entries.pop(entry.data, None)
        self._forget_hot(entry)
        if self.entry is entry:
            self.entry = NO_ENTRY

    def load_due(self, domain: int, until: int) -> None:
        """Read the pages with timers that are due.

        :param domain: the notion of time
        :param until: timestamp in ms
        """
        due = self._due[domain]
        while due and due[0][0] <= until:
            _, page_id = heapq.heappop(due)
            if page_id in self._stored and page_id not in self._pages:
                self._page(page_id)

    def next_stored_due(self, domain: int) -> int | None:
        """When a timer of a page at rest is due.

        :param domain: the notion of time
        :returns: timestamp in ms, None when there is none
        """
        due = self._due[domain]
        while due and (due[0][1] not in self._stored or due[0][1] in self._pages):
            heapq.heappop(due)
        return due[0][0] if due else None

    def sweep_with(self, name: str, sweeper: Callable[[dict[Any, Any], Any], None]) -> None:
        """Have a state drop what has expired whenever a page that changed goes to rest.

        :param name: of the state
        :param sweeper: is given the values of a key, and the slot of the state in them
        """
        self._sweepers[name] = sweeper

    def rest(self) -> tuple[dict[PageId, StoredPage], set[PageId]]:
        """Write what has changed since the last call.

        :returns: the pages that changed, and the ids of pages that are no more
        """
        written: dict[PageId, StoredPage] = {}
        gone: set[PageId] = set()
        for page in [page for page in self._pages.values() if page.dirty]:
            self._write(page, written, gone)
        self._stored.update(written)
        for page_id in gone:
            self._stored.pop(page_id, None)
        self.entry = NO_ENTRY
        return written, gone

    def pages(self) -> dict[PageId, StoredPage]:
        """All pages, at rest.

        :returns: pages by their ids
        """
        self.rest()
        return dict(self._stored)

    def evict(self, most_keys: int) -> None:
        """Keep only bytes when more than some keys are hot.

        :param most_keys: how many may be
        """
        if sum(len(page.entries) for page in self._pages.values()) <= most_keys:
            return
        self.rest()
        for page in self._pages.values():
            for entry in page.entries.values():
                entry.timers = set()
        self._pages.clear()
        self.hot.clear()
        self._due = ([], [])
        for page_id, stored in self._stored.items():
            self._note_due(page_id, stored)

    def _locate(self, data: bytes) -> PageId:
        group = key_group(data, self._max_parallelism)
        bits = _second_hash(data)
        depth = 0
        splits = self._splits
        while (group, depth, bits & ((1 << depth) - 1)) in splits:
            depth += 1
        return (group, depth, bits & ((1 << depth) - 1))

    def _page(self, page_id: PageId) -> Page:
        page = self._pages.get(page_id)
        if page is None:
            page = Page(page_id)
            stored = self._stored.get(page_id)
            if stored is not None:
                self._read(page, stored)
            self._pages[page_id] = page
        return page

    def _read(self, page: Page, stored: StoredPage) -> None:
        for key, data, values, timers in pickle.loads(stored.data):  # noqa: S301 (pages of the program's own storage)
            entry = page.entries[data] = Entry(key, data, page)
            entry.values = values
            if timers:
                entry.timers = set(timers)
                if self.on_timers is not None:
                    self.on_timers(entry)

    def _write(self, page: Page, written: dict[PageId, StoredPage], gone: set[PageId]) -> None:
        for entry in list(page.entries.values()):
            if entry.values and self._sweepers:
                self._sweep(entry)
            if not entry.values and not entry.timers:
                del page.entries[entry.data]
                self._forget_hot(entry)
        page.dirty = False
        if not page.entries:
            if page.id in self._stored:
                gone.add(page.id)
            return
        may_split = len(page.entries) > 1 and page.id[1] < _DEEPEST
        if may_split and _estimated_bytes(page) > 2 * PAGE_BYTES:
            self._split(page, written, gone)
            return
        data = _encode(page, page.entries.values())
        if may_split and len(data) > PAGE_BYTES:
            self._split(page, written, gone)
        else:
            written[page.id] = StoredPage(data, _next_due(page))

    def _split(self, page: Page, written: dict[PageId, StoredPage], gone: set[PageId]) -> None:
        self._splits.add(page.id)
        del self._pages[page.id]
        if page.id in self._stored:
            gone.add(page.id)
        group, depth, bits = page.id
        halves = tuple(Page((group, depth + 1, bits | (side << depth))) for side in (0, 1))
        for data, entry in page.entries.items():
            half = halves[_second_hash(data) >> depth & 1]
            half.entries[data] = entry
            entry.page = half
        for half in halves:
            if half.entries:
                self._pages[half.id] = half
                self._write(half, written, gone)

    def _sweep(self, entry: Entry) -> None:
        for slot in list(entry.values):
            sweeper = self._sweepers.get(slot if isinstance(slot, str) else slot[0])
            if sweeper is not None:
                sweeper(entry.values, slot)

    def _forget_hot(self, entry: Entry) -> None:
        try:
            self.hot.pop(entry.key, None)
        except TypeError:
            return  # a key without a hash never became hot

    def _note_due(self, page_id: PageId, stored: StoredPage) -> None:
        for domain, timestamp in enumerate(stored.due):
            if timestamp is not None:
                heapq.heappush(self._due[domain], (timestamp, page_id))


def _second_hash(data: bytes) -> int:
    return crc32(data, 0x9E3779B9)


def _encode(page: Page, entries: Iterable[Entry]) -> bytes:
    rows = [(entry.key, entry.data, entry.values, tuple(entry.timers)) for entry in entries]
    try:
        return pickle.dumps(rows, 5)
    except (pickle.PicklingError, TypeError, AttributeError):
        for entry in page.entries.values():
            for slot, value in entry.values.items():
                to_bytes(value, f"The state {slot!r} of the key {entry.key!r}")
        raise


def _estimated_bytes(page: Page) -> int:
    """About how large a page is, so that one with very many keys is not encoded again and again while it splits."""
    if len(page.entries) <= 4 * _SAMPLE:
        return 0
    sample = _encode(page, itertools.islice(page.entries.values(), _SAMPLE))
    return len(sample) * len(page.entries) // _SAMPLE


def _next_due(page: Page) -> tuple[int | None, int | None]:
    due: list[int | None] = [None, None]
    for entry in page.entries.values():
        for domain, timestamp, _ in entry.timers:
            known = due[domain]
            if known is None or timestamp < known:
                due[domain] = timestamp
    return (due[0], due[1])


def _ancestors(page_id: PageId) -> list[PageId]:
    group, depth, bits = page_id
    return [(group, above, bits & ((1 << above) - 1)) for above in range(depth)]
