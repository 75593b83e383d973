"""What an output endpoint gives changes to: a transport that is written within the step, or a queue in front of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from airflow_pipelines.connectors.base import FatalConnectorFailure, OutputTransport, Rewindable
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.host.outputs.step_changes import StepChanges


@dataclass(frozen=True, slots=True)
class ResumedOutput:
    """How an output was left that goes on.

    :param step: the step after which the pipeline goes on
    :param delivered: the greatest number of changes that were delivered then; None when there were none, or it is not known
    :param known: the greatest number of changes that were delivered, or are delivered again; what the target has beyond it was lost
    """

    step: int
    delivered: int | None = None
    known: int | None = None


class Sink(Protocol):
    """Takes an output's changes. All methods are called by the pipeline's thread."""

    @property
    def is_queue(self) -> bool:
        """Whether changes are written later."""

    def open(self, resumed: ResumedOutput | None) -> None:
        """Get ready; ``resumed`` is None for an output that begins."""

    def start(self) -> None:
        """Begin to write what is queued: all that an earlier run left is there."""

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:
        """Write changes, or queue them.

        :param part: the changes
        :param changes: gives them in the output's order
        """

    def close(self) -> None:
        """Let go of the target."""


Written = Callable[[int, int], None]
"""Called with the records and bytes that were written."""
Failed = Callable[[Exception], None]
"""Called with what a sink cannot go on after."""


class InStepSink:
    """Writes each step's changes before the step ends."""

    is_queue = False

    def __init__(self, open_transport: Callable[[], OutputTransport], written: Written, failed: Failed) -> None:
        """Open nothing yet."""
        self._open_transport = open_transport
        self._written = written
        self._failed = failed
        self._transport: OutputTransport | None = None

    def open(self, resumed: ResumedOutput | None) -> None:
        """Open the target, without what was written after the step from which the pipeline goes on.

        :raises StorageError: when the run has been replaced, or cannot write anything
        """
        try:
            transport = self._open_transport()
            self._transport = transport
            transport.open(resumed is not None)
            if resumed is not None and isinstance(transport, Rewindable):
                transport.rewind(resumed.step)
        except (StorageError, FatalConnectorFailure):
            # Not this output fails.
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._failed(error)

    def start(self) -> None:
        """Nothing waits."""

    def write(self, part: StepChanges, changes: Callable[[], Changes]) -> None:
        """Write changes.

        :raises StorageError: when the run has been replaced, or cannot write anything
        """
        if self._transport is None:
            return
        try:
            records, size = self._transport.write(part.step, changes())
        except (StorageError, FatalConnectorFailure):
            raise
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._failed(error)
            return
        self._written(records, size)

    def close(self) -> None:
        """Close the target."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            transport.close()
        except Exception as error:  # noqa: BLE001  whatever a sink raises ends this output only
            self._failed(error)
