"""The newest place in its source up to which an input's rows are processed and delivered."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.host.state.error_list import stamp


@dataclass(frozen=True, slots=True)
class _Processed:
    position: Position
    records: int
    ingested_at: datetime
    processed_at: datetime


class Frontier:
    """Follows one input from step to step. The pipeline's thread moves it, any other may read it."""

    def __init__(self) -> None:
        self._received_at = datetime.now(UTC)
        self._processed: deque[_Processed] = deque()
        self._completed: dict[str, Any] | None = None

    def receive(self) -> None:
        """Rows have arrived."""
        self._received_at = datetime.now(UTC)

    def process(self, position: Position, records: int) -> None:
        """A step has consumed rows.

        :param position: where the source stands after them
        :param records: how many rows have been processed by then
        """
        self._processed.append(_Processed(position, records, self._received_at, datetime.now(UTC)))

    def complete(self, records: int) -> None:
        """All outputs of the first ``records`` rows have been delivered."""
        newest = None
        while self._processed and self._processed[0].records <= records:
            newest = self._processed.popleft()
        if newest is not None:
            self._completed = {
                "metadata": newest.position,
                "ingested_at": stamp(newest.ingested_at),
                "processed_at": stamp(newest.processed_at),
                "completed_at": stamp(datetime.now(UTC)),
            }

    def to_wire(self) -> dict[str, Any] | None:
        """The wire's ``completed_frontier``; None before anything was delivered in this run, and for pushed rows."""
        return self._completed
