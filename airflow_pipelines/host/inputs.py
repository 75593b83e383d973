"""Inputs of a running pipeline: one thread per declared connector, endpoints for pushed rows, and what a step takes from them."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from airflow_pipelines.connectors.base import ConnectorError, ConnectorFailure, InputChunk, InputTransport
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.changes import OP, Op, TableChanges
from airflow_pipelines.engine.storage.connector_state import InputState, Position
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.statistics import InputFigures
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.relations import Table

CHUNK_RECORDS = 100_000
"""Rows a connector is asked for at a time when its declaration sets no limit."""
STEP_RECORDS = 1_000_000
"""Rows a step takes from one connector at most when its declaration sets no limit: large steps load fastest."""
QUEUED_RECORDS = 1_000_000
POLL_S = 0.25
NO_UPDATES = "the table has no primary key, so its rows cannot be updated; send a delete and an insert"
NO_DELETES = "the table is append-only, so its rows can be neither deleted nor updated"


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one step takes from one input; ``position`` is where a declared connector's source stands then."""

    records: int
    size_bytes: int
    position: Position | None = None


NOTHING_CONSUMED = Consumed(0, 0)


class InputEndpoint:
    """One input of a table as statistics show it: a declared connector, or the endpoint of pushed rows (``connector`` None)."""

    def __init__(self, name: str, table: str, connector: Connector | None = None) -> None:
        self.name = name
        self.table = table
        self.connector = connector
        self.figures = InputFigures()
        self.paused = False
        self.fatal_error: str | None = None
        self.position: Position | None = None
        """Where the source stands after the last committed step."""

    @property
    def transient(self) -> bool:
        """Whether the endpoint came from a request, so that it never counts for completion."""
        return self.connector is None

    def received(self, records: int, size_bytes: int) -> None:
        """Count rows that arrived."""
        self.figures.total_records += records
        self.figures.total_bytes += size_bytes

    def consume(self, consumed: Consumed) -> None:
        """Count rows that a committed step consumed, and move on in the source."""
        self.figures.processed_records += consumed.records
        self.figures.processed_bytes += consumed.size_bytes
        if consumed.position is not None:
            self.position = consumed.position

    def complete(self) -> None:
        """All outputs of what was consumed have been delivered."""
        self.figures.completed_records = self.figures.processed_records

    def secure(self) -> None:
        """The effect of all that was consumed is on disk."""
        self.figures.durable_records = self.figures.processed_records

    def to_state(self, consumed: Consumed = NOTHING_CONSUMED) -> InputState:
        """What a checkpoint keeps.

        :param consumed: what the step takes after which it is to be, for a step that is not committed yet
        """
        figures = self.figures.to_state(consumed.records, consumed.size_bytes)
        position = self.position if consumed.position is None else consumed.position
        return InputState(self.table, self.connector is not None, position, self.paused, figures)

    def restore(self, state: InputState, *, same: bool) -> None:
        """Take over the saved counters.

        :param state: what was saved
        :param same: whether the connector is still the same, so that it goes on from its position
        """
        if same:
            self.position = state.position
            self.paused = state.paused
        self.figures = InputFigures.from_state(state.figures)

    def to_wire(self, *, errors: bool = False) -> dict[str, Any]:
        """The wire's InputEndpointStatus."""
        figures = self.figures
        wire: dict[str, Any] = {
            "endpoint_name": self.name,
            "config": {"stream": self.table},
            "metrics": figures.metrics(),
            "fatal_error": self.fatal_error,
            "paused": self.paused,
            "barrier": False,
            "health": {"status": "Healthy", "description": None}
            if self.fatal_error is None
            else {"status": "Unhealthy", "description": self.fatal_error},
            "completed_frontier": None,
        }
        if errors:
            wire["parse_errors"] = figures.parse_errors.to_wire()
            wire["transport_errors"] = figures.transport_errors.to_wire()
        return wire


