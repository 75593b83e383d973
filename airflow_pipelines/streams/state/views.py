"""What a function sees of the state of the current key: one class for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self


class State(ABC):
    """State of one kind."""

    @abstractmethod
    def clear(self) -> None:
        """Drop what is kept for the current key."""


class ValueState(State):
    """One value for each key."""

    @abstractmethod
    def value(self) -> Any:
        """The value.

        :returns: what was kept last, None when nothing is
        """

    @abstractmethod
    def update(self, value: Any) -> None:
        """Keep a value.

        :param value: the value; None drops what is kept
        """


class ListState(State):
    """A list for each key."""

    @abstractmethod
    def get(self) -> list[Any]:
        """The elements.

        :returns: a list of them, empty when nothing is kept
        """

    @abstractmethod
    def add(self, value: Any) -> None:
        """Append an element.

        :param value: the element
        """

    @abstractmethod
    def add_all(self, values: Iterable[Any]) -> None:
        """Append elements.

        :param values: the elements
        """

    @abstractmethod
    def update(self, values: Iterable[Any]) -> None:
        """Keep these elements only.

        :param values: the elements
        """


class MapState(State):
    """A map for each key. It may be changed while it is walked over."""

    @abstractmethod
    def get(self, key: Any) -> Any:
        """A value of the map.

        :param key: in the map
        :returns: its value, None when there is none
        """

    @abstractmethod
    def put(self, key: Any, value: Any) -> None:
        """Keep a value.

        :param key: in the map
        :param value: its value
        """

    @abstractmethod
    def remove(self, key: Any) -> None:
        """Drop a value; nothing happens when there is none.

        :param key: in the map
        """

    @abstractmethod
    def _items(self) -> list[tuple[Any, Any]]: ...

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Keep values.

        :param dict_value: values by keys of the map
        """
        for key, value in dict_value.items():
            self.put(key, value)

    @abstractmethod
    def contains(self, key: Any) -> bool:
        """Whether there is a value.

        :param key: in the map
        :returns: whether it has a value
        """

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values.

        :returns: those of this moment
        """
        return iter(self._items())

    def keys(self) -> Iterator[Any]:
        """Keys of the map.

        :returns: those of this moment
        """
        return iter([key for key, _ in self._items()])

    def values(self) -> Iterator[Any]:
        """Values of the map.

        :returns: those of this moment
        """
        return iter([value for _, value in self._items()])

    def is_empty(self) -> bool:
        """Whether nothing is kept.

        :returns: whether the map has no entry
        """
        return not self._items()

    def __getitem__(self, key: Any) -> Any:
        if not self.contains(key):
            raise KeyError(key)
        return self.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        if not self.contains(key):
            raise KeyError(key)
        self.remove(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __len__(self) -> int:
        return len(self._items())


class ReducingState(State):
    """A value for each key, to which others are added by a function."""

    @abstractmethod
    def get(self) -> Any:
        """What was added.

        :returns: all of it as one value, None when nothing was
        """

    @abstractmethod
    def add(self, value: Any) -> None:
        """Add a value.

        :param value: the value
        """


class AggregatingState(ReducingState):
    """An accumulator for each key, from which a result follows."""


class SlottedValue(ValueState):
    """A value whose slot can be another one, as the values of :mod:`~airflow_pipelines.streams.state.plain` and
    :mod:`~airflow_pipelines.streams.state.expiring` are.
    """

    @abstractmethod
    def at(self, slot: Any) -> Self:
        """Show what is kept under another slot.

        :param slot: the slot
        :returns: this view
        """
