"""What a trigger is: it says when a window is evaluated."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import Any

from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.state.descriptors import StateDescriptor


class TriggerResult(enum.Enum):
    """What becomes of a window: (is evaluated, its contents are dropped)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated.

        :returns: whether it is
        """
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether its contents are dropped.

        :returns: whether they are
        """
        return self.value[1]


class Trigger(ABC):
    """Decides when a window is evaluated. One object serves all windows of a task: what it knows of one window is state."""

    class TriggerContext(ABC):
        """What a trigger may ask, for the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Processing time.

            :returns: ms since 1970
            """

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Metrics of the operator.

            :returns: where they are made
            """

        @abstractmethod
        def get_current_watermark(self) -> int:
            """How far event time has come.

            :returns: timestamp in ms
            """

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have :meth:`Trigger.on_processing_time` called.

            :param time: ms since 1970
            """

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have :meth:`Trigger.on_event_time` called.

            :param time: ms
            """

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Take a timer back.

            :param time: ms since 1970
            """

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Take a timer back.

            :param time: ms
            """

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """State of the window.

            :param state_descriptor: which state
            :returns: the state
            """

    class OnMergeContext(TriggerContext):
        """The same while windows are merged."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Add the state of the merged windows to that of the result.

            :param state_descriptor: which state
            """

    @abstractmethod
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """An element was added to a window.

        :param element: the element
        :param timestamp: its event time
        :param window: the window
        :param ctx: time, timers and state
        :returns: what becomes of the window
        """

    @abstractmethod
    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """A timer of processing time fires.

        :param time: what it was registered for
        :param window: the window
        :param ctx: time, timers and state
        :returns: what becomes of the window
        """

    @abstractmethod
    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """A timer of event time fires.

        :param time: what it was registered for
        :param window: the window
        :param ctx: time, timers and state
        :returns: what becomes of the window
        """

    def can_merge(self) -> bool:
        """Whether it works with windows that merge, that is, has :meth:`on_merge`.

        :returns: whether it does
        """
        return False

    @abstractmethod
    def on_merge(self, window: Any, ctx: OnMergeContext) -> None:
        """Windows were merged.

        :param window: the result
        :param ctx: time, timers and state
        """

    @abstractmethod
    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """The window is over, or became part of another: drop its state and timers.

        :param window: the window
        :param ctx: time, timers and state
        """
