"""Functions that process the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.windows.window import Window


class _WindowContext(ABC):
    """The context of a window function."""

    @abstractmethod
    def window(self) -> Window:
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


class WindowFunction(Function):
    """A function that computes results from the elements of a window."""

    @abstractmethod
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: the key of its elements
        :param window: the window
        :param inputs: the elements
        :returns: the results
        """


class AllWindowFunction(Function):
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
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""


class ProcessWindowFunction(Function):
    """A function that computes results from the elements of a window, with access to the time and to state."""

    class Context(_WindowContext):
        """The context of a window."""

    @abstractmethod
    def process(self, key: Any, content: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: the key of its elements
        :param content: the window, the time and state
        :param elements: the elements
        :returns: the results
        """

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        """Clear the state of a window that is over.

        :param context: the window, the time and state
        """


class ProcessAllWindowFunction(Function):
    """A function like :class:`ProcessWindowFunction`, for windows over a stream without keys."""

    class Context(_WindowContext):
        """The context of a window."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""

    def clear(self, context: ProcessAllWindowFunction.Context) -> None:
        """Clear the state of a window that is over."""
