"""The interface of triggers, which decide when a window is evaluated."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any, Generic

from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.windows.window import T, W


class TriggerResult(enum.Enum):
    """The decision about a window: (evaluate it, drop its contents).

    >>> from airflow_pipelines.datastream import TriggerResult
    >>> TriggerResult.FIRE_AND_PURGE.is_fire(), TriggerResult.FIRE_AND_PURGE.is_purge(), TriggerResult.FIRE.is_purge()
    (True, True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return True if the window is evaluated.

        :returns: True if it is
        """
        return self.value[0]

    def is_purge(self) -> bool:
        """Return True if the contents of the window are dropped.

        :returns: True if they are
        """
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """A trigger, which decides when a window is evaluated.

    One object serves all windows of a task, so its knowledge about a single window must be state.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, TriggerResult
    >>> from airflow_pipelines.datastream.window import GlobalWindows, NeverTrigger
    >>> class AtTheStop(NeverTrigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE_AND_PURGE if element.endswith(".") else TriggerResult.CONTINUE
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sentences = env.from_collection(["It", "rains.", "Stay", "in."]).window_all(GlobalWindows.create()).trigger(AtTheStop())
    >>> list(sentences.reduce(lambda text, word: text + " " + word).execute_and_collect())
    ['It rains.', 'Stay in.']
    """

    class TriggerContext(ABC):
        """The context of a trigger, for the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time.

            :returns: ms since 1970
            """

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the metric group of the operator.

            :returns: the group, which creates metrics
            """

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the current watermark.

            :returns: timestamp in ms
            """

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Register a timer that calls :meth:`Trigger.on_processing_time`.

            :param time: ms since 1970
            """

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Register a timer that calls :meth:`Trigger.on_event_time`.

            :param time: ms
            """

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a processing-time timer.

            :param time: ms since 1970
            """

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete an event-time timer.

            :param time: ms
            """

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return a state of the window.

            :param state_descriptor: the descriptor of the state
            :returns: the state
            """

    class OnMergeContext(TriggerContext):
        """The context of a trigger while windows are merged."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the state of the merged windows into that of the result.

            :param state_descriptor: the descriptor of the state
            """

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Handle an element that was added to a window.

        :param element: the element
        :param timestamp: its event time
        :param window: the window
        :param ctx: time, timers and state
        :returns: the decision about the window
        """

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Handle a processing-time timer that fires.

        :param time: the time for which it was registered
        :param window: the window
        :param ctx: time, timers and state
        :returns: the decision about the window
        """

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """Handle an event-time timer that fires.

        :param time: the time for which it was registered
        :param window: the window
        :param ctx: time, timers and state
        :returns: the decision about the window
        """

    def can_merge(self) -> bool:
        """Return True if the trigger works with windows that merge, that is, has :meth:`on_merge`.

        :returns: True if it does
        """
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """Handle that windows were merged.

        :param window: the resulting window
        :param ctx: time, timers and state
        """

    @abstractmethod
    def clear(self, window: W, ctx: TriggerContext) -> None:
        """Drop the state and the timers of a window that is over, or became part of another window.

        :param window: the window
        :param ctx: time, timers and state
        """
