"""Sources in this process, which tests take away and bring back, and the connector that reads them."""

from __future__ import annotations

import threading
from typing import Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.base import InputChunk, Lag, TransientConnectorFailure
from airflow_pipelines.connectors.definition import InputContext, InputDefinition
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges


class Source:
    """Numbers that outlive the transports that read them."""

    def __init__(self, *values: int) -> None:
        self.values = list(values)
        self.has_end = True
        self.is_there = True
        self.opened: list[Position | None] = []
        self.committed: list[Position] = []
        self.closed = 0
        self.breaks_after: set[int] = set()
        """After so many values the next read fails, once for each."""


class NumberInput:
    """Reads one value at a time."""

    def __init__(self, source: Source, table: str) -> None:
        self.source = source
        self._table = table
        self._next = 0
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        if not self.source.is_there:
            raise TransientConnectorFailure("the source is not there")
        self.source.opened.append(position)
        self._next = 0 if position is None else int(position["next"])

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        if not self.source.is_there:
            raise TransientConnectorFailure("the source is gone")
        if self._next in self.source.breaks_after:
            self.source.breaks_after.discard(self._next)
            raise TransientConnectorFailure("the connection was lost")
        if self._next < len(self.source.values):
            value = self.source.values[self._next]
            self._next += 1
            rows = pa.table({"x": pa.array([value], pa.int32()), OP: pa.array([int(Op.INSERT)], pa.int8())})
            ended = self.source.has_end and self._next == len(self.source.values)
            return InputChunk(TableChanges(self._table, rows), 1, 4, {"next": self._next}, end_of_input=ended)
        if self.source.has_end:
            return InputChunk(None, 0, 0, {"next": self._next}, end_of_input=True)
        self._closed.wait(min(timeout_s, 0.01))
        return None

    def lag(self) -> Lag | None:
        return Lag(records=len(self.source.values) - self._next)

    def commit(self, position: Position) -> None:
        self.source.committed.append(position)

    def close(self) -> None:
        self.source.closed += 1
        self._closed.set()


SOURCES: Final[dict[str, Source]] = {}
"""By the name that declarations give."""


class SourceOptions(BaseModel):
    """Options of the connector."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str


def _open(options: SourceOptions, context: InputContext) -> NumberInput:
    return NumberInput(SOURCES[options.source], context.schema.name)


NUMBER_INPUT: Final = InputDefinition(name="number_test_input", options=SourceOptions, open=_open)
UNSEEKABLE_INPUT: Final = InputDefinition(name="unseekable_test_input", options=SourceOptions, open=_open, seekable=False)
