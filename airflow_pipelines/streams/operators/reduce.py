"""Reduction of the elements of each key: every update is a result; in batch mode only the last one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec
from airflow_pipelines.streams.operators.keyed import KeyedOperator
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.state.entries import NO_ENTRY, Entry

_SLOT = "reduce"


@dataclass(frozen=True)
class Reduce(OperatorSpec):
    """An operator that combines each element with the previous result of its key.

    :param function: the function object with the method ``reduce``
    """

    function: Function
    is_keyed = True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Reduce(own_copy(self.function))

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}

    def own_states(self) -> Sequence[StateDescription]:
        """Return the state with the result so far."""
        return (StateDescription(_SLOT, "reducing"),)


class _Reduce(KeyedOperator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._reduce: Callable[[Any, Any], Any] = function.reduce  # type: ignore[attr-defined]

    def open(self, state: Any | None) -> None:
        super().open(state)
        self._life.open(self.context)
        self._last: tuple[Any, int | None] | None = None

    def process(self, batch: Batch, port: int) -> None:
        reduce, store, collector = self._reduce, self.store, self.collector
        is_batch = self.context.settings.is_batch
        hot = store.hot
        value = None
        try:
            for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys or (), strict=True):
                try:
                    entry = hot[key]
                except TypeError:  # a key without a hash
                    entry = store.find(key)
                store.entry = entry
                values = entry.values
                combined = values[_SLOT] = reduce(values[_SLOT], value) if _SLOT in values else value
                if not entry.is_changed:
                    entry.note_change()
                if is_batch:
                    self._last = (combined, timestamp)
                else:
                    collector.add(combined, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        store.entry = NO_ENTRY
        collector.flush()

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        """Do nothing: the operator has no timers."""

    def end_of_key(self) -> None:
        if self._last is not None:
            self.collector.add(*self._last)
            self._last = None
        super().end_of_key()

    def close(self) -> None:
        self._life.close()
