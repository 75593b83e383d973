"""Functions that make results of elements of two streams which belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from airflow_pipelines.streams.functions import Function

LEFT = TypeVar("LEFT")
RIGHT = TypeVar("RIGHT")
OUT = TypeVar("OUT")


class JoinFunction(Function, Generic[LEFT, RIGHT, OUT]):
    """A function that makes one result of each pair of elements."""

    @abstractmethod
    def join(self, first: LEFT, second: RIGHT) -> OUT:
        """Return the result of a pair.

        :param first: the element of the first stream
        :param second: the element of the second stream
        :returns: the result
        """


class FlatJoinFunction(Function, Generic[LEFT, RIGHT, OUT]):
    """A function that makes any number of results of each pair of elements."""

    @abstractmethod
    def join(self, first: LEFT, second: RIGHT) -> Iterable[OUT] | None:
        """Return the results of a pair.

        :param first: the element of the first stream
        :param second: the element of the second stream
        :returns: the results
        """


class CoGroupFunction(Function, Generic[LEFT, RIGHT, OUT]):
    """A function that makes results of all elements of a key and a window, including those without a partner."""

    @abstractmethod
    def co_group(self, first: Iterable[LEFT], second: Iterable[RIGHT]) -> Iterable[OUT] | None:
        """Return the results of a key and a window.

        :param first: the elements of the first stream; may be empty
        :param second: the elements of the second stream; may be empty
        :returns: the results
        """


class ProcessJoinFunction(Function, Generic[LEFT, RIGHT, OUT]):
    """A function that makes results of each pair of elements whose times are near to each other.

    >>> from airflow_pipelines.datastream import ProcessJoinFunction, StreamExecutionEnvironment, Time, WatermarkStrategy
    >>> class Shipped(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left[0], ctx.get_right_timestamp() - ctx.get_left_timestamp()
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    >>> orders, parcels = (
    ...     env.from_collection(events).assign_timestamps_and_watermarks(timed).key_by(lambda event: event[0])
    ...     for events in ([("a", 0), ("b", 10)], [("a", 40), ("b", 200)])
    ... )
    >>> joined = orders.interval_join(parcels).between(Time.milliseconds(0), Time.milliseconds(100))
    >>> list(joined.process(Shipped()).execute_and_collect())
    [('a', 40)]
    """

    class Context(ABC):
        """The context of a pair."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Return the event time of the left element.

            :returns: ms
            """

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Return the event time of the right element.

            :returns: ms
            """

        @abstractmethod
        def get_timestamp(self) -> int:
            """Return the event time of the results: the later one of the two.

            :returns: ms
            """

    @abstractmethod
    def process_element(self, left: LEFT, right: RIGHT, ctx: ProcessJoinFunction.Context) -> Iterable[OUT] | None:
        """Return the results of a pair.

        :param left: the element of the left stream
        :param right: the element of the right stream
        :param ctx: the times of both
        :returns: the results; ``tag, value`` with an OutputTag for a side output
        """


def results_of(results: Any) -> Iterable[Any]:
    """Return the results of a call, of which None stands for no result."""
    return () if results is None else results
