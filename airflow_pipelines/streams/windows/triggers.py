"""Triggers: when a window gives its result, and when its contents are dropped."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.descriptors import ReducingStateDescriptor
from airflow_pipelines.streams.windows.trigger import Trigger, TriggerResult

CONTINUE = TriggerResult.CONTINUE
FIRE = TriggerResult.FIRE


class _QuietTrigger(Trigger):
    """Does nothing where a kind says nothing else."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Nothing follows from an element."""
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Nothing follows from processing time."""
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Nothing follows from event time."""
        return CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Nothing follows from merging."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """There is nothing to drop."""


class EventTimeTrigger(_QuietTrigger):
    """Fires when the watermark passes the end of the window, and again for each late element that is still allowed."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """Make the trigger.

        :returns: a new one
        """
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire for a late element, else wait for the end."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(end)
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the result."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Wait no more."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_QuietTrigger):
    """Fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Make the trigger.

        :returns: a new one
        """
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the end."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end."""
        return FIRE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the result."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Wait no more."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(_QuietTrigger):
    """Fires in intervals.

    :param interval: ms
    """

    def __init__(self, interval: Any) -> None:
        self.interval = milliseconds(interval)
        if self.interval <= 0:
            raise StreamProgramError(f"The interval of a trigger is {self.interval} ms: it must be more than 0.")
        self._descriptor = ReducingStateDescriptor("fire-time", min)

    def can_merge(self) -> bool:
        """It can."""
        return True


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires in intervals of event time, and at the end of the window."""

    @staticmethod
    def of(interval: Any) -> ContinuousEventTimeTrigger:
        """Make the trigger.

        :param interval: the interval
        :returns: a new one
        """
        return ContinuousEventTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire for a late element, else wait for the next interval."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(end)
        if ctx.get_partitioned_state(self._descriptor).get() is None:
            self._next(timestamp - timestamp % self.interval, window, ctx)
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end, and when an interval is over."""
        if time == window.max_timestamp():
            return FIRE
        state = ctx.get_partitioned_state(self._descriptor)
        if state.get() != time:
            return CONTINUE
        state.clear()
        self._next(time, window, ctx)
        return FIRE

    def _next(self, after: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        at = min(after + self.interval, window.max_timestamp())
        ctx.get_partitioned_state(self._descriptor).add(at)
        ctx.register_event_time_timer(at)

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the earliest interval of the merged windows, and for the end of the result."""
        ctx.merge_partitioned_state(self._descriptor)
        at = ctx.get_partitioned_state(self._descriptor).get()
        if at is not None:
            ctx.register_event_time_timer(at)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Wait no more."""
        state = ctx.get_partitioned_state(self._descriptor)
        at = state.get()
        if at is not None:
            ctx.delete_event_time_timer(at)
            state.clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires in intervals of processing time."""

    @staticmethod
    def of(interval: Any) -> ContinuousProcessingTimeTrigger:
        """Make the trigger.

        :param interval: the interval
        :returns: a new one
        """
        return ContinuousProcessingTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the next interval."""
        if ctx.get_partitioned_state(self._descriptor).get() is None:
            now = ctx.get_current_processing_time()
            self._next(now - now % self.interval, window, ctx)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire when an interval is over."""
        state = ctx.get_partitioned_state(self._descriptor)
        if state.get() != time:
            return CONTINUE
        state.clear()
        self._next(time, window, ctx)
        return FIRE

    def _next(self, after: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        at = min(after + self.interval, window.max_timestamp())
        if at > after:
            ctx.get_partitioned_state(self._descriptor).add(at)
            ctx.register_processing_time_timer(at)

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the earliest interval of the merged windows."""
        ctx.merge_partitioned_state(self._descriptor)
        at = ctx.get_partitioned_state(self._descriptor).get()
        if at is not None:
            ctx.register_processing_time_timer(at)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Wait no more."""
        state = ctx.get_partitioned_state(self._descriptor)
        at = state.get()
        if at is not None:
            ctx.delete_processing_time_timer(at)
            state.clear()


def _add(a: int, b: int) -> int:
    return a + b


class CountTrigger(_QuietTrigger):
    """Fires when so many elements were added since it fired last.

    :param window_size: how many
    """

    def __init__(self, window_size: int) -> None:
        if window_size < 1:
            raise StreamProgramError(f"The count of a trigger is {window_size}: it must be at least 1.")
        self.window_size = window_size
        self._descriptor = ReducingStateDescriptor("count", _add)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Make the trigger.

        :param window_size: how many elements
        :returns: a new one
        """
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Count."""
        state = ctx.get_partitioned_state(self._descriptor)
        state.add(1)
        if state.get() < self.window_size:
            return CONTINUE
        state.clear()
        return FIRE

    def can_merge(self) -> bool:
        """It can."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Add the counts."""
        ctx.merge_partitioned_state(self._descriptor)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(self._descriptor).clear()


class PurgingTrigger(Trigger):
    """Drops the contents of a window whenever another trigger fires.

    :param nested_trigger: the other trigger
    """

    def __init__(self, nested_trigger: Trigger) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger) -> PurgingTrigger:
        """Make the trigger.

        :param nested_trigger: the other trigger
        :returns: a new one
        """
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other trigger."""
        return _purged(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other trigger."""
        return _purged(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the other trigger."""
        return _purged(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Whether the other trigger can."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Tell the other trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Tell the other trigger."""
        self.nested_trigger.clear(window, ctx)


def _purged(result: TriggerResult) -> TriggerResult:
    if result is CONTINUE:
        return CONTINUE
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


class NeverTrigger(_QuietTrigger):
    """Never fires."""

    def can_merge(self) -> bool:
        """It can."""
        return True
