"""The reader of one declared input, in a thread of its own."""

from __future__ import annotations

import math
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from airflow_pipelines.common.retries import BackOff
from airflow_pipelines.connectors.base import (
    CONNECTOR_RETRIES,
    ChunkInTransaction,
    Committing,
    ConnectorFailure,
    CountedError,
    FatalConnectorFailure,
    Gauged,
    InputChunk,
    InputTransport,
    Lag,
    Lagging,
    Resting,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.engine.allowed_changes import allowed_changes, with_soft_deletes
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import TableChanges

CHUNK_RECORDS = 100_000
"""The number of rows that a connector is asked for at a time if its declaration sets no limit."""
STEP_RECORDS = 1_000_000
"""The maximum number of rows that a step takes from one connector if its declaration sets no limit: large steps load fastest."""
POLL_S = 0.25


class ConnectorInput:
    """A reader of one declared connector in a thread of its own, as far ahead of the steps as its queue allows.

    Rows that the table cannot take are left out and counted. After a transient failure it tries again, if it can seek the position.
    """

    def __init__(
        self,
        endpoint: InputEndpoint,
        options: ConnectorOptions,
        open_transport: Callable[[], InputTransport],
        arrived: Callable[[int, int], None],
        log: PipelineLog,
        *,
        table: Table,
        workers: int,
        seekable: bool = True,
        refused_truncation: str | None = None,
    ) -> None:
        """Create a reader that has not started.

        :param endpoint: the endpoint that counts the rows
        :param options: the options that the connector was declared with
        :param open_transport: makes the transport
        :param arrived: called with records and bytes, from the thread, whenever there is something new to look at
        :param table: the table of the rows
        :param workers: the number of the pipeline's workers
        :param seekable: True if the source can be opened in the middle
        :param refused_truncation: the reason why the table cannot be truncated, or None if it can
        """
        self._table = table
        self._refused_truncation = "with 'soft_delete' nothing is deleted" if options.soft_delete else refused_truncation
        self._seekable = seekable
        self._reached: Position | None = None
        """The position in the source after the last row read."""
        self._has_read = False
        self._back_off = BackOff(CONNECTOR_RETRIES)
        self.endpoint = endpoint
        endpoint.measure_lag = self._lag
        self.failure: FatalConnectorFailure | None = None
        """The error for which the pipeline cannot go on."""
        self.labels = frozenset(options.labels)
        self.start_after = frozenset(options.start_after or ())
        self.endpoint.waiting = bool(self.start_after)
        self._open_transport = open_transport
        self._arrived = arrived
        self._log = log
        self._step_records = options.step_records(workers) or STEP_RECORDS
        self._chunk_records = min(self._step_records, CHUNK_RECORDS)
        self._max_queued = options.max_queued_records
        self._max_queued_bytes = options.queued_bytes
        self._soft_delete = options.soft_delete
        self._condition = threading.Condition()
        self._queue: deque[InputChunk] = deque()
        self._queued = 0
        self._queued_bytes = 0
        self._pipeline_active = False
        self._closed = False
        self._transport: InputTransport | None = None
        self._resting: Resting | None = None
        self._committing: Committing | None = None
        self._lagging: Lagging | None = None
        self._thread = threading.Thread(target=self._run, name=f"input {endpoint.name}", daemon=True)

    def note_restored(self, was_started: bool) -> None:
        """Note that the connector goes on from saved state. If it had been started, it does not wait for labels again."""
        if was_started:
            self.endpoint.waiting = False

    def start(self) -> None:
        """Start to read (as soon as the pipeline is active and the connector is not paused)."""
        if not self.endpoint.metrics.end_of_input:
            self._thread.start()

    def set_active(self, active: bool) -> None:
        """Let the connector read, or not: follows the pipeline's Running and Paused."""
        with self._condition:
            self._pipeline_active = active
            self._condition.notify_all()

    def set_paused(self, paused: bool) -> None:
        """Pause or start the connector. A start by hand cancels ``start_after``."""
        with self._condition:
            self.endpoint.paused = paused
            if not paused:
                self.endpoint.waiting = False
            self._condition.notify_all()

    def labels_done(self) -> None:
        """Start the connector, because all connectors that it waits for have reached their end."""
        with self._condition:
            if self.waiting_for_labels:
                self.endpoint.waiting = False
                self.endpoint.paused = False
            self._condition.notify_all()

    def take(self) -> list[InputChunk]:
        """Remove and return the chunks for one step: at least one if there is any, and no more rows than the connector's limit."""
        return self._take_chunks(self._step_records)

    def take_all(self) -> list[InputChunk]:
        """Remove and return all waiting chunks, regardless of the connector's limit, up to the end of a transaction of its own."""
        return self._take_chunks(math.inf)

    def _take_chunks(self, most: float) -> list[InputChunk]:
        taken: list[InputChunk] = []
        records = 0
        with self._condition:
            if self.endpoint.paused:
                return taken
            while self._queue and (not taken or records + self._queue[0].records <= most):
                if taken and _is_boundary(taken[-1], self._queue[0]):
                    break
                chunk = self._queue.popleft()
                records += chunk.records
                self._queued_bytes -= chunk.size_bytes
                taken.append(chunk)
            self._queued -= records
            self._condition.notify_all()
        return taken

    def commit(self) -> None:
        """Commit the position in the source from which a restart may read."""
        position = self.endpoint.kept_position
        if self._committing is not None and position is not None:
            self._committing.commit(position)

    @property
    def drained(self) -> bool:
        """True if steps have taken everything that was read."""
        return not self._queue

    @property
    def has_work(self) -> bool:
        """True if :meth:`take` would return any chunk."""
        return bool(self._queue) and not self.endpoint.paused

    @property
    def is_without_position(self) -> bool:
        """True if it is in the middle of a source that can be read from its beginning only: no checkpoint could go on there."""
        at_end = self.endpoint.metrics.end_of_input and self.drained
        return not self._seekable and self._has_read and not at_end

    def close(self) -> None:
        """Stop reading and close the source."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._transport is not None:
            self._transport.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    @property
    def waiting_for_labels(self) -> bool:
        """True if the connector waits for others to reach their end."""
        return self.endpoint.waiting

    def _is_ready(self) -> bool:
        active = self._pipeline_active and not self.endpoint.paused and not self.waiting_for_labels
        return active and self._queued < self._max_queued and self._queued_bytes < self._max_queued_bytes

    def _run(self) -> None:
        try:
            self._read_all()
        except FatalConnectorFailure as error:
            # The failure becomes the pipeline's own error, which is logged.
            self._show(self._log.redact(str(error)))
            self.failure = error
            self._arrived(0, 0)
        except ConnectorFailure as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001  whatever a source raises ends this connector only, and is shown with it
            if not self._closed:
                self._log.failure("connector %s: %s", self.endpoint.name, traceback.format_exc())
                self._fail(f"{type(error).__name__}: {error}")
        finally:
            waits_for_commit = self._committing is not None and self.endpoint.metrics.end_of_input
            if self._transport is not None and not waits_for_commit:
                self._transport.close()

    def _read_all(self) -> None:
        self._reached = self.endpoint.position
        while self._wait_ready():
            try:
                self._read_on()
                return
            except TransientConnectorFailure as failure:
                if self._closed:
                    return
                if self._has_read and not self._seekable:
                    reason = "It is not tried again: this source is read from its beginning only, and rows would come twice"
                    raise ConnectorFailure(f"{failure} {reason}") from failure
                self._wait_to_try_again(failure)

    def _read_on(self) -> None:
        """Open the source at the position where reading stopped, and read until its end or that of the pipeline."""
        transport = self._transport = self._open_transport()
        self._resting = transport if isinstance(transport, Resting) else None
        transport.open(self._reached)
        gauged = transport if isinstance(transport, Gauged) else None
        if gauged is not None:
            self.endpoint.gauges = gauged.gauges()
        # Set only once it is open: commits come from the pipeline's thread.
        self._committing = transport if isinstance(transport, Committing) else None
        self._lagging = transport if isinstance(transport, Lagging) else None
        self._log.info("connector %s: reading", self.endpoint.name)
        while self._wait_ready():
            chunk = transport.read(self._chunk_records, POLL_S)
            self._works()
            if gauged is not None:
                self.endpoint.gauges = gauged.gauges()
            if chunk is not None and self._accept(chunk):
                return

    def _works(self) -> None:
        """Note that the source has answered."""
        if self.endpoint.health.trouble is not None:
            self.endpoint.health.trouble = None
            self._log.info("connector %s: works again", self.endpoint.name)
            self._arrived(0, 0)
        self._back_off.reset()

    def _wait_to_try_again(self, failure: TransientConnectorFailure) -> None:
        message = self._log.redact(str(failure))
        self._close_transport()
        wait_s = self._back_off.next_s()
        self.endpoint.health.trouble = message
        self.endpoint.metrics.transport_errors.add(CountedError("transport", message))
        self._log.warn_limited(
            self.endpoint.name, "connector %s: %s; it is tried again in %.1f s", self.endpoint.name, message, wait_s
        )
        self._arrived(0, 0)
        with self._condition:
            self._condition.wait_for(lambda: self._closed, wait_s)

    def _close_transport(self) -> None:
        """Close the source, and ignore errors of that."""
        transport, self._transport = self._transport, None
        self._resting = self._committing = self._lagging = None
        if transport is not None:
            try:
                transport.close()
            except Exception as error:  # noqa: BLE001  it is broken already
                self._log.warn_limited(self.endpoint.name, "connector %s: while closing: %s", self.endpoint.name, error)

    def _lag(self) -> Lag | None:
        lagging = self._lagging
        return None if lagging is None or self.endpoint.metrics.end_of_input else lagging.lag()

    def _wait_ready(self) -> bool:
        with self._condition:
            resting = self._resting
            if resting is not None and not self._condition.wait_for(self._should_go_on, resting.idle_limit_s):
                resting.rest()
            self._condition.wait_for(self._should_go_on)
            return not self._closed

    def _should_go_on(self) -> bool:
        return self._closed or self._is_ready()

    def _accept(self, chunk: InputChunk) -> bool:
        endpoint = self.endpoint
        if chunk.changes is not None:
            given = self._truncated_if_possible(chunk.changes)
            given = with_soft_deletes(given) if self._soft_delete else given
            changes, refused = allowed_changes(given, self._table)
            for part in refused:
                endpoint.metrics.parse_errors.extend([CountedError("parse", part.reason)], part.count)
                self._log.warn_limited(endpoint.name, "connector %s: %d records: %s", endpoint.name, part.count, part.reason)
            if changes is not chunk.changes:
                chunk = replace(chunk, changes=changes, records=chunk.records - sum(part.count for part in refused))
        if chunk.num_parse_errors:
            endpoint.metrics.parse_errors.extend(chunk.parse_errors, chunk.num_parse_errors)
            for error in chunk.parse_errors:
                self._log.warn_limited(endpoint.name, "connector %s: record %d: %s", endpoint.name, error.index, error.message)
        with self._condition:
            self._has_read, self._reached = True, chunk.position
            self._queue.append(chunk)
            self._queued += chunk.records
            self._queued_bytes += chunk.size_bytes
            endpoint.count_received(chunk.records, chunk.size_bytes)
            endpoint.metrics.end_of_input = chunk.end_of_input
        if chunk.end_of_input:
            self._log.info("connector %s: end of input after %d records", endpoint.name, endpoint.metrics.total_records)
        self._arrived(chunk.records, chunk.size_bytes)
        return chunk.end_of_input

    def _truncated_if_possible(self, changes: TableChanges) -> TableChanges:
        """Return changes that the table can take, even if it must not be truncated.

        :raises ConnectorFailure: if it would have to be truncated
        """
        if not changes.truncates or self._refused_truncation is None:
            return changes
        if self._reached is None:
            # The input has just begun, so the table has no rows of it yet.
            return replace(changes, truncates=False)
        raise ConnectorFailure(
            f"the source was emptied or begins anew, so all rows of table {self._table.name} would have to go, and they cannot: "
            f"{self._refused_truncation}. Clear the pipeline and start it again, so that it reads the source from its beginning"
        )

    def _fail(self, message: str) -> None:
        message = self._log.redact(message)
        self._show(message)
        self._log.failure("connector %s cannot go on: %s", self.endpoint.name, message)
        self._arrived(0, 0)

    def _show(self, message: str) -> None:
        self.endpoint.health.fatal = message
        self.endpoint.metrics.transport_errors.add(CountedError("transport", message))


def _is_boundary(before: InputChunk, after: InputChunk) -> bool:
    """Return True if a transaction of the connector begins or ends between two chunks."""
    return before.transaction is ChunkInTransaction.LAST or (before.transaction is None) != (after.transaction is None)
