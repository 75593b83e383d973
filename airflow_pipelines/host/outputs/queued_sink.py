"""A sink that writes an output's changes in a thread of its own, so that a slow or missing target holds up no step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from airflow_pipelines.common.retries import BackOff
from airflow_pipelines.connectors.base import (
    CONNECTOR_RETRIES,
    CommitsSteps,
    ConnectorFailure,
    FatalConnectorFailure,
    ForgetsSteps,
    OutputTransport,
    Rewindable,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.outputs.delivery_queue import DeliveryQueue
from airflow_pipelines.host.outputs.sinks import ResumedOutput, SinkOwner
from airflow_pipelines.host.outputs.step_changes import StepChanges, shown_number

CLOSE_S: Final = 5.0
"""The seconds to wait for a write in progress when the pipeline ends, and again after its target was closed."""


class QueuedSink:
    """A sink that writes the changes of a queue in order. After a transient failure it tries again, with another transport.

    A target that commits the numbers of steps gets none that it already has.
    """

    is_queue = True

    def __init__(
        self,
        name: str,
        key: tuple[str, ...],
        queue: DeliveryQueue,
        session: SparkSession,
        open_transport: Callable[[], OutputTransport],
        owner: SinkOwner,
    ) -> None:
        """Create the sink; nothing is opened yet.

        :param name: the name of the output
        :param key: the columns of its index
        :param queue: the changes to write
        :param session: the session that sorts large deltas
        :param open_transport: makes the target's transport
        :param owner: the output that it belongs to
        """
        self.failure: StorageError | FatalConnectorFailure | None = None
        """The error for which the pipeline cannot go on."""
        self.unknown_until: int | None = None
        """The newest step that the target had at the start of this run but the pipeline does not know.

        It is set if the target could not be rewound.
        """
        self._name = name
        self._key = key
        self._queue = queue
        self._session = session
        self._open_transport = open_transport
        self._owner = owner
        self._resumed: ResumedOutput | None = None
        self._opened = False
        self._transport: OutputTransport | None = None
        self._back_off = BackOff(CONNECTOR_RETRIES)
        self._thread: threading.Thread | None = None

    def open(self, resumed: ResumedOutput | None) -> None:
        """Remember the state that the output was left in. The thread opens the target."""
        self._resumed = resumed

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread = threading.Thread(
            target=self._run, args=(self._owner.inherit_properties(),), name=f"output {self._name}", daemon=True
        )
        self._thread.start()

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:  # noqa: ARG002 - the protocol's signature
        """Queue changes."""
        self._queue.put(part)

    def close(self) -> None:
        """End the thread, and close the target. Undelivered changes stay in the queue."""
        self._queue.close()
        if self._thread is None:
            return
        self._thread.join(CLOSE_S)
        transport = self._transport
        if self._thread.is_alive() and transport is not None:
            # The thread hangs in its target; closing the target interrupts it.
            self._close(transport)
            self._thread.join(CLOSE_S)

    def _run(self, begin: Callable[[], None]) -> None:
        try:
            # Large deltas are sorted by jobs that end with the pipeline.
            begin()
            self._write_all()
        except (StorageError, FatalConnectorFailure) as error:
            # The run fails, not this output: it has been replaced, or cannot write anything.
            self.failure = error
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            if not self._queue.wait_closed(0):
                # Waiting changes stay in the queue, for a start with a repaired target.
                self._owner.fail(error)
        finally:
            self._close_transport()
            self._owner.wake()

    def _write_all(self) -> None:
        while not self._queue.wait_closed(0):
            try:
                self._write_on()
                return
            except TransientConnectorFailure as failure:
                self._close_transport()
                wait_s = self._back_off.next_s()
                self._owner.note_trouble(failure, wait_s)
                self._queue.wait_closed(wait_s)

    def _write_on(self) -> None:
        """Open the target, and write changes until it fails or the pipeline ends."""
        transport = self._transport = self._open_transport()
        transport.open(self._opened or self._resumed is not None)
        committed = transport.committed_step() if isinstance(transport, CommitsSteps) else None
        if not self._opened and self._resumed is not None:
            self._go_on(transport, committed, self._resumed)
        if not self._opened:
            self._opened = True
            self._owner.note_opened()
        self._works()
        while (part := self._next(transport, committed)) is not None:
            if committed is None or part.number > committed:
                number = part.number if isinstance(transport, CommitsSteps) else part.step
                records, size = transport.write(number, part.in_order(self._session, self._key))
                self._owner.count_written(records, size)
            self._queue.delivered_first(part.number)
            self._works()
            self._owner.wake()

    def _next(self, transport: OutputTransport, committed: int | None) -> StepChanges | None:
        """Wait for the oldest changes and return them, or None after the end."""
        if isinstance(transport, ForgetsSteps):
            while not self._queue.wait_first(transport.renewal_s):
                newest = max(committed or 0, self._queue.delivered or 0)
                if newest:
                    transport.renew(newest)
        return self._queue.first()

    def _go_on(self, transport: OutputTransport, committed: int | None, resumed: ResumedOutput) -> None:
        """Bring the target to the state from which the pipeline goes on."""
        if isinstance(transport, CommitsSteps):
            if committed is None and isinstance(transport, ForgetsSteps) and transport.was_written():
                self._remind(transport, resumed)
            else:
                self._check_not_behind(committed, resumed.delivered)
            if committed is not None and committed > (resumed.known or 0):
                if isinstance(transport, Rewindable):
                    transport.rewind(resumed.known or 0)
                else:
                    self.unknown_until = committed
        elif isinstance(transport, Rewindable):
            oldest = self._queue.oldest_step
            transport.rewind(resumed.step if oldest is None else min(resumed.step, oldest - 1))

    def _remind(self, transport: ForgetsSteps, resumed: ResumedOutput) -> None:
        """Go on with a target that may have forgotten which steps it has, if the pipeline knows them."""
        delivered, known = resumed.delivered, resumed.known
        if delivered is None:
            return
        if known is not None and known > delivered:
            raise ConnectorFailure(
                f"output {self._name}: the target no longer says which steps it has, since none came for a long time. It has all "
                f"until {shown_number(delivered)}; those until {shown_number(known)} were on their way when the pipeline ended, "
                "and would come twice if it has them. Give the connector another name, and 'send_snapshot': true if it is to begin "
                "with the view's contents"
            )
        transport.renew(delivered)

    def _check_not_behind(self, committed: int | None, delivered: int | None) -> None:
        if delivered is None or (committed is not None and committed >= delivered):
            return
        has = "nothing of this output" if committed is None else shown_number(committed)
        raise ConnectorFailure(
            f"output {self._name}: the target has {has}, but {shown_number(delivered)} had been delivered: it was emptied, "
            "brought back from an older backup, or is another one. What is missing is not kept here. Bring back the target as it "
            "was, or give the connector another name and 'send_snapshot': true, so that it begins anew with the view's contents"
        )

    def _works(self) -> None:
        self._back_off.reset()
        self._owner.note_trouble(None, 0.0)

    def _close_transport(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self._close(transport)

    def _close(self, transport: OutputTransport) -> None:
        try:
            transport.close()
        except StorageError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001  all that was acknowledged is in the target, and the rest is kept
            self._owner.note_trouble(TransientConnectorFailure(f"while closing: {error}"), 0.0)
