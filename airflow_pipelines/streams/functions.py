"""Functions of users: base classes with the methods that operators call. The functions that need more than the elements are in
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
    """The base class of all functions. One object serves all elements of a task, and lives as long as the task."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Prepare for the first element. This is the place to ask for state.

        :param runtime_context: the context in which the function runs
        """

    def close(self) -> None:  # noqa: B027
        """Clean up after the last element, also after an error."""


class MapFunction(Function):
    """A function that returns one value for each element."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Transform an element.

        :param value: the element
        :returns: the result
        """


class FlatMapFunction(Function):
    """A function that returns any number of values for each element."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Transform an element.

        :param value: the element
        :returns: the results: yield them, or return a list
        """


class FilterFunction(Function):
    """A function that decides if an element is kept."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return True if an element is to be kept.

        :param value: the element
        :returns: True to keep it
        """


class ReduceFunction(Function):
    """A function that combines two values into one."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine two values.

        :param value1: the result so far
        :param value2: the next element
        :returns: the combined value
        """


class AggregateFunction(Function):
    """A function that adds elements to an accumulator and computes a result from it."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Create an empty accumulator.

        :returns: the accumulator
        """

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Add an element to an accumulator.

        :param value: the element
        :param accumulator: the accumulator so far
        :returns: the accumulator with the element
        """

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Compute the result from an accumulator.

        :param accumulator: the accumulator
        :returns: the result
        """

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Merge two accumulators into one, as merging windows need.

        :param acc_a: one accumulator
        :param acc_b: the other accumulator
        :returns: the merged accumulator
        """


class KeySelector(Function):
    """A function that returns the key of an element."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of an element.

        :param value: the element
        :returns: its key
        """


class NullByteKeySelector(KeySelector):
    """A key selector that gives all elements the same key."""

    def get_key(self, value: Any) -> Any:
        """Return the constant key."""
        return 0


class Partitioner(Function):
    """A function that chooses the task for a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Choose the task for a key.

        :param key: the key of an element
        :param num_partitions: the number of tasks
        :returns: the number of a task, from 0
        """


class CoMapFunction(Function):
    """A function that returns one value for each element of two streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Transform an element of the first stream; a result of None gives nothing."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Transform an element of the second stream; a result of None gives nothing."""


class CoFlatMapFunction(Function):
    """A function that returns any number of values for each element of two streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Transform an element of the second stream."""


class CallableFunction(Function):
    """A function object around a callable, for every method of one argument or two.

    :param call: the callable
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self.map = self.flat_map = self.filter = self.reduce = self.get_key = self.partition = call
        self.call = call

    def __deepcopy__(self, memo: dict[int, Any]) -> CallableFunction:
        return CallableFunction(copy.deepcopy(self.call, memo))


def wraps_nothing(name: str, method: str, does: str) -> str:
    """Return the message that says why a base class cannot be instantiated.

    :param name: the name of the class
    :param method: the method that a derived class needs, with parameters
    :param does: the purpose of this method
    :returns: the message
    """
    return (
        f"{name} is derived from, and wraps no class of the JVM: there is none here. Write `class Mine({name})` with a method"
        f" {method} that {does}."
    )


F = TypeVar("F", bound=Function)


def own_copy(function: F) -> F:
    """Return a copy of a function object for one parallel instance, as if it had been sent there.

    :param function: the function of the program
    :returns: the copy
    :raises StreamProgramError: if a part of it cannot be copied; the message has the path to that part
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
