"""What a window keeps of its elements, and how results follow from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from airflow_pipelines.streams.functions import AggregateFunction, Function


class Contents(ABC):
    """What a window keeps."""

    kind: ClassVar[str]
    """What it is as a state: ``list``, ``reducing`` or ``aggregating``."""

    @abstractmethod
    def first(self, value: Any) -> Any:
        """Begin with one element.

        :param value: the element
        :returns: what is kept
        """

    @abstractmethod
    def add(self, kept: Any, value: Any) -> Any:
        """Add an element.

        :param kept: what was kept
        :param value: the element
        :returns: what is kept
        """

    @abstractmethod
    def merge(self, kept: Any, other: Any) -> Any:
        """Make one of two windows.

        :param kept: what one keeps
        :param other: what the other keeps
        :returns: what is kept
        """

    @abstractmethod
    def elements(self, kept: Any) -> list[Any]:
        """What a window function sees.

        :param kept: what was kept
        :returns: elements
        """


class AllElements(Contents):
    """All elements, in the order in which they came."""

    kind = "list"

    def first(self, value: Any) -> Any:
        """A list."""
        return [value]

    def add(self, kept: Any, value: Any) -> Any:
        """Append."""
        kept.append(value)
        return kept

    def merge(self, kept: Any, other: Any) -> Any:
        """Append all."""
        kept.extend(other)
        return kept

    def elements(self, kept: Any) -> list[Any]:
        """All of them."""
        return list(kept)


class Reduced(Contents):
    """One value, to which elements are added by a function.

    :param function: has the method ``reduce``
    """

    kind = "reducing"

    def __init__(self, function: Function) -> None:
        self._reduce: Callable[[Any, Any], Any] = function.reduce  # type: ignore[attr-defined]

    def first(self, value: Any) -> Any:
        """The element itself."""
        return value

    def add(self, kept: Any, value: Any) -> Any:
        """Combine."""
        return self._reduce(kept, value)

    def merge(self, kept: Any, other: Any) -> Any:
        """Combine."""
        return self._reduce(kept, other)

    def elements(self, kept: Any) -> list[Any]:
        """The value."""
        return [kept]


class Aggregated(Contents):
    """An accumulator.

    :param function: adds to it
    """

    kind = "aggregating"

    def __init__(self, function: AggregateFunction) -> None:
        self._function = function

    def first(self, value: Any) -> Any:
        """A new accumulator with one element."""
        return self._function.add(value, self._function.create_accumulator())

    def add(self, kept: Any, value: Any) -> Any:
        """Add."""
        return self._function.add(value, kept)

    def merge(self, kept: Any, other: Any) -> Any:
        """Make one of two."""
        return self._function.merge(kept, other)

    def elements(self, kept: Any) -> list[Any]:
        """The result."""
        return [self._function.get_result(kept)]
