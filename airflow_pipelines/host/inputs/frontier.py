"""The newest position in its source up to which an input's rows are processed and delivered."""

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
    """The frontier of one input from step to step. The pipeline's thread moves it, any other may read it."""

    def __init__(self) -> None:
        self._received_at = datetime.now(UTC)
        self._processed: deque[_Processed] = deque()
        self._completed: dict[str, Any] | None = None

    def receive(self) -> None:
        """Note that rows have arrived."""
        self._received_at = datetime.now(UTC)

    def process(self, position: Position, records: int) -> None:
        """Note that a step has consumed rows.

        :param position: the position of the source after these rows
        :param records: the number of rows that have been processed by then
        """
        self._processed.append(_Processed(position, records, self._received_at, datetime.now(UTC)))

    def complete(self, records: int) -> None:
        """Note that the results of the first ``records`` rows have been delivered."""
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
        """Return the wire's ``completed_frontier``, or None before the first delivery of this run, and for pushed rows."""
        return self._completed
