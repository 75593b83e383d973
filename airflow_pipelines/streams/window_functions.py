"""Functions that are given the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.windows.window import Window


class _WindowContext(ABC):
    """What a window function may ask."""

    @abstractmethod
    def window(self) -> Window:
        """The window.

        :returns: the window that fires
        """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time.

        :returns: ms since 1970
        """

    @abstractmethod
    def current_watermark(self) -> int:
        """How far event time has come.

        :returns: timestamp in ms
        """

    @abstractmethod
    def window_state(self) -> Any:
        """State of this key in this window, which :meth:`ProcessWindowFunction.clear` must clear.

        :returns: gives states by their descriptors
        """

    @abstractmethod
    def global_state(self) -> Any:
        """State of this key in all windows.

        :returns: gives states by their descriptors
        """


class WindowFunction(Function):
    """Makes results of the elements of a window."""

    @abstractmethod
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: of its elements
        :param window: the window
        :param inputs: the elements
        :returns: the results
        """


class AllWindowFunction(Function):
    """Makes results of the elements of a window over a stream without keys."""

    @abstractmethod
    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""


class ProcessWindowFunction(Function):
    """Makes results of the elements of a window, and may ask for the time and state."""

    class Context(_WindowContext):
        """What may be asked."""

    @abstractmethod
    def process(self, key: Any, content: ProcessWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window.

        :param key: of its elements
        :param content: the window, the time and state
        :param elements: the elements
        :returns: the results
        """

    def clear(self, context: ProcessWindowFunction.Context) -> None:
        """The window is over: clear its state.

        :param context: the window, the time and state
        """


class ProcessAllWindowFunction(Function):
    """The same for windows over a stream without keys."""

    class Context(_WindowContext):
        """What may be asked."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context, elements: Iterable[Any]) -> Iterable[Any] | None:
        """Evaluate a window."""

    def clear(self, context: ProcessAllWindowFunction.Context) -> None:
        """The window is over: clear its state."""
