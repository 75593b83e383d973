"""Functions that process the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.windows.window import W2, W

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")


class _WindowContext(ABC, Generic[W2]):
    """The context of a window function."""

    @abstractmethod
    def window(self) -> W2:
        """Return the window.

        :returns: the window that fires
        """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark.

        :returns: timestamp in ms
        """

    @abstractmethod
    def window_state(self) -> Any:
        """Return the state of this key in this window. :meth:`ProcessWindowFunction.clear` must clear it.

        :returns: access to states by their descriptors
        """

    @abstractmethod
    def global_state(self) -> Any:
        """Return the state of this key in all windows.

        :returns: access to states by their descriptors
        """


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A function that computes results from the elements of a window.

    >>> from airflow_pipelines.datastream import CountWindow, StreamExecutionEnvironment, WindowFunction
    >>> class Total(WindowFunction[tuple[str, int], tuple[str, int], str, CountWindow]):
    ...     def apply(self, key, window, inputs):
    ...         yield key, sum(number for _, number in inputs)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sales = env.from_collection([("pears", 3), ("pears", 4)]).key_by(lambda sale: sale[0])
    >>> list(sales.count_window(2).apply(Total()).execute_and_collect())
    [('pears', 7)]
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Evaluate a window.

        :param key: the key of its elements
        :param window: the window
        :param inputs: the elements
        :returns: the results
        """


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """A function that computes results from the elements of a window over a stream without keys.

    >>> from airflow_pipelines.datastream import AllWindowFunction, StreamExecutionEnvironment
    >>> class Spread(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield max(inputs) - min(inputs)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> prices = env.from_collection([20, 23, 21, 30, 30, 35])
    >>> list(prices.count_window_all(3).apply(Spread()).execute_and_collect())
    [3, 5]
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Evaluate a window."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """A function that computes results from the elements of a window, with access to the time and to state."""

    class Context(_WindowContext[W2]):
        """The context of a window."""

    @abstractmethod
    def process(self, key: KEY, content: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Evaluate a window.

        :param key: the key of its elements
        :param content: the window, the time and state
        :param elements: the elements
        :returns: the results
        """

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is over.

        :param context: the window, the time and state
        """


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """A function like :class:`ProcessWindowFunction`, for windows over a stream without keys."""

    class Context(_WindowContext[W2]):
        """The context of a window."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Evaluate a window."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear the state of a window that is over."""
