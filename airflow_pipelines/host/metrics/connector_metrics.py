"""The counters of connectors, in their wire form and in the form of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.engine.storage.connector_state import InputCounts, OutputCounts
from airflow_pipelines.host.state.error_list import ErrorList


@dataclass
class InputMetrics:
    """The counters of one input.

    Records count rows that were received (``total``), then consumed by steps (``processed``), then delivered to all outputs
    (``completed``).

    :param durable_records: the records whose effect is on disk, in a checkpoint or in the journal, so that no kill can lose it
    """

    total_records: int = 0
    total_bytes: int = 0
    processed_records: int = 0
    processed_bytes: int = 0
    completed_records: int = 0
    collected_records: int = 0
    collected_bytes: int = 0
    durable_records: int = 0
    end_of_input: bool = False
    parse_errors: ErrorList = field(default_factory=ErrorList)
    transport_errors: ErrorList = field(default_factory=ErrorList)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire's ``metrics`` object."""
        return {
            "total_bytes": self.total_bytes,
            "total_records": self.total_records,
            "buffered_records": self.total_records - self.processed_records - self.collected_records,
            "buffered_bytes": self.total_bytes - self.processed_bytes - self.collected_bytes,
            "num_transport_errors": self.transport_errors.count,
            "num_parse_errors": self.parse_errors.count,
            "end_of_input": self.end_of_input,
        }

    def to_state(self, records: int = 0, size_bytes: int = 0) -> InputCounts:
        """Return the counts that a checkpoint keeps. Buffered records are not part of them, because they will be read again.

        :param records: the rows taken by a step that is not committed yet
        :param size_bytes: the bytes of these rows
        """
        return InputCounts(
            self.processed_records + records,
            self.processed_bytes + size_bytes,
            self.parse_errors.to_state(),
            self.transport_errors.to_state(),
        )

    @classmethod
    def from_state(cls, state: InputCounts) -> InputMetrics:
        """Return the counters that :meth:`to_state` described."""
        records, size = state.records, state.bytes
        return cls(
            total_records=records,
            total_bytes=size,
            processed_records=records,
            processed_bytes=size,
            completed_records=records,
            durable_records=records,
            parse_errors=ErrorList.from_state(state.parse_errors),
            transport_errors=ErrorList.from_state(state.transport_errors),
        )


@dataclass
class OutputMetrics:
    """The counters of one output.

    Queued rows wait for a target or a listener; buffered rows are kept by the output to write them in larger batches.
    """

    transmitted_records: int = 0
    transmitted_bytes: int = 0
    queued_records: int = 0
    queued_batches: int = 0
    buffered_records: int = 0
    buffered_batches: int = 0
    memory: int = 0
    total_processed_input_records: int = 0
    total_processed_steps: int = 0
    encode_errors: ErrorList = field(default_factory=ErrorList)
    transport_errors: ErrorList = field(default_factory=ErrorList)

    def to_wire(self) -> dict[str, Any]:
        """Return the wire's ``metrics`` object."""
        return {
            "transmitted_records": self.transmitted_records,
            "transmitted_bytes": self.transmitted_bytes,
            "queued_records": self.queued_records,
            "queued_batches": self.queued_batches,
            "buffered_records": self.buffered_records,
            "buffered_batches": self.buffered_batches,
            "num_encode_errors": self.encode_errors.count,
            "num_transport_errors": self.transport_errors.count,
            "total_processed_input_records": self.total_processed_input_records,
            "total_processed_steps": self.total_processed_steps,
            "memory": self.memory,
        }

    def to_state(self) -> OutputCounts:
        """Return the counts that a checkpoint keeps."""
        return OutputCounts(
            self.transmitted_records, self.transmitted_bytes, self.encode_errors.to_state(), self.transport_errors.to_state()
        )

    @classmethod
    def from_state(cls, state: OutputCounts) -> OutputMetrics:
        """Return the counters that :meth:`to_state` described."""
        return cls(
            transmitted_records=state.transmitted_records,
            transmitted_bytes=state.transmitted_bytes,
            encode_errors=ErrorList.from_state(state.encode_errors),
            transport_errors=ErrorList.from_state(state.transport_errors),
        )
