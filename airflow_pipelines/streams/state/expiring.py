"""Views of state that expires. Each value, element of a list or entry of a map is stored with the time at which it was written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.state.slotted import Slotted
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.state.views import ListState, MapState, SlottedValue

Stamped: TypeAlias = tuple[int, Any]
"""The time of writing, and the value."""


class _Expiring(Slotted):
    __slots__ = ("_clock", "_ttl")

    def __init__(self, store: KeyedStore, slot: Any, ttl: TimeToLive, clock: StepClock) -> None:
        super().__init__(store, slot)
        self._ttl = ttl
        self._clock = clock

    def _is_expired(self, stamped: Stamped) -> bool:
        return stamped[0] + self._ttl.milliseconds <= self._clock.now

    def _get_contents(self) -> Any:
        entry = self._store.entry
        kept = entry.values.get(self._slot)
        if kept is not None and not entry.is_changed:
            entry.note_change()
        return kept

    def _keep(self, kept: Any) -> None:
        entry = self._store.entry
        if kept:
            entry.values[self._slot] = kept
        else:
            entry.values.pop(self._slot, None)
        if not entry.is_changed:
            entry.note_change()


class ExpiringValue(_Expiring, SlottedValue):
    """A value that expires."""

    __slots__ = ()

    def value(self) -> Any:
        """Return the value."""
        kept = self._get_contents()
        if kept is None:
            return None
        if self._is_expired(kept):
            self._keep(None)
            return kept[1] if self._ttl.expired_is_visible else None
        if self._ttl.refreshed_on_read:
            self._keep((self._clock.now, kept[1]))
        return kept[1]

    def update(self, value: Any) -> None:
        """Set the value."""
        self._keep(None if value is None else (self._clock.now, value))


class ExpiringList(_Expiring, ListState):
    """A list whose elements expire one by one."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """Return the elements."""
        kept: list[Stamped] = self._get_contents() or []
        if not kept:
            return []
        alive = [each for each in kept if not self._is_expired(each)]
        visible = kept if self._ttl.expired_is_visible else alive
        if self._ttl.refreshed_on_read:
            alive = [(self._clock.now, value) for _, value in alive]
        self._keep(alive)
        return [value for _, value in visible]

    def add(self, value: Any) -> None:
        """Append an element."""
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        kept = self._get_contents() or []
        self._keep([*kept, *((self._clock.now, value) for value in values)])

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        self._keep([(self._clock.now, value) for value in values])


class ExpiringMap(_Expiring, MapState):
    """A map whose entries expire one by one."""

    __slots__ = ()

    def get(self, key: Any) -> Any:
        """Return a value of the map."""
        kept = self._get_contents()
        stamped = None if kept is None else kept.get(key)
        if stamped is None:
            return None
        if self._is_expired(stamped):
            self.remove(key)
            return stamped[1] if self._ttl.expired_is_visible else None
        if self._ttl.refreshed_on_read:
            kept[key] = (self._clock.now, stamped[1])
        return stamped[1]

    def put(self, key: Any, value: Any) -> None:
        """Set a value."""
        kept = self._get_contents() or {}
        kept[key] = (self._clock.now, value)
        self._keep(kept)

    def remove(self, key: Any) -> None:
        """Remove a value."""
        kept = self._get_contents() or {}
        kept.pop(key, None)
        self._keep(kept)

    def contains(self, key: Any) -> bool:
        """Return True if there is a value for the key."""
        kept = self._get_contents()
        stamped = None if kept is None else kept.get(key)
        return stamped is not None and (self._ttl.expired_is_visible or not self._is_expired(stamped))

    def _items(self) -> list[tuple[Any, Any]]:
        kept: dict[Any, Stamped] = self._get_contents() or {}
        if not kept:
            return []
        alive = {key: each for key, each in kept.items() if not self._is_expired(each)}
        visible = kept if self._ttl.expired_is_visible else alive
        result = [(key, value) for key, (_, value) in visible.items()]
        if self._ttl.refreshed_on_read:
            alive = {key: (self._clock.now, value) for key, (_, value) in alive.items()}
        self._keep(alive)
        return result


class TtlSweeper:
    """A sweeper for state with a time to live.

    :param ttl: the time to live
    :param clock: the clock of the step
    """

    def __init__(self, ttl: TimeToLive, clock: StepClock) -> None:
        self._ttl = ttl
        self._clock = clock

    def now(self) -> int:
        """Return the time of the step."""
        return self._clock.now

    def _is_alive(self, stamped: Stamped) -> bool:
        return stamped[0] + self._ttl.milliseconds > self._clock.now

    def sweep(self, values: dict[Any, Any], slot: Any) -> None:
        """Remove expired values."""
        kept = values[slot]
        if isinstance(kept, tuple):
            left: Any = kept if self._is_alive(kept) else None
        elif isinstance(kept, list):
            left = [each for each in kept if self._is_alive(each)]
        else:
            left = {key: each for key, each in kept.items() if self._is_alive(each)}
        if left:
            values[slot] = left
        else:
            del values[slot]

    def next_expiry(self, kept: Any) -> int:
        """Return the time at which the first value expires."""
        stamped = [kept] if isinstance(kept, tuple) else kept if isinstance(kept, list) else kept.values()
        first: int = min(written for written, _ in stamped)
        return first + self._ttl.milliseconds
