"""Triggers, which decide when a window gives its result, and when its contents are dropped."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.durations import milliseconds
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.descriptors import ReducingStateDescriptor
from airflow_pipelines.streams.windows.trigger import Trigger, TriggerResult

CONTINUE = TriggerResult.CONTINUE
FIRE = TriggerResult.FIRE


class _QuietTrigger(Trigger[Any, Any]):
    """A trigger that does nothing unless a subclass overrides a method."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ignore an element."""
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ignore a processing-time timer."""
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ignore an event-time timer."""
        return CONTINUE

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Ignore the merge."""

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: there is nothing to drop."""


class EventTimeTrigger(_QuietTrigger):
    """A trigger that fires when the watermark passes the end of the window.

    It fires again for each late element that is still allowed.
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Create the trigger.

        :returns: a new trigger
        """
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire for a late element, else wait for the end of the window."""
        end = window.max_timestamp()
        if end <= ctx.get_current_watermark():
            return FIRE
        ctx.register_event_time_timer(end)
        return CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return FIRE if time == window.max_timestamp() else CONTINUE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the merged window."""
        end = window.max_timestamp()
        if end > ctx.get_current_watermark():
            ctx.register_event_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer for the end of the window."""
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(_QuietTrigger):
    """A trigger that fires when the clock passes the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Create the trigger.

        :returns: a new trigger
        """
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of the window."""
        return FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the merged window."""
        end = window.max_timestamp()
        if end > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(end)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer for the end of the window."""
        ctx.delete_processing_time_timer(window.max_timestamp())


class _ContinuousTrigger(_QuietTrigger):
    """The base of triggers that fire at intervals.

    :param interval: ms, or a length of time
    """

    def __init__(self, interval: Any) -> None:
        self.interval = milliseconds(interval)
        if self.interval <= 0:
            raise StreamProgramError(f"The interval of a trigger is {self.interval} ms: it must be more than 0.")
        self._descriptor = ReducingStateDescriptor("fire-time", min)

    def can_merge(self) -> bool:
        """Return True."""
        return True


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """A trigger that fires at intervals of event time, and at the end of the window."""

    @staticmethod
    def of(interval: Any) -> ContinuousEventTimeTrigger:
        """Create the trigger.

        :param interval: the interval
        :returns: a new trigger
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
        """Fire at the end of the window, and at the end of an interval."""
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
        """Delete the timers and the state of the window."""
        state = ctx.get_partitioned_state(self._descriptor)
        at = state.get()
        if at is not None:
            ctx.delete_event_time_timer(at)
            state.clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """A trigger that fires at intervals of processing time."""

    @staticmethod
    def of(interval: Any) -> ContinuousProcessingTimeTrigger:
        """Create the trigger.

        :param interval: the interval
        :returns: a new trigger
        """
        return ContinuousProcessingTimeTrigger(interval)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the next interval."""
        if ctx.get_partitioned_state(self._descriptor).get() is None:
            now = ctx.get_current_processing_time()
            self._next(now - now % self.interval, window, ctx)
        return CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the end of an interval."""
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
        """Delete the timer and the state of the window."""
        state = ctx.get_partitioned_state(self._descriptor)
        at = state.get()
        if at is not None:
            ctx.delete_processing_time_timer(at)
            state.clear()


def _add(a: int, b: int) -> int:
    return a + b


class CountTrigger(_QuietTrigger):
    """A trigger that fires when a number of elements was added since it fired last.

    :param window_size: the number of elements
    """

    def __init__(self, window_size: int) -> None:
        if window_size < 1:
            raise StreamProgramError(f"The count of a trigger is {window_size}: it must be at least 1.")
        self.window_size = window_size
        self._descriptor = ReducingStateDescriptor("count", _add)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Create the trigger.

        :param window_size: the number of elements
        :returns: a new trigger
        """
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Count the element, and fire when the number is reached."""
        state = ctx.get_partitioned_state(self._descriptor)
        state.add(1)
        if state.get() < self.window_size:
            return CONTINUE
        state.clear()
        return FIRE

    def can_merge(self) -> bool:
        """Return True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Add the counts of the merged windows."""
        ctx.merge_partitioned_state(self._descriptor)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Drop the count."""
        ctx.get_partitioned_state(self._descriptor).clear()


class PurgingTrigger(Trigger[Any, Any]):
    """A trigger that drops the contents of a window whenever a nested trigger fires.

    :param nested_trigger: the nested trigger
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Create the trigger.

        :param nested_trigger: the nested trigger
        :returns: a new trigger
        """
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the nested trigger, and purge if it fires."""
        return _add_purge(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the nested trigger, and purge if it fires."""
        return _add_purge(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Ask the nested trigger, and purge if it fires."""
        return _add_purge(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        """Return True if the nested trigger can merge."""
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Notify the nested trigger."""
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Clear the nested trigger."""
        self.nested_trigger.clear(window, ctx)


def _add_purge(result: TriggerResult) -> TriggerResult:
    if result is CONTINUE:
        return CONTINUE
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


class NeverTrigger(_QuietTrigger):
    """A trigger that never fires."""

    def can_merge(self) -> bool:
        """Return True."""
        return True
