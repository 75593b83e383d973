"""The contexts of assigners, triggers and window functions."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.operators.keyed import KeyedOperator
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.state.access import KeyedStates, state_of
from airflow_pipelines.streams.state.description import TRIGGER_PREFIX
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.state.entries import EVENT_TIME, PROCESSING_TIME, Entry
from airflow_pipelines.streams.state.plain import Aggregating, Reducing
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.state.views import ListState
from airflow_pipelines.streams.window_functions import ProcessAllWindowFunction, ProcessWindowFunction
from airflow_pipelines.streams.windows.assigners import WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The context of an assigner.

    :param clock: the clock of the step
    :param runtime: the runtime context of the operator
    """

    def __init__(self, clock: StepClock, runtime: RuntimeContext) -> None:
        self._clock = clock
        self._runtime = runtime

    def get_current_processing_time(self) -> int:
        """Return the processing time."""
        return self._clock.now

    def get_runtime_context(self) -> RuntimeContext:
        """Return the runtime context of the operator."""
        return self._runtime


class WindowTriggerContext(Trigger.TriggerContext):
    """The context of a trigger.

    :param operator: the window operator
    """

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self._timers = operator.timers
        self._states: dict[str, tuple[StateDescriptor, TimeToLive | None, str, Any]] = {}
        self.window: Any = None

    def of(self, entry: Entry, window: Any) -> WindowTriggerContext:
        """Bind the context to a key and a window.

        :param entry: the entry of the key
        :param window: the window
        :returns: this context
        """
        self._operator.store.entry = entry
        self.window = window
        return self

    def get_current_processing_time(self) -> int:
        """Return the processing time."""
        return self._operator.context.clock.now

    def get_metric_group(self) -> MetricGroup:
        """Return the metric group of the operator."""
        return self._operator.context.subtask.metrics

    def get_current_watermark(self) -> int:
        """Return the current watermark."""
        return self._operator.current_watermark

    def register_processing_time_timer(self, time: int) -> None:
        """Register a processing-time timer."""
        self._timers.register(PROCESSING_TIME, time, self.window)

    def register_event_time_timer(self, time: int) -> None:
        """Register an event-time timer."""
        self._timers.register(EVENT_TIME, time, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        """Delete a processing-time timer."""
        self._timers.delete(PROCESSING_TIME, time, self.window)

    def delete_event_time_timer(self, time: int) -> None:
        """Delete an event-time timer."""
        self._timers.delete(EVENT_TIME, time, self.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        """Return a state of the window."""
        name = state_descriptor.name
        known = self._states.get(name)
        if known is None or known[0] is not state_descriptor or known[1] is not state_descriptor.ttl:
            state = self.state(state_descriptor, self.window)
            known = self._states[name] = (state_descriptor, state_descriptor.ttl, TRIGGER_PREFIX + name, state)
        return known[3].at((known[2], self.window))

    def state(self, descriptor: StateDescriptor, window: Any) -> Any:
        """Return a state of any window of the key.

        :param descriptor: the descriptor of the state
        :param window: the window
        :returns: the state
        """
        slot = (TRIGGER_PREFIX + descriptor.name, window)
        return state_of(self._operator.store, self._operator.context.clock, descriptor, slot)


class MergeContext(Trigger.OnMergeContext, WindowTriggerContext):
    """The context of a trigger while windows are merged."""

    def of(self, entry: Entry, window: Any, merged: list[Any] | None = None) -> MergeContext:
        """Bind the context to a key and a merged window.

        :param entry: the entry of the key
        :param window: the resulting window
        :param merged: the windows that become part of it
        :returns: this context
        """
        super().of(entry, window)
        self._merged = merged or []
        return self

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Merge the state of the merged windows into that of the result."""
        result = self.state(state_descriptor, self.window)
        values = self._operator.store.entry.values
        for window in self._merged:
            if (TRIGGER_PREFIX + state_descriptor.name, window) not in values:
                continue
            other = self.state(state_descriptor, window)
            match result:
                case ListState():
                    result.add_all(other.get())
                case Reducing() | Aggregating():
                    result.merge(other)
                case _:
                    raise StreamProgramError(
                        f"The state {state_descriptor.name!r} of a trigger cannot be merged: use a list, a reducing or an"
                        f" aggregating state."
                    )
            other.clear()


class EvaluationContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of a window function.

    :param operator: the window operator
    :param merging: True if its windows merge
    """

    def __init__(self, operator: KeyedOperator, merging: bool) -> None:
        self._operator = operator
        self._merging = merging
        self._window: Any = None
        self._global = KeyedStates(operator.store, operator.context.clock, operator.name)

    def of(self, window: Any) -> EvaluationContext:
        """Bind the context to a window.

        :param window: the window
        :returns: this context
        """
        self._window = window
        return self

    def window(self) -> Any:
        """Return the window."""
        return self._window

    def current_processing_time(self) -> int:
        """Return the processing time."""
        return self._operator.context.clock.now

    def current_watermark(self) -> int:
        """Return the current watermark."""
        return self._operator.current_watermark

    def window_state(self) -> KeyedStates:
        """Return the state of this key in this window. Refused if windows merge."""
        if self._merging:
            raise StreamProgramError(
                "State of a window is not possible where windows merge, as sessions do. Use global_state(), which belongs to"
                " the key."
            )
        return KeyedStates(self._operator.store, self._operator.context.clock, self._operator.name, self._window)

    def global_state(self) -> KeyedStates:
        """Return the state of this key in all windows."""
        return self._global
