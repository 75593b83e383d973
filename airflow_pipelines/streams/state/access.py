"""Access to states by their descriptors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError
from airflow_pipelines.streams.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from airflow_pipelines.streams.state.expiring import ExpiringList, ExpiringMap, ExpiringValue, TtlSweeper
from airflow_pipelines.streams.state.plain import Aggregating, PlainList, PlainMap, PlainValue, Reducing
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.state.ttl import TimeToLive
from airflow_pipelines.streams.state.views import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    SlottedValue,
    State,
    ValueState,
)


def state_of(store: KeyedStore, clock: StepClock, descriptor: StateDescriptor, slot: Any) -> State:
    """Return the view for a descriptor.

    :param store: the store of the state
    :param clock: the clock of the step
    :param descriptor: the descriptor of the state
    :param slot: the slot under which it is stored in each entry
    :returns: the view
    :raises StreamProgramError: if the descriptor does not describe a state
    """
    make = _MAKERS.get(type(descriptor))
    if make is None:
        kind = next((kind for kind in _MAKERS if isinstance(descriptor, kind)), None)
        if kind is None:
            raise StreamProgramError(f"{descriptor!r} does not describe a state: use a ValueStateDescriptor or one of its kind.")
        make = _MAKERS[kind]
    state: State = make(store, clock, descriptor, slot)
    return state


def _value(store: KeyedStore, clock: StepClock, descriptor: StateDescriptor, slot: Any) -> SlottedValue:
    if descriptor.ttl is None:
        return PlainValue(store, slot)
    return ExpiringValue(store, slot, descriptor.ttl, clock)


def _list(store: KeyedStore, clock: StepClock, descriptor: StateDescriptor, slot: Any) -> ListState:
    return PlainList(store, slot) if descriptor.ttl is None else ExpiringList(store, slot, descriptor.ttl, clock)


def _map(store: KeyedStore, clock: StepClock, descriptor: StateDescriptor, slot: Any) -> MapState:
    return PlainMap(store, slot) if descriptor.ttl is None else ExpiringMap(store, slot, descriptor.ttl, clock)


def _reducing(store: KeyedStore, clock: StepClock, descriptor: Any, slot: Any) -> ReducingState:
    return Reducing(_value(store, clock, descriptor, slot), descriptor)


def _aggregating(store: KeyedStore, clock: StepClock, descriptor: Any, slot: Any) -> AggregatingState:
    return Aggregating(_value(store, clock, descriptor, slot), descriptor)


_MAKERS: Mapping[type[StateDescriptor], Callable[[KeyedStore, StepClock, Any, Any], State]] = {
    ValueStateDescriptor: _value,
    ListStateDescriptor: _list,
    MapStateDescriptor: _map,
    ReducingStateDescriptor: _reducing,
    AggregatingStateDescriptor: _aggregating,
}


class KeyedStates:
    """The states of the current key, by their descriptors.

    :param store: the store of the states; None if there are no keys
    :param clock: the clock of the step
    :param operator: the name of the operator, for messages
    :param namespace: the namespace of the states, None for the key alone
    """

    def __init__(self, store: KeyedStore | None, clock: StepClock, operator: str, namespace: Any = None) -> None:
        self._store = store
        self._clock = clock
        self._operator = operator
        self._namespace = namespace
        self._kinds: dict[str, type[StateDescriptor]] = {}
        self._last: dict[str, tuple[StateDescriptor, TimeToLive | None, State]] = {}

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState:
        """Return a state with one value.

        :param state_descriptor: its descriptor
        :returns: the state
        """
        return self._get(state_descriptor, ValueStateDescriptor)  # type: ignore[return-value]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState:
        """Return a state with a list.

        :param state_descriptor: its descriptor
        :returns: the state
        """
        return self._get(state_descriptor, ListStateDescriptor)  # type: ignore[return-value]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState:
        """Return a state with a map.

        :param state_descriptor: its descriptor
        :returns: the state
        """
        return self._get(state_descriptor, MapStateDescriptor)  # type: ignore[return-value]

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState:
        """Return a state with a value that a function combines with others.

        :param state_descriptor: its descriptor, with the function
        :returns: the state
        """
        return self._get(state_descriptor, ReducingStateDescriptor)  # type: ignore[return-value]

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState:
        """Return a state with an accumulator.

        :param state_descriptor: its descriptor, with the functions
        :returns: the state
        """
        return self._get(state_descriptor, AggregatingStateDescriptor)  # type: ignore[return-value]

    def _get(self, descriptor: StateDescriptor, expected: type[StateDescriptor]) -> State:
        if isinstance(descriptor, expected):
            last = self._last.get(descriptor.name)
            if last is not None and last[0] is descriptor and last[1] is descriptor.ttl:
                return last[2]  # some functions ask for the same state again for each element
        else:
            raise StreamProgramError(f"A {expected.__name__} is needed here, and {descriptor!r} is none.")
        if self._store is None:
            raise NoKeyError(
                f"The operator {self._operator!r} asks for the state {descriptor.name!r}, which is kept by key, and its stream"
                f" has no keys."
                " Put key_by(...) before it."
            )
        known = self._kinds.setdefault(descriptor.name, type(descriptor))
        if known is not type(descriptor):
            raise StreamProgramError(
                f"The operator {self._operator!r} has two states named {descriptor.name!r}: a {known.__name__} and a"
                f" {type(descriptor).__name__}. Give one of them another name."
            )
        if descriptor.ttl is not None:
            self._store.sweep_with(descriptor.name, TtlSweeper(descriptor.ttl, self._clock))
        self._store.declared[descriptor.name] = descriptor
        slot = descriptor.name if self._namespace is None else (descriptor.name, self._namespace)
        state = state_of(self._store, self._clock, descriptor, slot)
        self._last[descriptor.name] = (descriptor, descriptor.ttl, state)
        return state
