"""The window operator: it assigns elements to windows and evaluates a window when its trigger fires."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import AggregateFunction, Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec, Timestamps
from airflow_pipelines.streams.operators.keyed import KeyedOperator
from airflow_pipelines.streams.operators.life import FunctionLife, runtime_context
from airflow_pipelines.streams.operators.window_contents import Aggregated, AllElements, Contents, Reduced
from airflow_pipelines.streams.operators.window_contexts import (
    AssignerContext,
    EvaluationContext,
    MergeContext,
    WindowTriggerContext,
)
from airflow_pipelines.streams.state.description import TRIGGER_PREFIX, StateDescription, describe_state
from airflow_pipelines.streams.state.entries import EVENT_TIME, NO_ENTRY, PROCESSING_TIME, Entry
from airflow_pipelines.streams.values import ATOMIC, isolate
from airflow_pipelines.streams.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from airflow_pipelines.streams.windows.assigners import MergingWindowAssigner, WindowAssigner
from airflow_pipelines.streams.windows.trigger import Trigger, TriggerResult
from airflow_pipelines.streams.windows.trigger_states import trigger_states
from airflow_pipelines.streams.windows.triggers import CONTINUE, FIRE, EventTimeTrigger, ProcessingTimeTrigger
from airflow_pipelines.streams.windows.window import MergedWindows

_CONTENTS = "window/contents"
_MERGED = "window/merged"
_NO_CONTENTS = object()
_NEVER_PASSED = MIN_TIMESTAMP - 1
LATE_DROPPED = "numLateRecordsDropped"


@dataclass(frozen=True)
class Windowed(OperatorSpec):
    """An operator that evaluates windows.

    :param assigner: the assigner of elements to windows
    :param trigger: the trigger, which decides when a window is evaluated
    :param lateness: the number of ms after its end for which a window accepts elements
    :param late_tag: the name of the side output for late elements that no window accepts; None drops them
    :param combine: the function that combines the elements into one value; None keeps all elements
    :param function: the function that computes results; None emits the contents of the window
    """

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    lateness: int = 0
    late_tag: str | None = None
    combine: Function | None = None
    function: Function | None = None
    is_keyed = True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Windows(self)

    @property
    def needs_timestamps(self) -> bool:
        """True if the windows are in event time."""
        return self.assigner.is_event_time()

    def timestamps(self) -> Timestamps:
        """Return that the windows determine the timestamps."""
        return Timestamps.OWN

    def user_objects(self) -> Mapping[str, Any]:
        """Return all objects that the program has given."""
        return {"assigner": self.assigner, "trigger": self.trigger, "combine": self.combine, "function": self.function}

    def own_states(self) -> Sequence[StateDescription]:
        """Return the states for the contents of windows, for merged windows, and for the trigger.

        Merging windows store their contents in another form than others.
        """
        merges = isinstance(self.assigner, MergingWindowAssigner)
        contents = StateDescription(_CONTENTS, _contents(self.combine).kind, "windows that merge" if merges else "")
        merged = [StateDescription(_MERGED, "map")] if merges else []
        of_trigger = [describe_state(each) for each in trigger_states(self.trigger)]
        return [contents, *merged, *[replace(each, name=TRIGGER_PREFIX + each.name) for each in of_trigger]]


def _contents(combine: Function | None) -> Contents:
    if combine is None:
        return AllElements()
    return Aggregated(combine) if isinstance(combine, AggregateFunction) else Reduced(combine)


class _Windows(KeyedOperator):
    def __init__(self, spec: Windowed) -> None:
        super().__init__()
        self._assigner = copy.deepcopy(spec.assigner)
        self._trigger = copy.deepcopy(spec.trigger)
        self._lateness = spec.lateness
        self._late_tag = spec.late_tag
        combine = None if spec.combine is None else own_copy(spec.combine)
        self._contents = _contents(combine)
        self._add_to_contents = self._contents.adder()
        self._function: Any = None if spec.function is None else own_copy(spec.function)
        self._lives = [FunctionLife(each) for each in (combine, self._function) if each is not None]
        self._is_event_time = self._assigner.is_event_time()
        self._merging = self._assigner if isinstance(self._assigner, MergingWindowAssigner) else None
        # These triggers wait for the end of a window, which is known without asking them.
        self._knows_trigger = type(self._trigger) in (EventTimeTrigger, ProcessingTimeTrigger)
        self._trigger_domain = EVENT_TIME if type(self._trigger) is EventTimeTrigger else PROCESSING_TIME
        # If the trigger's timer fires at the end of the window, the window needs no cleanup timer of its own.
        of_trigger = EventTimeTrigger if self._is_event_time else ProcessingTimeTrigger
        self._has_own_timer = type(self._trigger) is not of_trigger or (self._is_event_time and self._lateness > 0)
        self._domain = EVENT_TIME if self._is_event_time else PROCESSING_TIME
        self._is_told_of_end = isinstance(self._function, ProcessWindowFunction | ProcessAllWindowFunction)

    def open(self, state: Any | None) -> None:
        super().open(state)
        self._assigner_context = AssignerContext(self.context.clock, runtime_context(self.context))
        self._trigger_context = WindowTriggerContext(self)
        self._merge_context = MergeContext(self)
        self._evaluation_context = EvaluationContext(self, self._merging is not None)
        self._evaluate = self._evaluation()
        self._dropped = self.context.subtask.metrics.counter(LATE_DROPPED)
        for life in self._lives:
            life.open(self.context)

    def _evaluation(self) -> Callable[[Entry, Any, list[Any]], Any]:
        function, context = self._function, self._evaluation_context
        if function is None:
            return lambda entry, window, elements: elements  # noqa: ARG005
        if isinstance(function, WindowFunction):
            return lambda entry, window, elements: function.apply(entry.key, window, elements)
        if isinstance(function, AllWindowFunction):
            return lambda entry, window, elements: function.apply(window, elements)  # noqa: ARG005
        if isinstance(function, ProcessAllWindowFunction):
            return lambda entry, window, elements: function.process(context.of(window), elements)  # noqa: ARG005
        return lambda entry, window, elements: function.process(entry.key, context.of(window), elements)

    def process(self, batch: Batch, port: int) -> None:
        store = self.store
        hot = store.hot
        take = self._take if self._merging is None else self._take_merging
        value = None
        try:
            if self._is_event_time and None in batch.timestamps:
                value = batch.values[batch.timestamps.index(None)]
                self._refuse_without_timestamp()
            for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys or (), strict=True):
                try:
                    entry = hot[key]
                except TypeError:  # a key without a hash
                    entry = store.find(key)
                store.entry = entry
                take(entry, value, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        store.entry = NO_ENTRY
        self.collector.flush()

    def _refuse_without_timestamp(self) -> None:
        raise StreamProgramError(
            f"The event-time window {self.name!r} got an element without a timestamp. Give the stream timestamps before key_by():"
            " assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(...))."
        )

    def _take(self, entry: Entry, value: Any, timestamp: int | None) -> None:
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)  # type: ignore[arg-type]
        watermark = self.current_watermark
        passed = watermark - self._lateness if self._is_event_time else _NEVER_PASSED
        own = value
        taken = False
        for window in windows:
            end = window.max_timestamp()
            if end <= passed:
                continue
            # Windows may change their contents, so each gets its own copy.
            if taken and value.__class__ not in ATOMIC:
                own = isolate(value)
            taken = True
            is_new = not self._add(entry, window, own)
            if not (self._knows_trigger and end > watermark):
                self._ask_trigger(entry, window, window, value, timestamp)
                self._register_cleanup(window)
            elif is_new:
                self.timers.register(self._trigger_domain, end, window)
                self._register_cleanup(window)
        if not taken:
            self._late(value, timestamp)

    def _add(self, entry: Entry, kept: Any, value: Any) -> bool:
        """Add an element to the contents of a window.

        :param entry: the entry of the key
        :param kept: the window under which the contents are stored
        :param value: the element
        :returns: True if the window had contents before
        """
        if not entry.is_changed:
            entry.note_change()
        contents = entry.values.get(_CONTENTS)
        if contents is None:
            contents = entry.values[_CONTENTS] = {}
        earlier = contents.get(kept, _NO_CONTENTS)
        if earlier is _NO_CONTENTS:
            contents[kept] = self._contents.first(value)
            return False
        contents[kept] = self._add_to_contents(earlier, value)
        return True

    def _take_merging(self, entry: Entry, value: Any, timestamp: int | None) -> None:
        windows = self._assigner.assign_windows(value, timestamp, self._assigner_context)  # type: ignore[arg-type]
        watermark = self.current_watermark
        taken = False
        for assigned in windows:
            merged = entry.values.get(_MERGED)
            if merged.__class__ is not MergedWindows:  # there are none, or an earlier release has stored them
                merged = entry.values[_MERGED] = MergedWindows.of(merged or {})
            if not entry.is_changed:
                entry.note_change()
            window = self._add_window(entry, merged, assigned)
            end = window.max_timestamp()
            if self._is_event_time and end + self._lateness <= watermark:
                if merged[window] != window:
                    self._refuse_merge_into_the_past(window)
                del merged[window]
                if not merged:
                    del entry.values[_MERGED]
                continue
            taken = True
            kept = merged[window]
            is_new = not self._add(entry, kept, value)
            if not (self._knows_trigger and end > watermark):
                self._ask_trigger(entry, window, kept, value, timestamp)
            elif is_new:
                self.timers.register(self._trigger_domain, end, window)
            if window in merged:
                self._register_cleanup(window)
        if not taken:
            self._late(value, timestamp)

    def _refuse_merge_into_the_past(self, window: Any) -> None:
        raise StreamProgramError(
            f"{type(self._assigner).__name__}.merge_windows() made {window!r} of windows that go on, and event time has passed its"
            f" end: it is {self.current_watermark}. What windows merge into must not end before them."
        )

    def _add_window(self, entry: Entry, merged: MergedWindows[Any], new: Any) -> Any:
        """Add a window to those of a key, and return it, or the window into which it was merged."""
        if new in merged:
            return new
        assert self._merging is not None  # noqa: S101 (only called where it is)
        candidates = self._merging.merge_candidates(merged, new)
        result = None
        if candidates:
            recorder = _Merges()
            self._merging.merge_windows([*candidates, new], recorder)
            for parts, becomes in recorder.merges:
                old = [part for part in parts if part in merged]
                if old and new in parts:
                    result = becomes
                    self._merge(entry, merged, old, becomes)
                elif old and becomes not in merged:
                    self._merge(entry, merged, old, becomes)
        if result is None:
            merged.add(new, new)
            result = new
        return result

    def _merge(self, entry: Entry, merged: MergedWindows[Any], old: list[Any], result: Any) -> None:
        """Merge some windows of a key, and perhaps the new one, into one."""
        kept, *others = [merged.pop(part) for part in old]
        merged.add(result, kept)
        gone = [part for part in old if part != result]
        if not gone:
            return
        for other in others:
            self._merge_contents(entry.values.get(_CONTENTS, {}), kept, other)
        self._trigger.on_merge(result, self._merge_context.of(entry, result, gone))
        for part in gone:
            self._trigger.clear(part, self._trigger_context.of(entry, part))
            self._delete_cleanup(part)

    def _merge_contents(self, contents: dict[Any, Any], kept: Any, other: Any) -> None:
        if other in contents:
            moved = contents.pop(other)
            contents[kept] = self._contents.merge(contents[kept], moved) if kept in contents else moved

    def _ask_trigger(self, entry: Entry, window: Any, kept: Any, value: Any, timestamp: int | None) -> None:
        context = self._trigger_context.of(entry, window)
        result = self._trigger.on_element(value, timestamp, window, context)  # type: ignore[arg-type]
        if result is not CONTINUE:
            self._follow(result, entry, window, kept)

    def _follow(self, result: TriggerResult, entry: Entry, window: Any, kept: Any) -> None:
        fires, purges = result.value
        contents = entry.values.get(_CONTENTS)
        if fires and contents is not None and kept in contents:
            elements = self._contents.elements(contents[kept])
            if not entry.is_changed:
                entry.note_change()
            results = self._evaluate(entry, window, elements)
            if results is not None:
                self.collector.add_all(results, window.max_timestamp())
        if purges:
            self._drop_contents(entry, kept)

    def _drop_contents(self, entry: Entry, kept: Any) -> None:
        contents = entry.values.get(_CONTENTS)
        if contents is not None and kept in contents:
            del contents[kept]
            if not contents:
                del entry.values[_CONTENTS]
            if not entry.is_changed:
                entry.note_change()

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        window = namespace
        kept = window
        if self._merging is not None:
            kept = entry.values.get(_MERGED, {}).get(window)
            if kept is None:
                return  # the window became part of another one
        if not self._has_own_timer and domain == self._domain and timestamp == window.max_timestamp():
            self._follow(FIRE, entry, window, kept)
            self._remove_window(entry, window, kept)
            return
        context = self._trigger_context.of(entry, window)
        if domain == EVENT_TIME:
            result = self._trigger.on_event_time(timestamp, window, context)
        else:
            result = self._trigger.on_processing_time(timestamp, window, context)
        if result is not CONTINUE:
            self._follow(result, entry, window, kept)
        if (domain == EVENT_TIME) == self._is_event_time and timestamp == self._cleanup_time(window):
            self._end_window(entry, window, kept)

    def _end_window(self, entry: Entry, window: Any, kept: Any) -> None:
        self._drop_contents(entry, kept)
        self._trigger.clear(window, self._trigger_context.of(entry, window))
        self._remove_window(entry, window, kept)

    def _remove_window(self, entry: Entry, window: Any, kept: Any) -> None:
        """Remove all state of a window but that of its trigger."""
        self._drop_contents(entry, kept)
        if self._is_told_of_end:
            self._function.clear(self._evaluation_context.of(window))
        merged = entry.values.get(_MERGED)
        if merged is not None and window in merged:
            del merged[window]
            if not merged:
                del entry.values[_MERGED]
        for slot in [slot for slot in entry.values if slot.__class__ is tuple and slot[1] == window]:
            del entry.values[slot]
        if not entry.is_changed:
            entry.note_change()

    def _cleanup_time(self, window: Any) -> int:
        end: int = window.max_timestamp()
        if self._is_event_time:
            end += self._lateness
        return min(end, MAX_TIMESTAMP)

    def _register_cleanup(self, window: Any) -> None:
        if not self._has_own_timer:
            return
        time = self._cleanup_time(window)
        if time < MAX_TIMESTAMP:
            self.timers.register(EVENT_TIME if self._is_event_time else PROCESSING_TIME, time, window)

    def _delete_cleanup(self, window: Any) -> None:
        if not self._has_own_timer:
            return
        time = self._cleanup_time(window)
        if time < MAX_TIMESTAMP:
            self.timers.delete(EVENT_TIME if self._is_event_time else PROCESSING_TIME, time, window)

    def _late(self, value: Any, timestamp: int | None) -> None:
        if not self._is_event_time or timestamp is None or timestamp + self._lateness > self.current_watermark:
            return
        if self._late_tag is None:
            self._dropped.inc()
        else:
            self.collector.add_side(self._late_tag, value, timestamp)

    def close(self) -> None:
        for life in self._lives:
            life.close()


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    def __init__(self) -> None:
        self.merges: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.merges.append((list(to_be_merged), merge_result))
