"""Functions without a context, on streams with keys, where they may keep state by key, and on two streams without keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.operators.keyed import KeyedOperator
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.state.entries import NO_ENTRY, Entry

Take = Callable[[Collector, Any, Any, int | None], None]
"""A function that collects a result: collector, element, result, timestamp."""


def _take_one(collector: Collector, value: Any, result: Any, timestamp: int | None) -> None:  # noqa: ARG001
    collector.add(result, timestamp)


def _take_one_if_any(collector: Collector, value: Any, result: Any, timestamp: int | None) -> None:  # noqa: ARG001
    if result is not None:
        collector.add(result, timestamp)


def _take_all(collector: Collector, value: Any, result: Any, timestamp: int | None) -> None:  # noqa: ARG001
    if result is not None:
        collector.add_all(result, timestamp)


def _take_element(collector: Collector, value: Any, result: Any, timestamp: int | None) -> None:
    if result:
        collector.add(value, timestamp)


_TAKES: Mapping[str, Take] = {
    "map": _take_one,
    "flat_map": _take_all,
    "filter": _take_element,
    "map1": _take_one_if_any,
    "map2": _take_one_if_any,
    "flat_map1": _take_all,
    "flat_map2": _take_all,
}


@dataclass(frozen=True)
class KeyedCall(OperatorSpec):
    """An operator that calls a function on a stream with keys.

    :param function: the function object with the methods
    :param methods: the method for each input: ``map``, ``flat_map``, ``filter``, ``map1`` and so on
    """

    function: Function
    methods: tuple[str, ...]
    is_keyed = True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _KeyedCall(own_copy(self.function), self.methods)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


@dataclass(frozen=True)
class CoCall(OperatorSpec):
    """An operator that calls a function on two streams without keys.

    :param function: the function object with the methods
    :param methods: the method for each input
    """

    function: Function
    methods: tuple[str, ...]

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _CoCall(own_copy(self.function), self.methods)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


class _CoCall(Operator):
    def __init__(self, function: Function, methods: tuple[str, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._calls = [(getattr(function, method), _TAKES[method]) for method in methods]

    def open(self, state: Any | None) -> None:
        self._collector = Collector(self.context, self.output)
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        call, take = self._calls[port]
        collector = self._collector
        value = None
        try:
            for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
                take(collector, value, call(value), timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        collector.flush()

    def close(self) -> None:
        self._life.close()


class _KeyedCall(KeyedOperator):
    def __init__(self, function: Function, methods: tuple[str, ...]) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._calls = [(getattr(function, method), _TAKES[method]) for method in methods]

    def open(self, state: Any | None) -> None:
        super().open(state)
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        call, take = self._calls[port]
        store, collector = self.store, self.collector
        hot = store.hot
        value = None
        try:
            for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys or (), strict=True):
                try:
                    store.entry = hot[key]
                except TypeError:  # a key without a hash
                    store.entry = store.find(key)
                take(collector, value, call(value), timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        store.entry = NO_ENTRY
        collector.flush()

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        """Do nothing: such functions cannot register timers."""

    def close(self) -> None:
        self._life.close()
