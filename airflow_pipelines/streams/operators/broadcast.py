"""Functions on a stream together with state that was broadcast to all its tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec, Timestamps
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.operators.keyed import KeyedOperator, KeyedTimers
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.process_functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction, TimerService
from airflow_pipelines.streams.state.access import state_of
from airflow_pipelines.streams.state.description import BROADCAST_PREFIX, StateDescription, describe_state
from airflow_pipelines.streams.state.descriptors import MapStateDescriptor, StateDescriptor
from airflow_pipelines.streams.state.entries import NO_ENTRY, Entry
from airflow_pipelines.streams.state.views import MapState
from airflow_pipelines.streams.timers import TIME_DOMAINS, TimeDomain


class BroadcastState(MapState):
    """A map that is the same in all tasks, because all get the same elements.

    :param kept: the map
    """

    def __init__(self, kept: dict[Any, Any]) -> None:
        self._kept = kept

    def get(self, key: Any) -> Any:
        """Return a value of the map."""
        return self._kept.get(key)

    def put(self, key: Any, value: Any) -> None:
        """Set a value."""
        self._kept[key] = value

    def remove(self, key: Any) -> None:
        """Remove a value."""
        self._kept.pop(key, None)

    def contains(self, key: Any) -> bool:
        """Return True if there is a value for the key."""
        return key in self._kept

    def clear(self) -> None:
        """Remove all values."""
        self._kept.clear()

    def _items(self) -> list[tuple[Any, Any]]:
        return list(self._kept.items())


class ReadOnlyBroadcastState(BroadcastState):
    """A read-only broadcast state, for elements of the other side, which not all tasks get."""

    def _refuse(self) -> NoReturn:
        raise StreamProgramError(
            "Broadcast state can be changed in process_broadcast_element only: every task gets those elements, so that all have"
            " the same state."
        )

    def put(self, key: Any, value: Any) -> None:
        """Refuse the change."""
        self._refuse()

    def remove(self, key: Any) -> None:
        """Refuse the change."""
        self._refuse()

    def clear(self) -> None:
        """Refuse the change."""
        self._refuse()


@dataclass(frozen=True)
class Broadcast(OperatorSpec):
    """An operator that calls a function on a stream without keys (port 0) and on broadcast elements (port 1).

    :param function: the function object with the methods
    :param descriptors: the broadcast states
    """

    function: Function
    descriptors: tuple[MapStateDescriptor, ...]

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Broadcast(own_copy(self.function), self.descriptors)

    def own_states(self) -> Sequence[StateDescription]:
        """Return the broadcast states."""
        return _describe_states(self.descriptors)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


@dataclass(frozen=True)
class KeyedBroadcast(OperatorSpec):
    """An operator that calls a function on a stream with keys (port 0) and on broadcast elements (port 1).

    :param function: the function object with the methods, and perhaps ``on_timer``
    :param descriptors: the broadcast states
    """

    function: Function
    descriptors: tuple[MapStateDescriptor, ...]
    is_keyed = True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _KeyedBroadcast(own_copy(self.function), self.descriptors)

    def own_states(self) -> Sequence[StateDescription]:
        """Return the broadcast states."""
        return _describe_states(self.descriptors)

    def timestamps(self) -> Timestamps:
        """Return that elements and timers determine the timestamps."""
        return Timestamps.OWN

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


def _describe_states(descriptors: tuple[MapStateDescriptor, ...]) -> tuple[StateDescription, ...]:
    """Return descriptions of broadcast states. A prefix distinguishes their names from those of keyed states."""
    each = map(describe_state, descriptors)
    return tuple(replace(state, name=BROADCAST_PREFIX + state.name, kind="broadcast") for state in each)


class _States:
    """The broadcast states of one task."""

    def __init__(self, descriptors: tuple[MapStateDescriptor, ...], kept: dict[str, dict[Any, Any]] | None) -> None:
        self.kept: dict[str, dict[Any, Any]] = {descriptor.name: {} for descriptor in descriptors}
        self.kept.update(kept or {})

    def get(self, descriptor: Any, kind: type[BroadcastState]) -> BroadcastState:
        name = descriptor.name if isinstance(descriptor, StateDescriptor) else descriptor
        if name not in self.kept:
            raise StreamProgramError(
                f"There is no broadcast state {name!r}: the stream was broadcast with {sorted(self.kept)}. Give its descriptor"
                f" to broadcast(...)."
            )
        return kind(self.kept[name])


class _BroadcastContext:
    """The context that all methods share."""

    def __init__(self, operator: Operator, states: _States, kind: type[BroadcastState]) -> None:
        self.element_timestamp: int | None = None
        self._operator = operator
        self._states = states
        self._kind = kind

    def timestamp(self) -> int | None:
        return self.element_timestamp

    def current_processing_time(self) -> int:
        return self._operator.context.clock.now

    def current_watermark(self) -> int:
        return self._operator.current_watermark

    def get_broadcast_state(self, state_descriptor: Any) -> Any:
        return self._states.get(state_descriptor, self._kind)


class _Context(_BroadcastContext, BroadcastProcessFunction.Context, BroadcastProcessFunction.ReadOnlyContext):
    pass


class _KeyedContext(_BroadcastContext, KeyedBroadcastProcessFunction.Context):
    def __init__(self, operator: KeyedOperator, states: _States) -> None:
        super().__init__(operator, states, BroadcastState)
        self._keyed = operator

    def apply_to_keyed_state(self, state_descriptor: Any, function: Callable[[Any, Any], None]) -> None:
        store = self._keyed.store
        state = state_of(store, self._operator.context.clock, state_descriptor, state_descriptor.name)
        for entry in store.entries():
            if state_descriptor.name in entry.values:
                store.entry = entry
                function(entry.key, state)
        store.entry = NO_ENTRY


class _ReadOnlyKeyedContext(_BroadcastContext, KeyedBroadcastProcessFunction.OnTimerContext):
    def __init__(self, operator: KeyedOperator, states: _States) -> None:
        super().__init__(operator, states, ReadOnlyBroadcastState)
        self.domain = TimeDomain.EVENT_TIME
        self._keyed = operator
        self._timers = KeyedTimers(operator)

    def timer_service(self) -> TimerService:
        return self._timers

    def get_current_key(self) -> Any:
        return self._keyed.store.entry.key

    def time_domain(self) -> TimeDomain:
        return self.domain


def _rows(batch: Batch) -> Iterator[tuple[Any, int | None]]:
    return zip(batch.values, batch.timestamps, strict=True)


class _Broadcast(Operator):
    def __init__(self, function: Function, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._function: Any = function
        self._descriptors = descriptors

    def open(self, state: Any | None) -> None:
        self._states = _States(self._descriptors, state)
        self._collector = Collector(self.context, self.output)
        self._element = _Context(self, self._states, ReadOnlyBroadcastState)
        self._broadcast = _Context(self, self._states, BroadcastState)
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        call = self._function.process_broadcast_element if port else self._function.process_element
        context = self._broadcast if port else self._element
        value = None
        try:
            for value, timestamp in _rows(batch):
                context.element_timestamp = timestamp
                results = call(value, context)
                if results is not None:
                    self._collector.add_all(results, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        self._collector.flush()

    def snapshot(self) -> Any:
        return self._states.kept

    def close(self) -> None:
        self._life.close()


class _KeyedBroadcast(KeyedOperator):
    def __init__(self, function: Function, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._function: Any = function
        self._descriptors = descriptors

    def open(self, state: Any | None) -> None:
        super().open(state)
        self._states = _States(self._descriptors, state)
        self._element = _ReadOnlyKeyedContext(self, self._states)
        self._broadcast = _KeyedContext(self, self._states)
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        value = None
        try:
            if port:
                for value, timestamp in _rows(batch):
                    self._broadcast.element_timestamp = timestamp
                    self._take(self._function.process_broadcast_element(value, self._broadcast), timestamp)
            else:
                store = self.store
                for (value, timestamp), key in zip(_rows(batch), batch.keys or (), strict=True):
                    try:
                        store.entry = store.hot[key]
                    except TypeError:  # a key without a hash
                        store.entry = store.find(key)
                    self._element.element_timestamp = timestamp
                    self._take(self._function.process_element(value, self._element), timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        self.store.entry = NO_ENTRY
        self.collector.flush()

    def _take(self, results: Any, timestamp: int | None) -> None:
        if results is not None:
            self.collector.add_all(results, timestamp)

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        on_timer = getattr(self._function, "on_timer", None)
        if on_timer is not None:
            self._element.element_timestamp = timestamp
            self._element.domain = TIME_DOMAINS[domain]
            self._take(on_timer(timestamp, self._element), timestamp)

    def snapshot(self) -> Any:
        return self._states.kept

    def close(self) -> None:
        self._life.close()
