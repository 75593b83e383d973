"""Outputs of a running pipeline: each step's view deltas go to the declared connectors of the view."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from airflow_pipelines.connectors.base import ConnectorError, OutputTransport, Rewindable
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.storage.connector_state import OutputState
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.connector_metrics import OutputMetrics
from airflow_pipelines.host.output_buffer import OutputBuffer
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.program.connectors import Connector


class OutputEndpoint:
    """One declared output of a view. A failing sink ends this output only, and is shown with it."""

    def __init__(
        self,
        connector: Connector,
        options: ConnectorOptions,
        open_transport: Callable[[], OutputTransport],
        log: PipelineLog,
        key: tuple[str, ...] = (),
    ) -> None:
        """Make an output that is not open yet.

        :param connector: as it was declared
        :param options: those of its declaration that do not depend on the transport
        :param open_transport: makes the sink
        :param log: the pipeline's log
        :param key: the columns of its index, by which updates are told from deletes and inserts
        """
        self.key = key
        self.sends_snapshot = options.send_snapshot
        self._buffer = OutputBuffer(options) if options.enable_output_buffer else None
        self.name = connector.endpoint
        self.view = connector.relation
        self.connector = connector
        self.metrics = OutputMetrics()
        self.fatal_error: str | None = None
        self._open_transport = open_transport
        self._log = log
        self._transport: OutputTransport | None = None

    def open(self, resumed_step: int | None) -> None:
        """Open the sink. With ``resumed_step`` it goes on from an earlier incarnation, and what came after that step is taken back.

        A sink that cannot take anything back gets the steps after it once more.
        """
        try:
            self._transport = self._open_transport()
            self._transport.open(resumed_step is not None)
            if resumed_step is not None and isinstance(self._transport, Rewindable):
                self._transport.rewind(resumed_step)
        except StorageError:
            # Not this output fails: the run has been replaced, or cannot write anything.
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._fail(error)

    def write(self, step: int, changes: Changes) -> None:
        """Deliver one step's changes."""
        if self._transport is None or self.fatal_error is not None:
            return
        try:
            records, size = self._transport.write(step, changes)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._fail(error)
            return
        self.metrics.transmitted_records += records
        self.metrics.transmitted_bytes += size

    def keep(self, step: int, delta: Batch) -> bool:
        """Put a step's changes into the output's buffer, if it has one and they are small enough to be kept in memory.

        :param step: the step's number
        :param delta: the changes
        :returns: whether they are in the buffer, from where they are written later
        """
        if self._buffer is None or delta.table is None:
            return False
        if self._transport is not None and self.fatal_error is None:
            self._buffer.add(step, delta)
            self._count_buffered(self._buffer)
        return True

    @property
    def first_kept(self) -> int | None:
        """The oldest step with changes in the buffer; None when there is none."""
        return self._buffer.first_step if self._buffer is not None and self._buffer.batches else None

    @property
    def until_flush(self) -> float | None:
        """Seconds until the buffer has to be written; None when nothing says so."""
        return None if self._buffer is None else self._buffer.until_due

    @property
    def has_to_flush(self) -> bool:
        """Whether the buffer has reached one of its bounds."""
        return self._buffer is not None and self._buffer.is_due

    def flush(self, changes: Callable[[Batch], Changes]) -> None:
        """Write what the buffer has as one batch.

        :param changes: puts a delta's changes in order
        """
        buffer = self._buffer
        if buffer is None or not buffer.batches:
            return
        delta = buffer.take()
        self._count_buffered(buffer)
        if delta.rows:
            self.write(buffer.last_step, changes(delta))

    def _count_buffered(self, buffer: OutputBuffer) -> None:
        self.metrics.buffered_records, self.metrics.buffered_batches = buffer.records, buffer.batches

    def close(self) -> None:
        """Flush and close the sink."""
        if self._transport is None:
            return
        try:
            self._transport.close()
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._fail(error)
        self._transport = None

    def to_state(self) -> OutputState:
        """What a checkpoint keeps."""
        return OutputState(self.view, self.metrics.to_state())

    def restore(self, state: OutputState) -> None:
        """Take over the saved counters."""
        self.metrics = OutputMetrics.from_state(state.counts)

    def to_wire(self, *, errors: bool = False) -> dict[str, Any]:
        """The wire's OutputEndpointStatus."""
        metrics = self.metrics
        wire: dict[str, Any] = {
            "endpoint_name": self.name,
            "config": {"stream": self.view},
            "metrics": metrics.to_wire(),
            "fatal_error": self.fatal_error,
            "health": {"status": "Healthy", "description": None}
            if self.fatal_error is None
            else {"status": "Unhealthy", "description": self.fatal_error},
        }
        if errors:
            wire["encode_errors"] = metrics.encode_errors.to_wire()
            wire["transport_errors"] = metrics.transport_errors.to_wire()
        return wire

    def _fail(self, error: Exception) -> None:
        self.fatal_error = self._log.redact(str(error)) or type(error).__name__
        self.metrics.transport_errors.add(ConnectorError("transport", self.fatal_error))
        self._log.failure("output %s cannot go on: %s", self.name, "".join(traceback.format_exception(error)).rstrip())
