"""Collection of the results of functions: values, and values for side outputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.elements import Batch, OutputTag
from airflow_pipelines.streams.errors import FunctionTimeLimitError, StreamProgramError
from airflow_pipelines.streams.operators.base import OperatorContext, Output
from airflow_pipelines.streams.values import ATOMIC, isolate

_FLUSH_AT = 8192


def _same(value: Any) -> Any:
    return value


class Collector:
    """A collector that gathers the results of calls and emits them in batches.

    :param context: the context of the operator
    :param output: the output for its values
    """

    def __init__(self, context: OperatorContext, output: Output) -> None:
        self._context = context
        self._output = output
        self._values: list[Any] = []
        self._timestamps: list[int | None] = []
        self._sides: dict[str, tuple[list[Any], list[int | None]]] = {}
        self._isolate: Callable[[Any], Any] = _same if context.settings.share_values else isolate

    def add(self, value: Any, timestamp: int | None) -> None:
        """Add one value.

        :param value: the value
        :param timestamp: its event time
        """
        self._values.append(value if value.__class__ in ATOMIC else self._isolate(value))
        self._timestamps.append(timestamp)

    def add_all(self, results: Any, timestamp: int | None) -> None:
        """Add all results of one call.

        :param results: the return value of a function: None, or an iterable of values
        :param timestamp: their event time
        :raises StreamProgramError: if it is neither
        :raises FunctionTimeLimitError: if the iterable goes on for too long
        """
        values, timestamps, atomic = self._values, self._timestamps, ATOMIC
        if results.__class__ is not list and not hasattr(results, "__iter__"):
            raise StreamProgramError(
                f"The function returned {results!r}. It must yield its results, or return a list of them, or None for no result."
            )
        began = None
        for value in results:
            kind = value.__class__
            if kind not in atomic:
                if kind is tuple and len(value) == 2 and value[0].__class__ is OutputTag:
                    self.add_side(value[0].tag_id, value[1], timestamp)
                    continue
                value = self._isolate(value)
            values.append(value)
            timestamps.append(timestamp)
            if len(values) >= _FLUSH_AT:
                began = self._flush_one_call(began)
                values, timestamps = self._values, self._timestamps

    def add_side(self, tag: str, value: Any, timestamp: int | None) -> None:
        """Add one value of a side output.

        :param tag: the name of the side output
        :param value: the value
        :param timestamp: its event time
        """
        values, timestamps = self._sides.setdefault(tag, ([], []))
        values.append(self._isolate(value))
        timestamps.append(timestamp)

    def flush(self) -> None:
        """Emit everything that was collected."""
        if self._values:
            batch = Batch(self._values, self._timestamps)
            self._values, self._timestamps = [], []
            self._output.emit(batch)
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag, (values, timestamps) in sides.items():
                output = self._context.side_output(tag)
                if output is not None:
                    output.emit(Batch(values, timestamps))

    def _flush_one_call(self, began: float | None) -> float:
        now = time.monotonic()
        if began is not None and now - began > self._context.settings.call_seconds:
            raise FunctionTimeLimitError(
                f"One call of {self._context.subtask.name!r} has given results for more than"
                f" {self._context.settings.call_seconds:g} s"
                " and goes on. A function must end for each element; what never ends is a source."
            )
        self.flush()
        return now if began is None else began
