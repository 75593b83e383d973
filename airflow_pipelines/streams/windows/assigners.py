"""Window assigners: which windows an element belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any

from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.windows.trigger import Trigger


class WindowAssigner(ABC):
    """Says which windows an element belongs to."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Processing time.

            :returns: ms since 1970
            """

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the operator runs, and state of the current key.

            :returns: the context
            """

    @abstractmethod
    def assign_windows(self, element: Any, timestamp: int, context: WindowAssignerContext) -> Collection[Any]:
        """The windows of an element.

        :param element: the element
        :param timestamp: its event time
        :param context: processing time and state
        :returns: the windows
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger:
        """When windows are evaluated unless the program says otherwise.

        :param env: the environment of the program
        :returns: the trigger
        """

    def get_window_serializer(self) -> Any:
        """How windows become bytes: without effect, windows are pickled with the state.

        :returns: None
        """
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows are made of event time.

        :returns: whether they are
        """


class MergingWindowAssigner(WindowAssigner):
    """An assigner whose windows may become one."""

    class MergeCallback(ABC):
        """Is told which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
            """Windows become one.

            :param to_be_merged: the windows
            :param merge_result: what they become
            """

    @abstractmethod
    def merge_windows(self, windows: Iterable[Any], callback: MergeCallback) -> None:
        """Find out which windows become one.

        :param windows: the windows of one key
        :param callback: is told
        """

    def merge_candidates(self, windows: Collection[Any], new: Any) -> Collection[Any]:
        """Which windows of a key to look at when there is another one. Those of a key do not merge with each other any more.

        :param windows: the windows of one key
        :param new: another one
        :returns: all that may become one with it
        """
        return windows
