"""A buffer for the changes of a view, so that an output writes a few large batches instead of many small ones."""

from __future__ import annotations

import time

import pyarrow as pa

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.rows.zsets import consolidate


class OutputBuffer:
    """The changes of some steps.

    Equal rows are consolidated when they are taken, so that rows that came and went are not written.
    """

    def __init__(self, options: ConnectorOptions) -> None:
        """Create an empty buffer.

        :param options: the options of the output, with the buffer's bounds
        """
        self._most_records = options.max_output_buffer_size_records
        milliseconds = options.max_output_buffer_time_millis
        self._longest_s = None if milliseconds is None else milliseconds / 1000
        self._deltas: list[Batch] = []
        self._begun = 0.0
        self.first_step = 0
        """The oldest step in the buffer."""
        self.last_step = 0
        """The newest step in the buffer."""
        self.records = 0

    @property
    def batches(self) -> int:
        """The number of steps with changes in the buffer."""
        return len(self._deltas)

    @property
    def is_due(self) -> bool:
        """True if the buffer has reached one of its bounds."""
        until = self.until_due
        return self.records >= self._most_records or (until is not None and until <= 0)

    @property
    def until_due(self) -> float | None:
        """The seconds until the buffer's time bound is reached, or None if it is empty or has no time bound."""
        if not self._deltas or self._longest_s is None:
            return None
        return self._begun + self._longest_s - time.monotonic()

    def add(self, step: int, delta: Batch) -> None:
        """Add the changes of a step.

        :param step: the step's number
        :param delta: the changes, which are in memory
        """
        if not self._deltas:
            self._begun = time.monotonic()
            self.first_step = step
        self._deltas.append(delta)
        self.last_step = step
        self.records += delta.rows

    def take(self) -> Batch:
        """Remove all changes and return them as one delta.

        :returns: the changes, with equal rows consolidated
        """
        deltas, self._deltas = self._deltas, []
        self.records = 0
        if len(deltas) == 1:
            return deltas[0]
        tables = [delta.table for delta in deltas if delta.table is not None]
        return Batch.in_memory(deltas[0].schema, consolidate(pa.concat_tables(tables)))
