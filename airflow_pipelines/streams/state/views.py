"""The interfaces through which a function sees the state of the current key: one class for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self


class State(ABC):
    """A state of one kind."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the state of the current key."""


class ValueState(State):
    """A state with one value for each key."""

    @abstractmethod
    def value(self) -> Any:
        """Return the value.

        :returns: the value that was set last, None if there is none
        """

    @abstractmethod
    def update(self, value: Any) -> None:
        """Set the value.

        :param value: the value; None removes it
        """


class ListState(State):
    """A state with a list for each key."""

    @abstractmethod
    def get(self) -> list[Any]:
        """Return the elements.

        :returns: a list of them, empty if there are none
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
        """Replace all elements.

        :param values: the elements
        """


class MapState(State):
    """A state with a map for each key. It may be changed during iteration."""

    @abstractmethod
    def get(self, key: Any) -> Any:
        """Return a value of the map.

        :param key: the key in the map
        :returns: its value, None if there is none
        """

    @abstractmethod
    def put(self, key: Any, value: Any) -> None:
        """Set a value.

        :param key: the key in the map
        :param value: its value
        """

    @abstractmethod
    def remove(self, key: Any) -> None:
        """Remove a value; there is no effect if there is none.

        :param key: the key in the map
        """

    @abstractmethod
    def _items(self) -> list[tuple[Any, Any]]: ...

    def put_all(self, dict_value: Mapping[Any, Any]) -> None:
        """Set several values.

        :param dict_value: values by keys of the map
        """
        for key, value in dict_value.items():
            self.put(key, value)

    @abstractmethod
    def contains(self, key: Any) -> bool:
        """Return True if there is a value for the key.

        :param key: the key in the map
        :returns: True if it has a value
        """

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return the keys and values.

        :returns: those of this moment
        """
        return iter(self._items())

    def keys(self) -> Iterator[Any]:
        """Return the keys of the map.

        :returns: those of this moment
        """
        return iter([key for key, _ in self._items()])

    def values(self) -> Iterator[Any]:
        """Return the values of the map.

        :returns: those of this moment
        """
        return iter([value for _, value in self._items()])

    def is_empty(self) -> bool:
        """Return True if the map is empty.

        :returns: True if it has no entry
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
    """A state with one value for each key, which a function combines with others."""

    @abstractmethod
    def get(self) -> Any:
        """Return the combined value.

        :returns: all added values as one, None if there is none
        """

    @abstractmethod
    def add(self, value: Any) -> None:
        """Add a value.

        :param value: the value
        """


class AggregatingState(ReducingState):
    """A state with an accumulator for each key, from which a result follows."""


class SlottedValue(ValueState):
    """A value state whose slot can be changed, like the values of :mod:`~airflow_pipelines.streams.state.plain` and
    :mod:`~airflow_pipelines.streams.state.expiring`.
    """

    @abstractmethod
    def at(self, slot: Any) -> Self:
        """Bind the view to another slot.

        :param slot: the slot
        :returns: this view
        """
