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
    """The base class of all functions. One object serves all elements of a task, and lives as long as the task.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.functions import MapFunction
    >>> class Discount(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.percent = int(runtime_context.get_job_parameter("percent", "20"))
    ...     def map(self, value):
    ...         return value * (100 - self.percent) / 100
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.from_collection([5, 10]).map(Discount()).execute_and_collect())
    [4.0, 8.0]
    """

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
    """A function that combines two values into one.

    >>> from airflow_pipelines.datastream import ReduceFunction, StreamExecutionEnvironment
    >>> class Longest(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return max(value1, value2, key=len)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> names = env.from_collection(["ann", "alexander", "amy"]).key_by(lambda name: name[0])
    >>> list(names.reduce(Longest()).execute_and_collect())
    ['ann', 'alexander', 'alexander']
    """

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
    """A function that returns the key of an element.

    >>> from airflow_pipelines.datastream import KeySelector, StreamExecutionEnvironment
    >>> class Customer(KeySelector):
    ...     def get_key(self, order):
    ...         return order[0]
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders = env.from_collection([("ann", 10), ("bob", 5), ("ann", 7)])
    >>> sorted(orders.key_by(Customer()).sum(1).execute_and_collect())
    [('ann', 10), ('ann', 17), ('bob', 5)]
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key of an element.

        :param value: the element
        :returns: its key
        """


class NullByteKeySelector(KeySelector):
    """A key selector that gives all elements the same key.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.functions import NullByteKeySelector
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.from_collection([("apples", 3), ("pears", 5)]).key_by(NullByteKeySelector()).max_by(1).execute_and_collect())
    [('apples', 3), ('pears', 5)]
    """

    def get_key(self, value: Any) -> Any:
        """Return the constant key."""
        return 0


class Partitioner(Function):
    """A function that chooses the task for a key.

    >>> from airflow_pipelines.datastream import Partitioner, StreamExecutionEnvironment
    >>> class LargeOnesLast(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return num_partitions - 1 if key > 1_000 else 0
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> amounts = env.from_collection([5_000, 7_000]).partition_custom(LargeOnesLast(), lambda amount: amount)
    >>> sink = amounts.print("task").set_parallelism(4)
    >>> result = env.execute()
    task:4> 5000
    task:4> 7000
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Choose the task for a key.

        :param key: the key of an element
        :param num_partitions: the number of tasks
        :returns: the number of a task, from 0
        """


class CoMapFunction(Function):
    """A function that returns one value for each element of two streams.

    >>> from airflow_pipelines.datastream import CoMapFunction, StreamExecutionEnvironment
    >>> class InMetres(CoMapFunction):
    ...     def map1(self, kilometres):
    ...         return kilometres * 1000
    ...     def map2(self, metres):
    ...         return metres if metres >= 0 else None
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> kilometres, metres = env.from_collection([2, 3]), env.from_collection([400, -1])
    >>> sorted(kilometres.connect(metres).map(InMetres()).execute_and_collect())
    [400, 2000, 3000]
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Transform an element of the first stream; a result of None gives nothing."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Transform an element of the second stream; a result of None gives nothing."""


class CoFlatMapFunction(Function):
    """A function that returns any number of values for each element of two streams.

    >>> from airflow_pipelines.datastream import CoFlatMapFunction, StreamExecutionEnvironment
    >>> class Words(CoFlatMapFunction):
    ...     def flat_map1(self, line):
    ...         yield from line.split()
    ...     def flat_map2(self, words):
    ...         yield from words
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> lines, lists = env.from_collection(["to be", "or not"]), env.from_collection([["to", "be"]])
    >>> sorted(lines.connect(lists).flat_map(Words()).execute_and_collect())
    ['be', 'be', 'not', 'or', 'to', 'to']
    """

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
