"""The keyed state of one operator in one task.

The state of a key is an entry. Recently touched entries are hot: Python objects. All others are at rest, as bytes in pages. When
too many are hot, the least recently touched ones are evicted. Those of them that changed wait beside their pages, so that a page is
written once for many changes.
"""

from __future__ import annotations

import itertools
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from airflow_pipelines.streams.keys import canonical_bytes
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.state.entries import EVENT_TIME, NO_ENTRY, PROCESSING_TIME, Entry, EntryCodec, Sweeper, restore_entry
from airflow_pipelines.streams.state.page_layout import NEVER
from airflow_pipelines.streams.state.page_storage import MemoryPages, PageStorage
from airflow_pipelines.streams.state.page_tree import place, place_of_key
from airflow_pipelines.streams.state.pages import PageId, PageRows, Row, StoredPage, kept_in, key_in
from airflow_pipelines.streams.state.pages_at_rest import PageChanges, PageMarks, PagesAtRest

HOT_KEYS = 200_000
_SAMPLE = 32
WAITING_BYTES = 64 * 1024 * 1024
_OBJECT_BYTES = 400
"""The approximate memory of a waiting entry besides its own bytes."""


class TimerListener(Protocol):
    """A listener for entries with timers that become hot or go to rest."""

    def add_timers(self, entry: Entry) -> None:
        """Handle that an entry with timers becomes hot.

        :param entry: the entry
        """
        ...

    def remove_timers(self, entry: Entry) -> None:
        """Handle that an entry with timers goes to rest.

        :param entry: the entry
        """
        ...


class _HotEntries(dict[Any, Entry]):
    """The entries by key that were touched since the last round of evictions began. A missing entry is looked up in the store."""

    def __init__(self, store: KeyedStore) -> None:
        super().__init__()
        self._store = store

    def __missing__(self, key: Any) -> Entry:
        entry = self._store.find(key)
        if entry.key is key or entry.key == key:
            self[key] = entry
        return entry


