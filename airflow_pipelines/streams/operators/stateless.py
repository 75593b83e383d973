"""Operators that process one value at a time and keep no state."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.failures import last_given, note_element
from airflow_pipelines.streams.functions import Function, own_copy
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.values import ATOMIC, isolate


@dataclass(frozen=True)
class Map(OperatorSpec):
    """An operator that gives one value for each value.

    :param function: the function object with the method
    :param method: the name of the method
    """

    function: Function
    method: str = "map"
    kind = "Operator"

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Map(own_copy(self.function), self.method)

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


@dataclass(frozen=True)
class Filter(OperatorSpec):
    """An operator that drops the values for which its function returns False.

    :param function: the function object with the method ``filter``
    """

    function: Function

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _Filter(own_copy(self.function), "filter")

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


@dataclass(frozen=True)
class FlatMap(OperatorSpec):
    """An operator that gives any number of values for each value.

    :param function: the function object with the method ``flat_map``
    """

    function: Function

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _FlatMap(own_copy(self.function), "flat_map")

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}


class StatelessOperator(Operator):
    """An operator that calls one method of one function object.

    :param function: the function object, which belongs to the operator
    :param method: the name of the method
    """

    def __init__(self, function: Function, method: str) -> None:
        super().__init__()
        self._life = FunctionLife(function)
        self._call: Callable[[Any], Any] = getattr(function, method)

    def open(self, state: Any | None) -> None:
        """Open the function."""
        self._life.open(self.context)

    def close(self) -> None:
        """Close the function."""
        self._life.close()

    def note(self, error: BaseException, values: list[Any], iterator: Any) -> None:
        """Add a note with the failed element to an error.

        :param error: the error
        :param values: all elements
        :param iterator: an iterator over them, whose last element is the failed one
        """
        note_element(error, self.name, last_given(values, iterator))


class _Map(StatelessOperator):
    def process(self, batch: Batch, port: int) -> None:
        values = iter(batch.values)
        try:
            if self.context.settings.share_values:
                results = list(map(self._call, values))
            else:
                results = [each if each.__class__ in ATOMIC else isolate(each) for each in map(self._call, values)]
        except Exception as error:
            self.note(error, batch.values, values)
            raise
        self.output.emit(Batch(results, batch.timestamps))


class _Filter(StatelessOperator):
    def process(self, batch: Batch, port: int) -> None:
        values = iter(batch.values)
        try:
            passes = list(map(self._call, values))
        except Exception as error:
            self.note(error, batch.values, values)
            raise
        if all(passes):
            self.output.emit(Batch(batch.values, batch.timestamps))
        elif any(passes):
            self.output.emit(
                Batch(list(itertools.compress(batch.values, passes)), list(itertools.compress(batch.timestamps, passes)))
            )


class _FlatMap(StatelessOperator):
    def open(self, state: Any | None) -> None:
        super().open(state)
        self._collector = Collector(self.context, self.output)

    def process(self, batch: Batch, port: int) -> None:
        call, collector = self._call, self._collector
        value = None
        try:
            for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
                results = call(value)
                if results is not None:
                    collector.add_all(results, timestamp)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        collector.flush()
