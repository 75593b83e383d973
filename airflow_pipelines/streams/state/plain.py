"""Views of the state of the current key that do not expire, and reducing and aggregating state over both kinds of values.

Views of state that expires are in ``expiring.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from airflow_pipelines.streams.state.descriptors import AggregatingStateDescriptor, ReducingStateDescriptor
from airflow_pipelines.streams.state.slotted import Slotted
from airflow_pipelines.streams.state.views import AggregatingState, ListState, MapState, ReducingState, SlottedValue
from airflow_pipelines.streams.values import ATOMIC


class PlainValue(Slotted, SlottedValue):
    """A value that does not expire."""

    __slots__ = ()

    def value(self) -> Any:
        """Return the value."""
        entry = self._store.entry
        value = entry.values.get(self._slot)
        if value.__class__ not in ATOMIC and not entry.is_changed:
            entry.note_change()
        return value

    def update(self, value: Any) -> None:
        """Set the value."""
        if value is None:
            self.clear()
            return
        entry = self._store.entry
        entry.values[self._slot] = value
        if not entry.is_changed:
            entry.note_change()


class PlainList(Slotted, ListState):
    """A list whose elements do not expire."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """Return the elements."""
        entry = self._store.entry
        kept: list[Any] = entry.values.get(self._slot, [])
        if not entry.is_changed and not set(map(type, kept)) <= ATOMIC:
            entry.note_change()
        return list(kept)

    def add(self, value: Any) -> None:
        """Append an element."""
        entry = self._store.entry
        kept = entry.values.get(self._slot)
        if kept is None:
            entry.values[self._slot] = [value]
        else:
            kept.append(value)
        if not entry.is_changed:
            entry.note_change()

    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements."""
        added = list(values)
        if added:
            entry = self._store.entry
            entry.values.setdefault(self._slot, []).extend(added)
            if not entry.is_changed:
                entry.note_change()

    def update(self, values: Iterable[Any]) -> None:
        """Replace all elements."""
        kept = list(values)
        if not kept:
            self.clear()
            return
        entry = self._store.entry
        entry.values[self._slot] = kept
        if not entry.is_changed:
            entry.note_change()


class PlainMap(Slotted, MapState):
    """A map whose entries do not expire."""

    __slots__ = ()

    def _get_contents(self) -> dict[Any, Any]:
        kept: dict[Any, Any] = self._store.entry.values.get(self._slot, {})
        return kept

    def get(self, key: Any) -> Any:
        """Return a value of the map."""
        value = self._get_contents().get(key)
        if value.__class__ not in ATOMIC:
            entry = self._store.entry
            if not entry.is_changed:
                entry.note_change()
        return value

    def put(self, key: Any, value: Any) -> None:
        """Set a value."""
        entry = self._store.entry
        kept = entry.values.get(self._slot)
        if kept is None:
            entry.values[self._slot] = {key: value}
        else:
            kept[key] = value
        if not entry.is_changed:
            entry.note_change()

    def remove(self, key: Any) -> None:
        """Remove a value."""
        entry = self._store.entry
        kept = entry.values.get(self._slot)
        if kept is not None and key in kept:
            del kept[key]
            if not kept:
                del entry.values[self._slot]
            if not entry.is_changed:
                entry.note_change()

    def contains(self, key: Any) -> bool:
        """Return True if there is a value for the key."""
        return key in self._get_contents()

    def _items(self) -> list[tuple[Any, Any]]:
        kept = self._get_contents()
        if not set(map(type, kept.values())) <= ATOMIC:
            entry = self._store.entry
            if not entry.is_changed:
                entry.note_change()
        return list(kept.items())


class Reducing(ReducingState):
    """A state that combines values by a function.

    :param value: the state with the combined value
    :param descriptor: the descriptor with the function
    """

    def __init__(self, value: SlottedValue, descriptor: ReducingStateDescriptor) -> None:
        self._value = value
        self._reduce = descriptor.reduce

    def at(self, slot: Any) -> Self:
        """Bind the view to another slot."""
        self._value.at(slot)
        return self

    def get(self) -> Any:
        """Return the combined value."""
        return self._value.value()

    def add(self, value: Any) -> None:
        """Add a value."""
        kept = self._value.value()
        self._value.update(value if kept is None else self._reduce(kept, value))

    def merge(self, other: Reducing) -> None:
        """Add the combined value of another state, if it has one."""
        value = other.get()
        if value is not None:
            self.add(value)

    def clear(self) -> None:
        """Remove the state of the current key."""
        self._value.clear()


class Aggregating(AggregatingState):
    """A state that adds values to an accumulator.

    :param value: the state with the accumulator
    :param descriptor: the descriptor with the functions
    """

    def __init__(self, value: SlottedValue, descriptor: AggregatingStateDescriptor) -> None:
        self._value = value
        self._function = descriptor.agg_function

    def at(self, slot: Any) -> Self:
        """Bind the view to another slot."""
        self._value.at(slot)
        return self

    def get(self) -> Any:
        """Return the result of the accumulator."""
        kept = self._value.value()
        return None if kept is None else self._function.get_result(kept)

    def add(self, value: Any) -> None:
        """Add a value."""
        kept = self._value.value()
        self._value.update(self._function.add(value, self._function.create_accumulator() if kept is None else kept))

    def merge(self, other: Aggregating) -> None:
        """Merge with the accumulator of another state, if it has one."""
        accumulator, kept = other._value.value(), self._value.value()
        if accumulator is not None:
            self._value.update(accumulator if kept is None else self._function.merge(kept, accumulator))

    def clear(self) -> None:
        """Remove the state of the current key."""
        self._value.clear()