class KeyedStore:
    """A store of keyed state.

    :param max_parallelism: the number of key groups
    :param storage: the storage of pages; None for memory
    :param hot_keys: the maximum number of hot keys after :meth:`evict`
    """

    def __init__(self, max_parallelism: int, storage: PageStorage | None = None, hot_keys: int = HOT_KEYS) -> None:
        self._pages = PagesAtRest(max_parallelism, storage or MemoryPages())
        self._hot_keys = hot_keys
        self._entries: dict[bytes, Entry] = {}
        self._changes: dict[Entry, None] = {}
        self._waiting: OrderedDict[PageId, dict[bytes, Row | None]] = (
            OrderedDict()
        )  # finds its first key fast; a dict scans removed keys
        self._waiting_bytes = 0
        self._round: list[Entry] = []
        self._codec = EntryCodec()
        self.declared: dict[str, StateDescriptor] = {}
        """The states that functions have asked for, by their names."""
        self.entry: Entry = NO_ENTRY
        self.hot = _HotEntries(self)
        self.timers: TimerListener | None = None

    def load(self, page_id: PageId, page: StoredPage) -> None:
        """Load a page of a snapshot, before the first entry is asked for.

        :param page_id: its id
        :param page: the page
        """
        self._pages.load(page_id, page)

    def sweep_with(self, name: str, sweeper: Sweeper) -> None:
        """Register a sweeper, which removes expired values of a state whenever a page is written.

        :param name: the name of the state
        :param sweeper: the sweeper
        """
        self._codec.sweep_with(name, sweeper)

    # entries

    def find(self, key: Any) -> Entry:
        """Return the entry of a key.

        :param key: the key
        :returns: its entry, a new one if there is none
        """
        data = canonical_bytes(key)
        entry = self._entries.get(data)
        if entry is None:
            page_id, bits = self._pages.locate(data)
            waiting = self._waiting.get(page_id)
            if waiting is not None and data in waiting:
                return self._heat_waiting(page_id, data, key)
            kept = self._pages.find(page_id, bits, data)
            entry = self._new(key, data) if kept is None else self._heat(data, kept)
        return entry

    def _new(self, key: Any, data: bytes) -> Entry:
        entry = self._entries[data] = Entry(key, data, self._changes)
        return entry

    def _heat(self, data: bytes, kept: bytes) -> Entry:
        entry = self._entries[data] = restore_entry(data, kept, self._changes)
        if entry.timers and self.timers is not None:
            self.timers.add_timers(entry)
        return entry

    def _heat_waiting(self, page_id: PageId, data: bytes, key: Any) -> Entry:
        waiting = self._waiting[page_id]
        row = waiting.pop(data)
        if not waiting:
            del self._waiting[page_id]
        self._waiting_bytes -= _weigh(row)
        entry = self._new(key, data) if row is None else self._heat(data, kept_in(row.data))
        entry.note_change()  # its page does not contain it yet
        return entry

    def drop(self, entry: Entry) -> None:
        """Drop the state of a key.

        :param entry: its entry
        """
        if self.timers is not None and entry.timers:
            self.timers.remove_timers(entry)
        self._forget(entry)
        page_id, _ = self._pages.locate(entry.data)
        if page_id in self._pages:
            self._wait(page_id, entry.data, None)

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.data]
        if self._was_touched(entry):
            del self.hot[entry.key]
        entry.forget()
        if self.entry is entry:
            self.entry = NO_ENTRY

    def _was_touched(self, entry: Entry) -> bool:
        try:
            return self.hot.get(entry.key) is entry
        except TypeError:  # a key without a hash
            return False

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, for functions that visit all keys. They may change the state of the current key.

        :returns: entries that are not empty, in an order that follows from their keys
        """
        hot: dict[PageId, list[bytes]] = {}
        for data in self._entries:
            hot.setdefault(self._pages.locate(data)[0], []).append(data)
        for page_id in sorted({*self._pages.ids(), *self._waiting, *hot}, key=place):
            for leaf in self._pages.leaves(page_id):  # it may have split on the way here
                yield from self._iterate_page(leaf, hot.get(page_id, ()))
            if len(self._entries) > 2 * self._hot_keys:
                self.evict()

    def _iterate_page(self, page_id: PageId, hot: Iterable[bytes]) -> Iterator[Entry]:
        at_rest = self._pages.rows(page_id).get_contents()
        waiting = self._waiting.get(page_id, {})
        keys = {*at_rest, *waiting, *(data for data in hot if self._pages.locate(data)[0] == page_id)}
        for data in sorted(keys, key=place_of_key):
            entry = self._entries.get(data)
            if entry is None:
                if waiting.get(data) is not None:
                    entry = self._heat_waiting(page_id, data, None)
                elif data in at_rest and data not in waiting:
                    entry = self._heat(data, at_rest[data])
            if entry is not None and not entry.is_empty():
                yield entry

    # timers

    def load_due(self, domain: int, until: int) -> None:
        """Load the entries whose timers are due.

        :param domain: the time domain
        :param until: timestamp in ms
        """
        while (page_id := self._pages.due.take(domain, until)) is not None:
            later = NEVER
            for data, time, kept in self._find_due_at_rest(page_id, domain):
                if time > until:
                    later = min(later, time)
                elif kept is None:
                    self._heat_waiting(page_id, data, None)
                else:
                    self._heat(data, kept)
            if later != NEVER:
                self._pages.due.note(domain, later, page_id)

    def _find_due_at_rest(self, page_id: PageId, domain: int) -> list[tuple[bytes, int, bytes | None]]:
        """Return the keys with timers that are not hot.

        :returns: the key, the timestamp of its next timer, and its stored bytes, or None if it waits
        """
        waiting = self._waiting.get(page_id, {})
        due: list[tuple[bytes, int, bytes | None]] = [
            (data, row.times[domain], None) for data, row in waiting.items() if row is not None and row.times[domain] != NEVER
        ]
        rows = self._pages.rows(page_id)
        for entry, time in zip(rows.data, rows.times[domain] or (), strict=False):
            if time != NEVER:
                data = key_in(entry)
                if data not in self._entries and data not in waiting:
                    due.append((data, time, kept_in(entry)))
        return due

    def next_stored_due(self, domain: int) -> int | None:
        """Return the timestamp of the next timer of an entry at rest.

        :param domain: the time domain
        :returns: timestamp in ms, which may be too early; None if there is none
        """
        return self._pages.due.next(domain)

    def keys_with_timers(self, domain: int) -> int:
        """Return the number of keys that have timers. Reads all stored pages.

        :param domain: the time domain
        """
        hot = sum(any(timer[0] == domain for timer in entry.timers) for entry in self._entries.values())
        return hot + sum(len(self._find_due_at_rest(page_id, domain)) for page_id in {*self._pages.ids(), *self._waiting})

    # eviction

    def evict(self) -> None:
        """Free memory: while too many keys are hot, the least recently touched ones are evicted.

        Keys get a second chance: a key that was touched since the last round over all of them stays for another round.

        :raises StreamProgramError: if a value cannot be pickled, or a page cannot be written
        """
        self.entry = NO_ENTRY
        excess = len(self._entries) - self._hot_keys
        while excess > 0:
            if not self._round:
                self._begin_round()
            entry = self._round.pop()
            if self._entries.get(entry.data) is entry and not self._was_touched(entry):
                self._cool(entry)
                excess -= 1
        if not self._round and len(self._entries) >= self._hot_keys:
            self._begin_round()
        while self._waiting_bytes > WAITING_BYTES:
            self._write(next(iter(self._waiting)))

    def _begin_round(self) -> None:
        self._round = list(reversed(self._entries.values()))
        self.hot.clear()

    def _cool(self, entry: Entry) -> None:
        """Evict an entry that was not touched lately."""
        data = entry.data
        if entry.is_changed or entry.timers:
            page_id, bits = self._pages.locate(data)
            row = self._codec.row(entry, bits)
            if row is not None and entry.timers:
                for domain in (EVENT_TIME, PROCESSING_TIME):
                    if row.times[domain] != NEVER:
                        self._pages.due.note(domain, row.times[domain], page_id)
            if entry.is_changed:
                self._wait(page_id, data, row)
            if entry.timers and self.timers is not None:
                self.timers.remove_timers(entry)
        del self._entries[data]
        entry.forget()

    def _wait(self, page_id: PageId, data: bytes, row: Row | None) -> None:
        """Let a change wait until its page is written."""
        waiting = self._waiting.setdefault(page_id, {})
        if data in waiting:
            self._waiting_bytes -= _weigh(waiting[data])
        waiting[data] = row
        self._waiting_bytes += _weigh(row)

    def _write(self, page_id: PageId) -> None:
        """Write the waiting changes of a page."""
        changes = self._waiting[page_id]
        now = self._codec.now()
        if not self._pages.update(page_id, changes, now):
            self._rewrite(page_id, changes, now)
        self._waiting_bytes -= sum(map(_weigh, changes.values()))
        del self._waiting[page_id]
        self._pages.spill()

    def _rewrite(self, page_id: PageId, changes: dict[bytes, Row | None], now: int | None) -> None:
        rows = self._pages.rows(page_id)
        rows.change(changes)
        if now is not None:
            self._sweep(rows, now)
        self._pages.put(page_id, rows)

    def _sweep(self, rows: PageRows, now: int) -> None:
        swept: dict[bytes, Row | None] = {}
        for number in rows.find_expired(now):
            data = key_in(rows.data[number])
            entry = restore_entry(data, kept_in(rows.data[number]), {})
            swept[data] = self._codec.row(entry, rows.bits[number])
        if swept:
            rows.change(swept)

    def _write_all(self) -> None:
        """Write all changes. If a value cannot be pickled, nothing is lost, and all entries stay as they were."""
        self.entry = NO_ENTRY
        changed = list(self._changes)
        places = [self._pages.locate(entry.data) for entry in changed]
        rows = [self._codec.row(entry, bits) for entry, (_, bits) in zip(changed, places, strict=True)]
        for entry, row, (page_id, _) in zip(changed, rows, places, strict=True):
            self._wait(page_id, entry.data, row)
            if row is None:
                self._forget(entry)
            entry.is_changed = False
        self._changes.clear()
        for page_id in list(self._waiting):
            self._write(page_id)

    # snapshots

    def pages(self) -> dict[PageId, StoredPage]:
        """Return the complete state as pages.

        :returns: pages by their ids
        :raises StreamProgramError: if a value cannot be pickled, or a page cannot be written
        """
        self._write_all()
        return self._pages.all()

    def changes(self) -> PageChanges:
        """Return the changes since the last call, or since the store was made and its pages loaded.

        :returns: the pages
        :raises StreamProgramError: if a value cannot be pickled, or a page cannot be written
        """
        self._write_all()
        return self._pages.changes()

    @property
    def sampled_bytes(self) -> Mapping[str, int]:
        """The bytes of each state in a sample of the entries that were stored, by its name."""
        return self._codec.sampled_bytes

    def estimated_bytes(self) -> int:
        """Return the approximate size of the state.

        :returns: the size of the stored pages, of the waiting changes, and an estimate for the changed entries from a sample
        """
        changed = len(self._changes)
        sample = list(itertools.islice(self._changes, 0, None, changed // _SAMPLE + 1))
        growth = sum(map(self._growth, sample)) * changed // len(sample) if sample else 0
        return max(self._pages.size() + self._waiting_bytes + growth, 0)

    def _growth(self, entry: Entry) -> int:
        """Return the number of bytes by which an entry has grown since it was stored."""
        page_id, bits = self._pages.locate(entry.data)
        kept = self._pages.find(page_id, bits, entry.data)
        try:
            now = len(pickle.dumps((entry.values, tuple(entry.timers)), 5))
        except (pickle.PicklingError, TypeError, AttributeError):
            now = 0  # the error names the value later, when it is stored
        return now - (0 if kept is None else len(kept))

    def at_rest(self) -> tuple[int, int]:
        """Return the amount of stored state.

        :returns: the number of pages, and of their bytes
        """
        return sum(1 for _ in self._pages.ids()), self._pages.size()

    def has_keys(self) -> bool:
        """Return True if there is state for a key, hot or at rest; also if it was dropped after its page was last written."""
        if self._pages.size() or any(row is not None for rows in self._waiting.values() for row in rows.values()):
            return True
        return any(not entry.is_empty() for entry in self._entries.values())

    def note_written(self, page_id: PageId) -> None:
        """Mark a loaded page as changed, because it differs from its copy elsewhere.

        :param page_id: its id
        """
        self._pages.note_written(page_id)

    def marks(self) -> PageMarks:
        """Return the marks of the pages that have changed since the last call of :meth:`changes`.

        :returns: marks for :meth:`restore_marks` of another store that continues with the same pages
        :raises StreamProgramError: if a value cannot be pickled, or a page cannot be written
        """
        self._write_all()
        return self._pages.marks

    def restore_marks(self, marks: PageMarks) -> None:
        """Mark loaded pages as changed, or as created, and other pages as gone.

        :param marks: the marks
        """
        self._pages.marks = marks

    def close(self) -> None:
        """Release the resources of the page storage."""
        self._pages.close()


def _weigh(row: Row | None) -> int:
    return _OBJECT_BYTES + (0 if row is None else len(row.data))
