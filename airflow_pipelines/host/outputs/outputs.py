"""The outputs of a running pipeline: each step's view deltas go to the declared connectors of the view."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.base import (
    CountedError,
    FatalConnectorFailure,
    OutputTransport,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import Delivery
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.spark.jobs import ThreadProperties
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.connector_state import OutputState
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.metrics.connector_metrics import OutputMetrics
from airflow_pipelines.host.metrics.health import Health
from airflow_pipelines.host.outputs.delivery_queue import DeliveryQueue, QueueLimits
from airflow_pipelines.host.outputs.opened_note import OpenedNote
from airflow_pipelines.host.outputs.output_buffer import OutputBuffer
from airflow_pipelines.host.outputs.queued_sink import QueuedSink
from airflow_pipelines.host.outputs.sinks import InStepSink, ResumedOutput, Sink
from airflow_pipelines.host.outputs.step_changes import StepChanges, shown_number
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.connectors import Connector


@dataclass(frozen=True, slots=True)
class OutputServices:
    """The services of a pipeline that its outputs need.

    :param session: the session that sorts large deltas
    :param store: the store of undelivered changes
    :param log: the pipeline's log
    :param epoch: the epoch of the run
    :param positions: the folder in which outputs keep their positions, or None without storage
    :param wake: lets the pipeline's thread look again after a delivery or the failure of an output
    """

    session: SparkSession
    store: BatchStore
    log: PipelineLog
    epoch: int
    positions: Path | None
    wake: Callable[[], None]


class OutputEndpoint:
    """A declared output of a view. A failing sink ends this output only; the output's status shows the failure."""

    def __init__(
        self,
        connector: Connector,
        options: ConnectorOptions,
        open_transport: Callable[[], OutputTransport],
        delivery: Delivery,
        services: OutputServices,
        left_out: LeftOutRows,
        key: tuple[str, ...] = (),
    ) -> None:
        """Create an output that is not open yet.

        :param connector: the connector as it was declared
        :param options: the options of its declaration that do not depend on the transport
        :param open_transport: makes the transport of the sink
        :param delivery: the kind of delivery: in the step, or later from a queue
        :param services: the services of the pipeline
        :param left_out: collects the rows that the target does not take
        :param key: the columns of its index, which tells updates from deletes and inserts
        """
        self.key = key
        self.sends_snapshot = options.send_snapshot
        self._buffer = OutputBuffer(options) if options.enable_output_buffer else None
        self.name = connector.endpoint
        self.view = connector.relation
        self.connector = connector
        self.metrics = OutputMetrics()
        self.health = Health()
        self.missing_since: int | None = None
        """The first step that the target misses, because the output had failed and its queue was full."""
        self._lost_since: int | None = None
        self._services = services
        self._left_out = left_out
        self._log = services.log
        self._queue: DeliveryQueue | None = None
        self._opening = OpenedNote(services.positions, self.name)
        self._resumed_step: int | None = None
        self._sink: Sink
        if delivery is Delivery.IN_STEP:
            self._sink = InStepSink(open_transport, self)
        else:
            limits = QueueLimits(options.max_queued_records, options.queued_bytes)
            self._queue = DeliveryQueue(limits, services.store)
            self._sink = QueuedSink(self.name, key, self._queue, services.session, open_transport, self)

    def open(self, resumed_step: int | None, begun: float) -> None:
        """Open the sink.

        With ``resumed_step``, it goes on from an earlier incarnation, and the changes after that step are rewound. A sink that
        cannot rewind gets the steps after it once more.

        :param resumed_step: the step after which the pipeline goes on, or None if the output begins
        :param begun: the time at which the pipeline began with its current storage
        """
        self._opening.begun = begun
        self._resumed_step = resumed_step
        if self._queue is None:
            self._sink.open(None if resumed_step is None else ResumedOutput(resumed_step))

    def start(self) -> None:
        """Start to deliver the waiting changes."""
        queue, step = self._queue, self._resumed_step
        if queue is not None:
            # A target that was never opened begins now, even if the pipeline has been running for long.
            goes_on = step is not None and self._opening.is_written
            self._sink.open(
                ResumedOutput(step or 0, queue.delivered, queue.known_before(self._services.epoch)) if goes_on else None
            )
        self._sink.start()

    def stop(self) -> None:
        """Stop the delivery; waiting changes are kept."""
        if self._queue is not None:
            self._sink.close()

    @property
    def is_queue(self) -> bool:
        """True if changes are delivered later, from a queue."""
        return self._sink.is_queue

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:
        """Deliver the changes of one step, or queue them.

        :param part: the changes
        :param changes: returns them in the output's order
        """
        if self._queue is not None and self.health.fatal is not None:
            self._keep_for_next_start(self._queue, part)
            return
        if self.health.fatal is None:
            self._sink.write(part, changes)
        if self._queue is None and self.health.fatal is not None:
            self._note_miss(part.first_step)

    def _note_miss(self, step: int) -> None:
        """Note that a target that gets each step at once has missed one."""
        if self.missing_since is None:
            self.missing_since = step
        if self._lost_since is None:
            self._lost_since = step

    def _keep_for_next_start(self, queue: DeliveryQueue, part: StepChanges) -> None:
        """Queue changes for the next start while there is room, although the output has failed: the pipeline goes on."""
        if self.missing_since is None:
            queue.put(part)
        if self._lost_since is None:
            oldest = queue.oldest_step
            self._lost_since = part.first_step if oldest is None else oldest
        if queue.is_full and self.missing_since is None:
            self.missing_since = queue.oldest_step
            records = queue.clear()
            self._log.failure(
                "output %s: %d changes since step %d, all that may wait, are given up: it has failed, and the target misses them",
                self.name,
                records,
                self.missing_since,
            )

    def keep(self, step: int, delta: Batch) -> bool:
        """Put the changes of a step into the output's buffer, if it has one and they are small enough for memory.

        :param step: the step's number
        :param delta: the changes
        :returns: True if nothing is left to write now: the changes are in the buffer, or a failed output without a queue misses
            them
        """
        if self._buffer is None or delta.table is None or not delta.is_small(DEFAULT_LIMITS):
            return False
        if self.health.fatal is not None:
            # The changes go to the queue, for the next start, or are lost.
            if self._queue is None:
                self._note_miss(step)
            return self._queue is None
        self._buffer.add(step, delta)
        self._count_buffered(self._buffer)
        return True

    @property
    def first_kept(self) -> int | None:
        """The oldest step with undelivered changes that are still to be delivered, or None if there is none."""
        return None if self._lost_since is not None else self._oldest_undelivered

    @property
    def _oldest_undelivered(self) -> int | None:
        queued = None if self._queue is None else self._queue.oldest_step
        if queued is not None:
            return queued
        return self._buffer.first_step if self.has_buffered and self._buffer is not None else None

    def find_lost(self) -> int | None:
        """Return the oldest step that the target does not get in this run because the output has failed, or None.

        An output may fail at any time. Until this is called after the failure, undelivered changes count as kept, so that nobody
        takes them for delivered.

        :returns: the oldest lost step, or None if nothing is lost
        """
        if self._lost_since is None and self.health.fatal is not None:
            self._lost_since = self._oldest_undelivered
        return self._lost_since

    @property
    def has_buffered(self) -> bool:
        """True if the buffer has changes."""
        return self._buffer is not None and self._buffer.batches > 0

    @property
    def until_flush(self) -> float | None:
        """The seconds until the buffer has to be written, or None if it has no such time."""
        return None if self._buffer is None else self._buffer.until_due

    @property
    def has_to_flush(self) -> bool:
        """True if the buffer has reached one of its bounds."""
        return self._buffer is not None and self._buffer.is_due

    @property
    def delivers(self) -> bool:
        """True if changes wait for a target that works, and so will soon be delivered."""
        return self._queue is not None and self._queue.batches > 0 and self.health.is_good

    @property
    def is_full(self) -> bool:
        """True if the queue is full, so that steps should wait."""
        return self._queue is not None and self._queue.is_full and self.health.fatal is None

    @property
    def stalled_s(self) -> float:
        """The seconds that steps have been waiting for this output."""
        return self._queue.full_s if self._queue is not None and self.is_full else 0.0

    @property
    def waiting(self) -> tuple[int, int]:
        """The number of steps that wait for delivery, and the number of their records."""
        return (0, 0) if self._queue is None else (self._queue.batches, self._queue.records)

    @property
    def failure(self) -> StorageError | FatalConnectorFailure | None:
        """The error for which the pipeline cannot go on, or None."""
        return self._sink.failure if isinstance(self._sink, QueuedSink) else None

    def flush(self, part_of: Callable[[int, Batch], StepChanges]) -> None:
        """Write the contents of the buffer as one batch.

        :param part_of: makes the changes to write from the number of a step and a delta
        """
        buffer = self._buffer
        if buffer is None or not buffer.batches:
            return
        first_step, delta = buffer.first_step, buffer.take()
        self._count_buffered(buffer)
        if delta.rows:
            part = replace(part_of(buffer.last_step, delta), since=first_step)
            self.write(part, lambda: part.in_order(self._services.session, self.key))

    def _count_buffered(self, buffer: OutputBuffer) -> None:
        self.metrics.buffered_records, self.metrics.buffered_batches = buffer.records, buffer.batches

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()

    def to_state(self) -> OutputState:
        """Return the state for a checkpoint, with all undelivered changes flushed to disk."""
        counts = self.metrics.to_state()
        if self._queue is None:
            return OutputState(self.view, counts, missing_since=self.missing_since)
        delivered, undelivered = self._queue.kept()
        return OutputState(self.view, counts, delivered, undelivered, self._opening.is_written, self.missing_since)

    def restore(self, state: OutputState, *, same: bool) -> None:
        """Restore the saved state: the counters, and the position if the connector is the same.

        :param state: the saved state
        :param same: True if the connector has not changed, so that it goes on from its position
        :raises StorageError: if undelivered changes cannot be read
        """
        self.metrics = OutputMetrics.from_state(state.counts)
        if not same and state.undelivered:
            records = sum(int(kept.delta["rows"]) for kept in state.undelivered)
            self._log.warning(
                "output %s: has changed; %d changes that were not delivered to its former target are given up", self.name, records
            )
        if not same:
            return
        self.missing_since = state.missing_since
        if state.missing_since is not None:
            self._log.warning("output %s: %s", self.name, self._describe_missing(state.missing_since))
        if self._queue is not None:
            self._opening.was_written = state.opened
            self._queue.delivered = state.delivered
            for kept in state.undelivered:
                self._queue.put(StepChanges.from_kept(kept, self._services.store))
            if state.undelivered:
                steps, records = self.waiting
                self._log.info("output %s: %d changes of %d steps come first, which were not delivered", self.name, records, steps)

    def to_wire(self, *, errors: bool = False) -> dict[str, Any]:
        """Return the wire's OutputEndpointStatus."""
        metrics = self.metrics
        if self._queue is not None:
            metrics.queued_batches, metrics.queued_records = self._queue.batches, self._queue.records
            metrics.memory = self._queue.memory_bytes
            self.health.note = self._note(self._queue, self.missing_since)
        elif self.missing_since is not None:
            self.health.note = self._describe_missing(self.missing_since)
        wire: dict[str, Any] = {
            "endpoint_name": self.name,
            "config": {"stream": self.view},
            "metrics": metrics.to_wire(),
            "fatal_error": self.health.fatal,
            "health": self.health.to_wire(),
        }
        if errors:
            wire["encode_errors"] = metrics.encode_errors.to_wire()
            wire["transport_errors"] = metrics.transport_errors.to_wire()
        return wire

    @staticmethod
    def _describe_missing(step: int) -> str:
        return (
            f"It had failed, and the target misses changes from step {step} on until it was put right. To have all, give the "
            "connector another name and 'send_snapshot': true."
        )

    def _note(self, queue: DeliveryQueue, missing_since: int | None) -> str | None:
        if missing_since is not None:
            return self._describe_missing(missing_since)
        unknown = self._sink.unknown_until if isinstance(self._sink, QueuedSink) else None
        if unknown is not None:
            return (
                f"The target has steps until {shown_number(unknown)} that the pipeline lost, or from before which it was started: "
                "what only they wrote stays there. To have the view alone, empty the target and give the connector another name "
                "and 'send_snapshot': true."
            )
        if not self.is_full:
            return None
        return (
            f"{queue.records} changes wait for the target, and no more may (max_queued_records, max_queued_bytes): the pipeline "
            "takes no input until some were delivered."
        )

    @property
    def loss(self) -> str:
        """The message about a failed output: its name, the reason, and the fate of the changes that its target does not have."""
        then = "What it has not got waits, and comes first after a restart of the pipeline, once the target is put right."
        if self.missing_since is not None:
            then = self._describe_missing(self.missing_since)
        elif self._services.positions is None:
            then = "A restart loses all rows, for there is no storage: put the target right, restart, and push them again."
        return f"output {self.name} has failed: {self.health.fatal}. {then}"

    # What its sink tells it.

    def inherit_properties(self) -> Callable[[], None]:
        """See :meth:`SinkOwner.inherit_properties`."""
        return ThreadProperties.of_this_thread(self._services.session.sparkContext).apply

    def note_opened(self) -> None:
        """See :meth:`SinkOwner.note_opened`."""
        self._opening.write()

    def wake(self) -> None:
        """See :meth:`SinkOwner.wake`."""
        self._services.wake()

    def count_written(self, records: int, size_bytes: int) -> None:
        """See :meth:`SinkOwner.count_written`."""
        self.metrics.transmitted_records += records
        self.metrics.transmitted_bytes += size_bytes
        errors, count = self._left_out.take()
        if count:
            # Left-out rows count as delivered: nothing waits for them.
            known = self.metrics.encode_errors
            listed = [replace(each, index=known.count + each.index, message=self._log.redact(each.message)) for each in errors]
            known.extend(listed, count)
            self._log.warn_limited(self.name, "output %s: %d rows are left out, the last: %s", self.name, count, listed[-1].message)

    def fail(self, error: Exception) -> None:
        """See :meth:`SinkOwner.fail`."""
        self._left_out.clear()
        self.health.fatal = self._log.redact(str(error)) or type(error).__name__
        self.metrics.transport_errors.add(CountedError("transport", self.health.fatal))
        self._log.failure("output %s cannot go on: %s", self.name, "".join(traceback.format_exception(error)).rstrip())

    def note_trouble(self, failure: TransientConnectorFailure | None, wait_s: float) -> None:
        """See :meth:`SinkOwner.note_trouble`."""
        if failure is None:
            if self.health.trouble is not None:
                self.health.trouble = None
                self._log.info("output %s: works again", self.name)
            return
        self._left_out.clear()
        self.health.trouble = self._log.redact(str(failure))
        self.metrics.transport_errors.add(CountedError("transport", self.health.trouble))
        self._log.warn_limited(self.name, "output %s: %s; it is tried again in %.1f s", self.name, self.health.trouble, wait_s)
        self._services.wake()
