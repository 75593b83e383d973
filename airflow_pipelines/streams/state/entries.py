"""The state of one key, as an object and as bytes."""

from __future__ import annotations

import math
import pickle
from typing import Any, Protocol, TypeAlias, cast

from airflow_pipelines.streams.errors import NoKeyError
from airflow_pipelines.streams.keys import is_plain, plain_key
from airflow_pipelines.streams.pickled import to_bytes
from airflow_pipelines.streams.state.rows import NEVER, NO_TIMES, Row, pack_row

EVENT_TIME = 0
PROCESSING_TIME = 1

Timer: TypeAlias = tuple[int, int, Any]
"""A timer: time domain, timestamp in ms, and namespace (a window, or None)."""

_NONE = math.inf
_SAMPLED = 32
"""Of so many entries that are encoded, the sizes of the states of one are noted."""
NO_TIMERS = cast(set[Timer], frozenset())
"""The shared set of entries without timers; a set for each would take much memory."""


class Sweeper(Protocol):
    """A sweeper that knows when the values of one state expire."""

    def now(self) -> int:
        """Return the processing time in ms."""
        ...

    def sweep(self, values: dict[Any, Any], slot: Any) -> None:
        """Remove expired values.

        :param values: the values of a key
        :param slot: the slot of the state in them
        """
        ...

    def next_expiry(self, kept: Any) -> int:
        """Return the time at which the first value expires.

        :param kept: the stored value of a key in this state
        :returns: processing time in ms
        """
        ...


class Entry:
    """The state of one key, while it is hot. Whoever changes it calls :meth:`note_change` unless ``is_changed`` is set.

    :param key: the key
    :param data: its canonical bytes
    :param changes: the collection of changed entries
    """

    __slots__ = ("_changes", "data", "is_changed", "key", "timers", "values")

    def __init__(self, key: Any, data: bytes, changes: dict[Entry, None]) -> None:
        self.key = key
        self.data = data
        self.values: dict[Any, Any] = {}
        self.timers = NO_TIMERS
        self.is_changed = False
        self._changes = changes

    def note_change(self) -> None:
        """Mark the entry as different from its stored form."""
        self.is_changed = True
        self._changes[self] = None

    def is_empty(self) -> bool:
        """Return True if the entry is empty.

        :returns: True if it has neither values nor timers
        """
        return not self.values and not self.timers

    def forget(self) -> None:
        """Release the contents. Code that still refers to the entry finds no timers, and no values to change."""
        del self.values
        self.timers = NO_TIMERS
        if self.is_changed:
            self.is_changed = False
            del self._changes[self]


class _NoEntry(Entry):
    """A placeholder for the entry while no key is current."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise NoKeyError(
            "State and timers belong to a key, and there is no current key here. Use them in process_element, on_timer and the"
            " like, not in open() or close()."
        )


NO_ENTRY: Entry = _NoEntry()


class EntryCodec:
    """An encoder of entries, which removes expired values first."""

    def __init__(self) -> None:
        self._sweepers: dict[str, Sweeper] = {}
        self._encoded = 0
        self.sampled_bytes: dict[str, int] = {}
        """The bytes of each state in a sample of the entries that were encoded, by its name."""

    def sweep_with(self, name: str, sweeper: Sweeper) -> None:
        """Register a sweeper, which removes expired values of a state.

        :param name: the name of the state
        :param sweeper: the sweeper
        """
        self._sweepers[name] = sweeper

    def now(self) -> int | None:
        """Return the time by which values expire.

        :returns: processing time in ms, None if nothing expires
        """
        return next(iter(self._sweepers.values())).now() if self._sweepers else None

    def row(self, entry: Entry) -> Row | None:
        """Encode an entry in its stored form.

        :param entry: the entry, from which expired values are removed
        :returns: the row, None if the entry is empty
        :raises StreamProgramError: if a value cannot be pickled
        """
        expiry = self._sweep(entry) if self._sweepers else NEVER
        values, timers = entry.values, entry.timers
        if not values and not timers:
            return None
        key = entry.key
        kept: tuple[Any, ...] = (values, tuple(timers))
        if not is_plain(key):
            kept = (*kept, key)
        try:
            data = pickle.dumps(kept, 5)
        except (pickle.PicklingError, TypeError, AttributeError):
            for slot, value in values.items():
                to_bytes(value, f"The state {slot!r} of the key {key!r}")
            raise
        self._encoded += 1
        if self._encoded % _SAMPLED == 1:
            self._sample(values, len(data))
        if not timers and expiry == NEVER:
            return pack_row(NO_TIMES, data)
        event, processing = _first_times(timers)
        return pack_row((event, processing, expiry), data)

    def _sample(self, values: dict[Any, Any], size: int) -> None:
        names = {_state_name(slot) for slot in values}
        for slot, value in values.items():
            name = _state_name(slot)
            part = size if len(names) == 1 else len(pickle.dumps((slot, value), 5))
            self.sampled_bytes[name] = self.sampled_bytes.get(name, 0) + part
            if len(names) == 1:
                return

    def _sweep(self, entry: Entry) -> int:
        expiry = NEVER
        values = entry.values
        for slot in list(values):
            sweeper = self._sweepers.get(_state_name(slot))
            if sweeper is not None:
                sweeper.sweep(values, slot)
                if slot in values:
                    expiry = min(expiry, sweeper.next_expiry(values[slot]))
        return expiry


def _first_times(timers: set[Timer]) -> tuple[int, int]:
    """Return the times of the next timers in event time and in processing time."""
    event = processing = _NONE
    for domain, timestamp, _ in timers:
        if domain == EVENT_TIME:
            event = min(event, timestamp)
        else:
            processing = min(processing, timestamp)
    return _clamp_time(event), _clamp_time(processing)


def _state_name(slot: Any) -> str:
    """Return the name of the state of a slot, which may also have a namespace."""
    name: str = slot if isinstance(slot, str) else slot[0]
    return name


def _clamp_time(timestamp: float) -> int:
    """Return the time of a timer as rows store it.

    A timer at the end of time is stored just before it, since that number means "never".
    """
    return NEVER if timestamp == _NONE else max(-NEVER - 1, min(NEVER - 1, math.floor(timestamp)))


def restore_entry(data: bytes, kept: bytes, changes: dict[Entry, None]) -> Entry:
    """Decode an entry.

    :param data: the canonical bytes of its key
    :param kept: the bytes that :class:`EntryCodec` made of its contents
    :param changes: the collection of changed entries
    :returns: the entry
    """
    values, timers, *key = pickle.loads(kept)  # noqa: S301 (the program's own storage)
    entry = Entry(key[0] if key else plain_key(data), data, changes)
    entry.values = values
    if timers:
        entry.timers = set(timers)
    return entry
