"""Window assigners, which assign elements to windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic

from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.windows.trigger import Trigger
from airflow_pipelines.streams.windows.window import W2, MergedWindows, T, W


class WindowAssigner(ABC, Generic[T, W]):
    """An assigner of elements to windows.

    >>> from airflow_pipelines.datastream import Time, WindowAssigner
    >>> from airflow_pipelines.datastream.window import SlidingEventTimeWindows
    >>> assigner = SlidingEventTimeWindows.of(Time.seconds(60), Time.seconds(30))
    >>> isinstance(assigner, WindowAssigner), assigner.is_event_time()
    (True, True)
    >>> assigner.assign_windows("click", 45_000, None)
    [TimeWindow(start=30000, end=90000), TimeWindow(start=0, end=60000)]
    """

    class WindowAssignerContext(ABC):
        """The context of an assigner."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time.

            :returns: ms since 1970
            """

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Return the runtime context of the operator, with state of the current key.

            :returns: the context
            """

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """Return the windows of an element.

        :param element: the element
        :param timestamp: its event time
        :param context: processing time and state
        :returns: the windows
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """Return the trigger for programs that do not set one.

        :param env: the environment of the program
        :returns: the trigger
        """

    def get_window_serializer(self) -> Any:
        """Return None: a serializer has no effect, since windows are pickled with the state.

        :returns: None
        """
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Return True if the windows are in event time.

        :returns: True for event time
        """


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may be merged.

    >>> from airflow_pipelines.datastream import MergingWindowAssigner, StreamExecutionEnvironment, Time, WatermarkStrategy
    >>> from airflow_pipelines.datastream.window import EventTimeSessionWindows
    >>> sessions = EventTimeSessionWindows.with_gap(Time.seconds(10))
    >>> isinstance(sessions, MergingWindowAssigner)
    True
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[1])
    >>> clicks = env.from_collection([("home", 0), ("cart", 8_000), ("help", 60_000)]).assign_timestamps_and_watermarks(timed)
    >>> visits = clicks.window_all(sessions).reduce(lambda first, second: (first[0] + ", " + second[0], second[1]))
    >>> list(visits.execute_and_collect())
    [('home, cart', 8000), ('help', 60000)]
    """

    class MergeCallback(ABC, Generic[W2]):
        """A callback that receives the windows to merge."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """Merge windows into one.

            :param to_be_merged: the windows
            :param merge_result: the resulting window
            """

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergeCallback[W]) -> None:
        """Determine which windows are to be merged.

        :param windows: the windows of one key
        :param callback: the callback that receives them
        """

    def merge_candidates(self, windows: MergedWindows[W], new: W) -> Collection[W]:
        """Return the windows of a key that may merge with a new one. The existing windows of a key no longer merge with each other.

        :param windows: the windows of one key, in ascending order if they can be compared
        :param new: the new window
        :returns: all windows that may merge with it
        """
        return windows
