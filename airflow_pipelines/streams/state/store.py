"""The keyed state of one operator in one task.

The state of a key is an entry. Recently touched entries are hot: Python objects. All others are at rest, as rows. When too many are
hot, the least recently touched ones are evicted. Rows are written some thousand at a time.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.keys import canonical_bytes, key_group
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.state.entries import NO_ENTRY, Entry, EntryCodec, Sweeper, restore_entry
from airflow_pipelines.streams.state.hot_limit import HotLimit
from airflow_pipelines.streams.state.rows import EXPIRY, NEVER, NO_TIMES, MemoryRows, Row, RowKey, StateRows, contents_of, times_of

_SAMPLE = 32
_ROWS_AT_ONCE = 5_000
_NOT_PENDING = b""
"""A value that no row has."""


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
    :param rows: the rows at rest; None for rows in memory
    :param limit: the limit of hot keys after :meth:`evict`
    """

    def __init__(self, max_parallelism: int, rows: StateRows | None = None, limit: HotLimit | None = None) -> None:
        self._max_parallelism = max_parallelism
        self._rows = rows or MemoryRows()
        self._limit = limit or HotLimit()
        self._most_hot = 0
        self._entries: dict[bytes, Entry] = {}
        self._changes: dict[Entry, None] = {}
        self._pending: dict[RowKey, Row | None] = {}
        self._pending_due = [NEVER, NEVER]
        self._drops = 0
        self._round: list[Entry] = []
        self._codec = EntryCodec()
        self.declared: dict[str, StateDescriptor] = {}
        """The states that functions have asked for, by their names."""
        self.entry: Entry = NO_ENTRY
        self.hot = _HotEntries(self)
        self.timers: TimerListener | None = None

    def sweep_with(self, name: str, sweeper: Sweeper) -> None:
        """Register a sweeper, which removes expired values of a state when they are due.

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
        if entry is not None:
            return entry
        row_key = self._row_key(data)
        row = self._pending.get(row_key, _NOT_PENDING)
        if row is _NOT_PENDING:
            row = self._rows.get(row_key)
        return self._new(key, data) if row is None else self._heat(data, row)

    def load(self, keys: Iterable[Any]) -> None:
        """Load the entries of keys that are at rest, all at once, which is faster than one after the other.

        :param keys: the keys that are asked for next
        """
        if self._rows.is_new():
            return
        at_rest: dict[RowKey, Any] = {}
        for key in keys:
            try:
                if key in self.hot:
                    continue
                data = canonical_bytes(key)
            except (TypeError, StreamProgramError):  # find() loads a key without a hash, and raises the error of one without bytes
                continue
            row_key = self._row_key(data)
            if data not in self._entries and row_key not in self._pending:
                at_rest[row_key] = key
        wanted = sorted(at_rest)
        for row_key, row in zip(wanted, self._rows.get_all(wanted), strict=True):
            key = at_rest[row_key]
            entry = self._new(key, row_key[1]) if row is None else self._heat(row_key[1], row)
            if entry.key == key:
                self.hot[key] = entry

    def _row_key(self, data: bytes) -> RowKey:
        return key_group(data, self._max_parallelism), data

    def _new(self, key: Any, data: bytes) -> Entry:
        entry = self._entries[data] = Entry(key, data, self._changes)
        return entry

    def _heat(self, data: bytes, row: Row) -> Entry:
        entry = self._entries[data] = restore_entry(data, contents_of(row), self._changes)
        if entry.timers and self.timers is not None:
            self.timers.add_timers(entry)
        return entry

    def drop(self, entry: Entry) -> None:
        """Drop the state of a key.

        :param entry: its entry
        """
        if self.timers is not None and entry.timers:
            self.timers.remove_timers(entry)
        self._forget(entry)
        self._drops += 1
        self._pending[self._row_key(entry.data)] = None

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

        :returns: entries that are not empty, in the order of their key groups and keys
        """
        self._write_all()
        drops = self._drops
        for (group, data), row in self._rows.scan():
            entry = self._entries.get(data)
            if entry is None and (drops == self._drops or self._is_at_rest((group, data))):
                entry = self._heat(data, row)
            if entry is not None and not entry.is_empty():
                yield entry
            if len(self._entries) > 2 * self._most_hot:
                self.evict()

    def _is_at_rest(self, key: RowKey) -> bool:
        row = self._pending.get(key, _NOT_PENDING)
        return (self._rows.get(key) if row is _NOT_PENDING else row) is not None

    # timers

    def load_due(self, domain: int, until: int) -> None:
        """Load the entries whose timers are due.

        :param domain: the time domain
        :param until: timestamp in ms
        """
        if self._pending_due[domain] <= min(until, NEVER - 1):
            self._write_pending()
        while keys := self._rows.take_due(domain, until, _ROWS_AT_ONCE):
            at_rest = [key for key in dict.fromkeys(keys) if key[1] not in self._entries and key not in self._pending]
            for (_, data), row in zip(at_rest, self._rows.get_all(at_rest), strict=True):
                if row is not None and times_of(row)[domain] <= until:
                    self._heat(data, row).note_change()  # it is no longer in the index

    def next_stored_due(self, domain: int) -> int | None:
        """Return the timestamp of the next timer of an entry at rest.

        :param domain: the time domain
        :returns: timestamp in ms, which may be too early; None if there is none
        """
        stored = self._rows.next_time(domain)
        pending = self._pending_due[domain]
        return stored if pending == NEVER else pending if stored is None else min(stored, pending)

    def keys_with_timers(self, domain: int) -> int:
        """Return the number of keys that have timers. Reads all rows.

        :param domain: the time domain
        """
        self._write_pending()
        hot = sum(any(timer[0] == domain for timer in entry.timers) for entry in self._entries.values())
        return hot + sum(times_of(row)[domain] != NEVER for (_, data), row in self._rows.scan() if data not in self._entries)

    # eviction

    def evict(self) -> None:
        """Free memory: while too many keys are hot, the least recently touched ones are evicted. Expired values are removed.

        Keys get a second chance: a key that was touched since the last round over all of them stays for another round.

        :raises StreamProgramError: if a value cannot be pickled, or rows cannot be written
        """
        self.entry = NO_ENTRY
        self._most_hot = self._limit.compute(self._entries.values())
        excess = len(self._entries) - self._most_hot
        while excess > 0:
            if not self._round:
                self._begin_round()
            entry = self._round.pop()
            if self._entries.get(entry.data) is entry and not self._was_touched(entry):
                self._cool(entry)
                excess -= 1
        if not self._round and len(self._entries) >= self._most_hot:
            self._begin_round()
        self._sweep_expired()
        if len(self._pending) >= _ROWS_AT_ONCE:
            self._write_pending()

    def _begin_round(self) -> None:
        self._round = list(reversed(self._entries.values()))
        self.hot.clear()

    def _cool(self, entry: Entry) -> None:
        """Evict an entry that was not touched lately."""
        if entry.is_changed:
            self._set_pending(entry, self._codec.row(entry))
        if entry.timers and self.timers is not None:
            self.timers.remove_timers(entry)
        del self._entries[entry.data]
        entry.forget()

    def _set_pending(self, entry: Entry, row: Row | None) -> None:
        self._pending[self._row_key(entry.data)] = row
        times = NO_TIMES if row is None else times_of(row)
        if times is not NO_TIMES:
            for domain, time in enumerate(times[:2]):
                self._pending_due[domain] = min(self._pending_due[domain], time)

    def _write_pending(self) -> None:
        if self._pending:
            self._rows.write(self._pending)
            self._pending.clear()
            self._pending_due = [NEVER, NEVER]

    def _sweep_expired(self) -> None:
        """Remove the values at rest that have expired, some thousand at a time."""
        now = self._codec.now()
        if now is None:
            return
        keys = self._rows.take_due(EXPIRY, now, _ROWS_AT_ONCE)
        at_rest = [key for key in dict.fromkeys(keys) if key[1] not in self._entries and key not in self._pending]
        for (_, data), row in zip(at_rest, self._rows.get_all(at_rest), strict=True):
            if row is not None:
                entry = restore_entry(data, contents_of(row), {})
                self._set_pending(entry, self._codec.row(entry))
        for _, data in keys:
            if data in self._entries:
                self._entries[data].note_change()  # it is no longer in the index

    def _write_all(self) -> None:
        """Write all changes, some thousand at a time. If a value cannot be pickled, nothing is lost: all entries stay."""
        self.entry = NO_ENTRY
        self._write_pending()
        while self._changes:
            changed = list(itertools.islice(self._changes, _ROWS_AT_ONCE))
            rows = {self._row_key(entry.data): self._codec.row(entry) for entry in changed}
            self._rows.write(rows)
            for entry, row in zip(changed, rows.values(), strict=True):
                if row is None:
                    self._forget(entry)
                else:
                    entry.is_changed = False
                    del self._changes[entry]

    # snapshots

    def flush(self) -> None:
        """Write all changes to the rows at rest.

        :raises StreamProgramError: if a value cannot be pickled, or rows cannot be written
        """
        self._write_all()

    def rows(self) -> dict[RowKey, Row]:
        """Return the complete state as rows.

        :returns: rows by their keys
        :raises StreamProgramError: if a value cannot be pickled, or rows cannot be written
        """
        self._write_all()
        return dict(self._rows.scan())

    @property
    def sampled_bytes(self) -> Mapping[str, int]:
        """The bytes of each state in a sample of the entries that were stored, by its name."""
        return self._codec.sampled_bytes

    @property
    def stored_bytes(self) -> int:
        """The approximate size of the rows at rest."""
        return self._rows.size()

    def estimated_bytes(self) -> int:
        """Return the approximate size of the state.

        :returns: the size of the rows, and an estimate for the changed entries from a sample
        """
        changed = len(self._changes)
        sample = list(itertools.islice(self._changes, 0, None, changed // _SAMPLE + 1))
        growth = sum(map(self._growth, sample)) * changed // len(sample) if sample else 0
        pending = sum(len(row or b"") for row in self._pending.values())
        return max(self._rows.size() + pending + growth, 0)

    def _growth(self, entry: Entry) -> int:
        """Return the number of bytes by which an entry has grown since it was stored."""
        row = self._rows.get(self._row_key(entry.data))
        try:
            now = len(pickle.dumps((entry.values, tuple(entry.timers)), 5))
        except (pickle.PicklingError, TypeError, AttributeError):
            now = 0  # the error names the value later, when it is stored
        return now - (0 if row is None else len(contents_of(row)))

    def has_keys(self) -> bool:
        """Return True if there is state for a key, hot or at rest."""
        if any(not entry.is_empty() for entry in self._entries.values()) or any(row is not None for row in self._pending.values()):
            return True
        return next(self._rows.scan(), None) is not None
