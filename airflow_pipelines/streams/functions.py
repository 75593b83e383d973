"""Functions of users: base classes with the methods that operators call. Those that look at more than elements are in
``process_functions.py`` and ``window_functions.py``.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.runtime import RuntimeContext


class Function(ABC):  # noqa: B024 (what is abstract follows in its kinds)
    """Base of all functions. One object serves all elements of a task, and lives as long as the task."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called before the first element: the place to ask for state.

        :param runtime_context: where the function runs
        """

    def close(self) -> None:  # noqa: B027
        """Called after the last element, also after an error."""


class MapFunction(Function):
    """Gives one value for each element."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Transform an element.

        :param value: the element
        :returns: the result
        """


class FlatMapFunction(Function):
    """Gives any number of values for each element."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Transform an element.

        :param value: the element
        :returns: the results: yield them, or return a list
        """


class FilterFunction(Function):
    """Keeps an element, or not."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Look at an element.

        :param value: the element
        :returns: whether to keep it
        """


class ReduceFunction(Function):
    """Makes one value of two."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine.

        :param value1: what was combined so far
        :param value2: the next element
        :returns: both as one
        """


class AggregateFunction(Function):
    """Adds elements to an accumulator, from which a result follows."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Begin.

        :returns: an accumulator that nothing was added to
        """

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Add an element.

        :param value: the element
        :param accumulator: what was added so far
        :returns: the accumulator with it
        """

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """What follows from the accumulator.

        :param accumulator: what was added
        :returns: the result
        """

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Make one accumulator of two, as merging windows do.

        :param acc_a: one
        :param acc_b: the other
        :returns: both as one
        """


class KeySelector(Function):
    """Gives the key of an element."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key.

        :param value: the element
        :returns: its key
        """


class NullByteKeySelector(KeySelector):
    """Gives all elements the same key."""

    def get_key(self, value: Any) -> Any:
        """The one key."""
        return 0


class Partitioner(Function):
    """Chooses the task for a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Choose.

        :param key: of an element
        :param num_partitions: number of tasks
        :returns: number of a task, from 0
        """


class CoMapFunction(Function):
    """Gives one value for each element of two streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Transform an element of the first stream; a result of None gives nothing."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Transform an element of the second stream; a result of None gives nothing."""


class CoFlatMapFunction(Function):
    """Gives any number of values for each element of two streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the second stream."""


class CallableFunction(Function):
    """Makes a function object of something that can be called, for every method of one argument or two.

    :param call: what to call
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.map = self.flat_map = self.filter = self.reduce = self.get_key = self.partition = call
        self.call = call

    def __deepcopy__(self, memo: dict[int, Any]) -> CallableFunction:
        return CallableFunction(copy.deepcopy(self.call, memo))


def wraps_nothing(name: str, method: str, does: str) -> str:
    """Why a base class is not made an object of.

    :param name: of the class
    :param method: what a class derived from it has, with parameters
    :param does: what that does
    :returns: a sentence
    """
    return (
        f"{name} is derived from, and wraps no class of the JVM: there is none here. Write `class Mine({name})` with a method"
        f" {method} that {does}."
    )


F = TypeVar("F", bound=Function)


def own_copy(function: F) -> F:
    """A function object for one parallel instance, as if it had travelled there.

    :param function: what the program gave
    :returns: a copy
    :raises StreamProgramError: when something in it cannot be copied: the message has the path to it
    """
    try:
        return copy.deepcopy(function)
    except Exception as error:  # noqa: BLE001 (whatever it is, the message has it)
        path, value = culprit(function, copy.deepcopy)
        raise StreamProgramError(
            f"{type(function).__name__}{path} (of type {type(value).__name__}) cannot be copied to where the function runs"
            f" ({type(error).__name__}: {error}). Make connections, locks and open files in open(), where each parallel instance"
            " makes its own."
        ) from None
