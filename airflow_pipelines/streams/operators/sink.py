"""Operators that write elements to a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec
from airflow_pipelines.streams.sinks import Sink


@dataclass(frozen=True)
class Write(OperatorSpec):
    """An operator that writes to a sink.

    :param sink: the sink
    """

    sink: Sink
    kind = "Data Sink"

    def create(self) -> Operator:
        """Create one parallel instance."""
        return SinkOperator(self.sink)

    def state_of_task(self, states: Sequence[Any], index: int, parallelism: int) -> Any:
        """Return the prepared output that may not be committed: one task commits all of it, since its order may matter."""
        return [each for state in states for each in state] if index == 0 else []

    def user_objects(self) -> Mapping[str, Any]:
        """Return the sink."""
        return {"sink": self.sink}


class SinkOperator(Operator):
    """A parallel instance that writes to a sink.

    :param sink: the sink
    """

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        self._prepared: list[Any] = []
        self._is_open = False

    def open(self, state: Any | None) -> None:
        """Open the sink, and commit the output that was prepared before."""
        try:
            self._writer = self._sink.open(self.context.subtask)
            self._is_open = True
            if state:
                self._prepared = list(state)
                self._commit()
        except Exception as error:
            note_operator(error, self.name, "opening the sink")
            raise

    def process(self, batch: Batch, port: int) -> None:
        """Write records to the sink."""
        try:
            self._writer.write(batch)
        except Exception as error:
            note_operator(error, self.name, f"writing {len(batch)} elements")
            raise

    def watermark(self, timestamp: int) -> None:
        """Pass the watermark to the sink."""
        self.current_watermark = timestamp
        self._writer.watermark(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """Ignore idleness: nothing follows a sink."""

    def snapshot(self) -> Any | None:
        """Prepare the written output, and return everything that is prepared and not committed."""
        try:
            prepared = self._writer.prepare()
        except Exception as error:
            note_operator(error, self.name, "making ready to commit what was written")
            raise
        if prepared is not None:
            self._prepared.append(prepared)
        return list(self._prepared) or None

    def notify_checkpoint_complete(self) -> None:
        """Commit the prepared output."""
        try:
            self._commit()
        except Exception as error:
            note_operator(error, self.name, "committing what was written")
            raise

    def _commit(self) -> None:
        for prepared in self._prepared:
            self._writer.commit(prepared)
        later = self._writer.finish_commit()
        self._prepared = [] if later is None else [later]

    def end_of_input(self) -> None:
        """Tell the sink that no elements follow."""
        self._writer.end()

    def close(self) -> None:
        """Close the sink if it was opened."""
        if self._is_open:
            self._is_open = False
            self._writer.close()
