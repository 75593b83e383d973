"""The sinks of an output endpoint: a transport that is written within the step, or a queue in front of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from airflow_pipelines.connectors.base import FatalConnectorFailure, OutputTransport, Rewindable, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.outputs.step_changes import StepChanges


@dataclass(frozen=True, slots=True)
class ResumedOutput:
    """The state in which an output was left that goes on.

    :param step: the step after which the pipeline goes on
    :param delivered: the greatest number of the changes delivered by then, or None if there were none or it is not known
    :param known: the greatest number of the changes that were delivered or are delivered again; later ones in the target were lost
        here
    """

    step: int
    delivered: int | None = None
    known: int | None = None


class Sink(Protocol):
    """A consumer of an output's changes. The pipeline's thread calls all methods."""

    @property
    def is_queue(self) -> bool:
        """True if changes are written later."""

    def open(self, resumed: ResumedOutput | None) -> None:
        """Prepare the sink; ``resumed`` is None for an output that begins."""

    def start(self) -> None:
        """Start to write the queued changes: all that an earlier run left are in the queue."""

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:
        """Write changes, or queue them.

        :param part: the changes
        :param changes: returns them in the output's order
        """

    def close(self) -> None:
        """Close the target."""


class SinkOwner(Protocol):
    """The output that a sink belongs to, which notes what becomes of it. The thread that writes calls the methods."""

    def inherit_properties(self) -> Callable[[], None]:
        """Return a function with which another thread takes over the job properties of this one, which starts it."""

    def note_opened(self) -> None:
        """Note that the target was opened for the first time."""

    def count_written(self, records: int, size_bytes: int) -> None:
        """Count what was written."""

    def fail(self, error: Exception) -> None:
        """Note the error after which the sink cannot go on."""

    def note_trouble(self, failure: TransientConnectorFailure | None, wait_s: float) -> None:
        """Note a transient failure and the seconds until the next try, or with None that the sink works."""

    def wake(self) -> None:
        """Wake those who wait for deliveries: something was delivered, or the sink cannot go on."""


class InStepSink:
    """A sink that writes each step's changes before the step ends."""

    is_queue = False

    def __init__(self, open_transport: Callable[[], OutputTransport], owner: SinkOwner) -> None:
        """Create the sink; nothing is opened yet.

        :param open_transport: makes the target's transport
        :param owner: the output that it belongs to
        """
        self._open_transport = open_transport
        self._owner = owner
        self._transport: OutputTransport | None = None

    def open(self, resumed: ResumedOutput | None) -> None:
        """Open the target, and rewind it to the step from which the pipeline goes on.

        :raises StorageError: if the run has been replaced, or cannot write anything
        """
        try:
            transport = self._open_transport()
            self._transport = transport
            transport.open(resumed is not None)
            if resumed is not None and isinstance(transport, Rewindable):
                transport.rewind(resumed.step)
        except (StorageError, FatalConnectorFailure):
            # The run fails, not this output.
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._owner.fail(error)

    def start(self) -> None:
        """Do nothing: no changes wait."""

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:
        """Write changes.

        :raises StorageError: if the run has been replaced, or cannot write anything
        """
        if self._transport is None:
            return
        try:
            records, size = self._transport.write(part.step, changes())
        except (StorageError, FatalConnectorFailure):
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._owner.fail(error)
            return
        self._owner.count_written(records, size)

    def close(self) -> None:
        """Close the target."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            transport.close()
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._owner.fail(error)