class ConnectorInput:
    """Reads one declared connector in a thread of its own, as far ahead of the steps as its queue allows.

    ``open_transport`` makes the transport; ``arrived`` is called, from the thread, whenever there is something new to look at.
    What the ``table`` cannot take is left out and counted.
    """

    def __init__(
        self,
        endpoint: InputEndpoint,
        connector: Connector,
        open_transport: Callable[[], InputTransport],
        arrived: Callable[[int, int], None],
        log: PipelineLog,
        *,
        table: Table,
    ) -> None:
        options = connector.options
        self._table = table
        self.endpoint = endpoint
        self.labels = frozenset(_words(options.get("labels")))
        self.start_after = frozenset(_words(options.get("start_after")))
        self.waiting_for_labels = bool(self.start_after)
        self._open_transport = open_transport
        self._arrived = arrived
        self._log = log
        limit = options.get("max_batch_size")
        self._step_records = int(limit) if limit else STEP_RECORDS
        self._chunk_records = min(self._step_records, CHUNK_RECORDS)
        self._max_queued = int(options.get("max_queued_records") or QUEUED_RECORDS)
        self._condition = threading.Condition()
        self._queue: deque[InputChunk] = deque()
        self._queued = 0
        self._pipeline_active = False
        self._closed = False
        self._transport: InputTransport | None = None
        self._thread = threading.Thread(target=self._run, name=f"input {endpoint.name}", daemon=True)

    def restored(self, was_started: bool) -> None:
        """The connector goes on from saved state; one that had been started does not wait for labels again."""
        if was_started:
            self.waiting_for_labels = False

    def start(self) -> None:
        """Start reading (as soon as the pipeline is active and the connector is not paused)."""
        if not self.endpoint.figures.end_of_input:
            self._thread.start()

    def set_active(self, active: bool) -> None:
        """Let the connector read, or not: follows the pipeline's Running and Paused."""
        with self._condition:
            self._pipeline_active = active
            self._condition.notify_all()

    def set_paused(self, paused: bool) -> None:
        """Pause or start the connector; a start by hand cancels ``start_after``."""
        with self._condition:
            self.endpoint.paused = paused
            if not paused:
                self.waiting_for_labels = False
            self._condition.notify_all()

    def labels_done(self) -> None:
        """All connectors that this one waits for have reached their end."""
        with self._condition:
            if self.waiting_for_labels:
                self.waiting_for_labels = False
                self.endpoint.paused = False
            self._condition.notify_all()

    def take(self) -> list[InputChunk]:
        """The chunks for one step: at least one when there is any, and no more rows than the connector's limit."""
        taken: list[InputChunk] = []
        records = 0
        with self._condition:
            if self.endpoint.paused:
                return taken
            while self._queue and (not taken or records + self._queue[0].records <= self._step_records):
                chunk = self._queue.popleft()
                records += chunk.records
                taken.append(chunk)
            self._queued -= records
            self._condition.notify_all()
        return taken

    @property
    def drained(self) -> bool:
        """Whether steps have taken everything that was read."""
        return not self._queue

    @property
    def has_work(self) -> bool:
        """Whether :meth:`take` would give anything."""
        return bool(self._queue) and not self.endpoint.paused

    def close(self) -> None:
        """Stop reading and let go of the source."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._transport is not None:
            self._transport.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _ready(self) -> bool:
        active = self._pipeline_active and not self.endpoint.paused and not self.waiting_for_labels
        return active and self._queued < self._max_queued

    def _run(self) -> None:
        try:
            self._read_all()
        except ConnectorFailure as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001  whatever a source raises ends this connector only, and is shown with it
            if not self._closed:
                self._log.failure("connector %s: %s", self.endpoint.name, traceback.format_exc())
                self._fail(f"{type(error).__name__}: {error}")
        finally:
            if self._transport is not None:
                self._transport.close()

    def _read_all(self) -> None:
        if not self._wait_ready():
            return
        self._transport = self._open_transport()
        self._transport.open(self.endpoint.position)
        self._log.info("connector %s: reading", self.endpoint.name)
        while self._wait_ready():
            chunk = self._transport.read(self._chunk_records, POLL_S)
            if chunk is not None and self._accept(chunk):
                return

    def _wait_ready(self) -> bool:
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._ready())
            return not self._closed

    def _accept(self, chunk: InputChunk) -> bool:
        endpoint = self.endpoint
        if chunk.changes is not None:
            changes, refused = acceptable(chunk.changes, self._table)
            for reason, count in refused:
                endpoint.figures.parse_errors.extend([ConnectorError("parse", reason)], count)
                self._log.limited(endpoint.name, "connector %s: %d records: %s", endpoint.name, count, reason)
            if refused:
                chunk = replace(chunk, changes=changes, records=chunk.records - sum(count for _, count in refused))
        if chunk.num_parse_errors:
            endpoint.figures.parse_errors.extend(chunk.parse_errors, chunk.num_parse_errors)
            for error in chunk.parse_errors:
                self._log.limited(endpoint.name, "connector %s: record %d: %s", endpoint.name, error.index, error.message)
        with self._condition:
            self._queue.append(chunk)
            self._queued += chunk.records
            endpoint.received(chunk.records, chunk.size_bytes)
            endpoint.figures.end_of_input = chunk.end_of_input
        if chunk.end_of_input:
            self._log.info("connector %s: end of input after %d records", endpoint.name, endpoint.figures.total_records)
        self._arrived(chunk.records, chunk.size_bytes)
        return chunk.end_of_input

    def _fail(self, message: str) -> None:
        message = self._log.redact(message)
        self.endpoint.fatal_error = message
        self.endpoint.figures.transport_errors.add(ConnectorError("transport", message))
        self._log.failure("connector %s cannot go on: %s", self.endpoint.name, message)
        self._arrived(0, 0)


def acceptable(changes: TableChanges, table: Table) -> tuple[TableChanges | None, list[tuple[str, int]]]:
    """The changes that a table can take (None for none), and why and how many others were left out."""
    refused = []
    rows = changes.rows
    for operation, reason in _refusals(table):
        kept = rows.filter(pc.not_equal(rows[OP], int(operation)))
        if kept.num_rows < rows.num_rows:
            refused.append((reason, rows.num_rows - kept.num_rows))
            rows = kept
    if not refused:
        return changes, []
    return (TableChanges(changes.table, rows) if rows.num_rows else None), refused


def _refusals(table: Table) -> Iterator[tuple[Op, str]]:
    if table.append_only:
        yield Op.DELETE, NO_DELETES
        yield Op.UPDATE, NO_DELETES
    elif table.primary_key is None:
        # It finds no row there.
        yield Op.UPDATE, NO_UPDATES


def check_start_after(connectors: list[Connector]) -> None:
    """Refuse ``start_after`` declarations that could never start.

    :raises Problem: it names the connectors
    """
    carriers: dict[str, set[str]] = {}
    for connector in connectors:
        for label in _words(connector.options.get("labels")):
            carriers.setdefault(label, set()).add(connector.endpoint)
    waits: dict[str, set[str]] = {}
    for connector in connectors:
        after = connector.options.get("start_after")
        if after is not None and not _words(after):
            raise Problem(ErrorCode.EMPTY_START_AFTER, f"'start_after' of {connector.endpoint} is empty.")
        waits[connector.endpoint] = {name for label in _words(after) for name in carriers.get(label, ())}
    done: set[str] = set()
    while ready := {name for name, needs in waits.items() if name not in done and needs <= done}:
        done |= ready
    if len(done) < len(waits):
        stuck = ", ".join(sorted(set(waits) - done))
        raise Problem(ErrorCode.CYCLIC_DEPENDENCY, f"the connectors {stuck} wait for each other by 'start_after'.")


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]
