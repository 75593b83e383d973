"""The contents of a window: the value that it keeps for its elements, and the results that follow from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from airflow_pipelines.streams.functions import AggregateFunction, Function


class Contents(ABC):
    """The kind of contents of a window."""

    kind: ClassVar[str]
    """The kind of the state: ``list``, ``reducing`` or ``aggregating``."""

    @abstractmethod
    def first(self, value: Any) -> Any:
        """Create contents from the first element.

        :param value: the element
        :returns: the contents
        """

    @abstractmethod
    def add(self, kept: Any, value: Any) -> Any:
        """Add an element.

        :param kept: the contents
        :param value: the element
        :returns: the new contents
        """

    def adder(self) -> Callable[[Any, Any], Any]:
        """Return a function that does the same as :meth:`add`, for many calls.

        :returns: a function of the contents and the element
        """
        return self.add

    @abstractmethod
    def merge(self, kept: Any, other: Any) -> Any:
        """Merge the contents of two windows.

        :param kept: the contents of one window
        :param other: the contents of the other window
        :returns: the merged contents
        """

    @abstractmethod
    def elements(self, kept: Any) -> list[Any]:
        """Return the elements that a window function gets.

        :param kept: the contents
        :returns: the elements
        """


class AllElements(Contents):
    """Contents with all elements, in the order in which they came."""

    kind = "list"

    def first(self, value: Any) -> Any:
        """Create a list with one element."""
        return [value]

    def add(self, kept: Any, value: Any) -> Any:
        """Append an element."""
        kept.append(value)
        return kept

    def merge(self, kept: Any, other: Any) -> Any:
        """Append all elements of the other window."""
        kept.extend(other)
        return kept

    def elements(self, kept: Any) -> list[Any]:
        """Return all elements."""
        return list(kept)


class Reduced(Contents):
    """Contents with one value, which a function combines with each element.

    :param function: the function object with the method ``reduce``
    """

    kind = "reducing"

    def __init__(self, function: Function) -> None:
        self._reduce: Callable[[Any, Any], Any] = function.reduce  # type: ignore[attr-defined]

    def first(self, value: Any) -> Any:
        """Return the element itself."""
        return value

    def add(self, kept: Any, value: Any) -> Any:
        """Combine the value with an element."""
        return self._reduce(kept, value)

    def adder(self) -> Callable[[Any, Any], Any]:
        """Return the function that combines."""
        return self._reduce

    def merge(self, kept: Any, other: Any) -> Any:
        """Combine two values."""
        return self._reduce(kept, other)

    def elements(self, kept: Any) -> list[Any]:
        """Return the value."""
        return [kept]


class Aggregated(Contents):
    """Contents with an accumulator.

    :param function: the aggregate function
    """

    kind = "aggregating"

    def __init__(self, function: AggregateFunction) -> None:
        self._function = function

    def first(self, value: Any) -> Any:
        """Create an accumulator with one element."""
        return self._function.add(value, self._function.create_accumulator())

    def add(self, kept: Any, value: Any) -> Any:
        """Add an element to the accumulator."""
        return self._function.add(value, kept)

    def merge(self, kept: Any, other: Any) -> Any:
        """Merge two accumulators."""
        return self._function.merge(kept, other)

    def elements(self, kept: Any) -> list[Any]:
        """Return the result of the accumulator."""
        return [self._function.get_result(kept)]
