"""Process functions: on streams with keys and without, on one stream and on two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec, Timestamps
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.operators.keyed import KeyedOperator, KeyedTimers, TimeOnly
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.process_functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    TimerService,
)
from airflow_pipelines.streams.state.entries import NO_ENTRY, Entry
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.timers import TIME_DOMAINS, TimeDomain


@dataclass(frozen=True)
class Process(OperatorSpec):
    """An operator that calls a process function on a stream without keys.

    :param function: the function object with the methods
    :param methods: the method for each input
    """

    function: Function
    methods: tuple[str, ...] = ("process_element",)

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Process(own_copy(self.function), self.methods)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


@dataclass(frozen=True)
class KeyedProcess(OperatorSpec):
    """An operator that calls a process function on a stream with keys.

    :param function: the function object with the methods, and perhaps ``on_timer``
    :param methods: the method for each input
    """

    function: Function
    methods: tuple[str, ...] = ("process_element",)
    is_keyed = True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _KeyedProcess(own_copy(self.function), self.methods)

    def timestamps(self) -> Timestamps:
        """Return that elements and timers determine the timestamps."""
        return Timestamps.OWN

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


class ElementContext(ProcessFunction.Context, CoProcessFunction.Context):
    """The context of a process function on a stream without keys.

    :param timers: the service for the time
    """

    def __init__(self, timers: TimerService) -> None:
        self.element_timestamp: int | None = None
        self._timers = timers

    def timestamp(self) -> int | None:
        """Return the event time of the element."""
        return self.element_timestamp

    def timer_service(self) -> TimerService:
        """Return the service for the time."""
        return self._timers


class KeyedElementContext(
    KeyedProcessFunction.Context,
    KeyedProcessFunction.OnTimerContext,
    KeyedCoProcessFunction.Context,
    KeyedCoProcessFunction.OnTimerContext,
    ProcessFunction.Context,
    CoProcessFunction.Context,
):
    """The context of a process function on a stream with keys.

    :param store: the store, which knows the current key
    :param timers: the service for the time and for timers
    """

    def __init__(self, store: KeyedStore, timers: TimerService) -> None:
        self.element_timestamp: int | None = None
        self.domain = TimeDomain.EVENT_TIME
        self._store = store
        self._timers = timers

    def timestamp(self) -> int | None:
        """Return the event time of the element, or of the timer."""
        return self.element_timestamp

    def timer_service(self) -> TimerService:
        """Return the service for the time and for timers."""
        return self._timers

    def get_current_key(self) -> Any:
        """Return the current key."""
        return self._store.entry.key

    def time_domain(self) -> TimeDomain:
        """Return the time domain of the timer."""
        return self.domain


class _Process(Operator):
    def __init__(self, function: Function, methods: tuple[str, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._calls: list[Callable[[Any, Any], Any]] = [getattr(function, method) for method in methods]

    def open(self, state: Any | None) -> None:
        self._collector = Collector(self.context, self.output)
        self._element_context = ElementContext(TimeOnly(self))
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        call, context, add_all = self._calls[port], self._element_context, self._collector.add_all
        value = None
        try:
            for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
                context.element_timestamp = timestamp
                results = call(value, context)
                if results is not None:
                    add_all(results, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        self._collector.flush()

    def close(self) -> None:
        self._life.close()


class _KeyedProcess(KeyedOperator):
    def __init__(self, function: Function, methods: tuple[str, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._calls: list[Callable[[Any, Any], Any]] = [getattr(function, method) for method in methods]
        self._on_timer: Callable[[int, Any], Any] | None = getattr(function, "on_timer", None)

    def open(self, state: Any | None) -> None:
        super().open(state)
        self._element_context = KeyedElementContext(self.store, KeyedTimers(self))
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        call, context, add_all = self._calls[port], self._element_context, self.collector.add_all
        store = self.store
        hot = store.hot
        value = None
        try:
            for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys or (), strict=True):
                try:
                    store.entry = hot[key]
                except TypeError:  # a key without a hash
                    store.entry = store.find(key)
                context.element_timestamp = timestamp
                results = call(value, context)
                if results is not None:
                    add_all(results, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        store.entry = NO_ENTRY
        self.collector.flush()

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        if self._on_timer is None:
            return
        context = self._element_context
        context.element_timestamp = timestamp
        context.domain = TIME_DOMAINS[domain]
        results = self._on_timer(timestamp, context)
        if results is not None:
            self.collector.add_all(results, timestamp)

    def close(self) -> None:
        self._life.close()
