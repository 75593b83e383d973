"""The two protocols that a connector implements, and the data that passes through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, Protocol, runtime_checkable

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import TableChanges

CONNECTOR_RETRIES: Final = RetryPolicy(first_wait_s=0.5, longest_wait_s=30.0)
"""The waits before a source or target that failed for the moment is used again."""


@dataclass(frozen=True, slots=True)
class CountedError:
    """A record or transport error. It is counted, and kept in the connector's error list (the newest 100 per tag)."""

    tag: str
    message: str
    index: int = 0
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))


class ChunkInTransaction(Enum):
    """The place of a chunk in a transaction of its input. The first of its chunks opens or joins the pipeline's transaction."""

    MORE = "more"
    """The input has more for the transaction."""
    LAST = "last"
    """The input's part of the transaction ends with this chunk."""


@dataclass(frozen=True, slots=True)
class InputChunk:
    """The result of one read of an input.

    ``records`` counts well-formed rows, ``size_bytes`` the bytes that were read; ``errors`` are malformed rows, which are not in
    ``changes``.

    :param position: the position of the source after this chunk
    """

    changes: TableChanges | None
    records: int
    size_bytes: int
    position: Position
    parse_errors: tuple[CountedError, ...] = ()
    num_parse_errors: int = 0
    end_of_input: bool = False
    transaction: ChunkInTransaction | None = None


class InputTransport(Protocol):
    """A source that is read chunk by chunk from its own thread."""

    def open(self, position: Position | None) -> None:
        """Prepare to read from ``position`` (None: from the start).

        :raises ConnectorFailure: if the source cannot be read
        """

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next chunk, or None if nothing arrived within ``timeout_s``. It is not called again after the end of input."""

    def close(self) -> None:
        """Release the source. It is safe to call this from another thread and more than once."""


@runtime_checkable
class Resting(Protocol):
    """A source that holds a resource, such as a connection, and releases it while it is not read."""

    @property
    def idle_limit_s(self) -> float:
        """The number of seconds for which an idle source keeps the resource."""

    def rest(self) -> None:
        """Release the resource until the next read. The reading thread calls this."""


@runtime_checkable
class Committing(Protocol):
    """A source that is notified of records that need not be read again. It stays open after its end, until the pipeline ends."""

    def commit(self, position: Position) -> None:
        """Note that a checkpoint or the journal has a position, so that a restart resumes there at the latest.

        It must not wait, and can be called from another thread.
        """


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of an input behind its source. A value is None if the source does not report it.

    :param records: the number of unread records of the source
    :param bytes: the number of unread bytes of the source
    :param seconds: the age of the newest record when it was read, or of the oldest unread one
    """

    records: int | None = None
    bytes: int | None = None
    seconds: float | None = None


@runtime_checkable
class Lagging(Protocol):
    """A source that knows the amount of its unread data."""

    def lag(self) -> Lag | None:
        """Return the current lag; None before it is known. It must not wait, and can be called from another thread."""


@runtime_checkable
class Gauged(Protocol):
    """A source with its own gauges, which are among the pipeline's metrics."""

    def gauges(self) -> Mapping[str, int]:
        """Return the gauges by name. The reading thread calls this after the source was opened, and after each read."""


class OutputTransport(Protocol):
    """A sink that receives each step's changes. All methods are called from one thread at a time."""

    def open(self, resumed: bool) -> None:
        """Prepare to write.

        :param resumed: True if this output has opened the target before, in this or an earlier run of the pipeline. Otherwise it
            begins: an option such as ``mode: truncate`` takes effect now
        :raises ConnectorFailure: if nothing can be written; :class:`TransientConnectorFailure` if it may be possible later
        """

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write one step's changes. They are in the target when this returns.

        Steps have increasing numbers, with gaps. A sink that is not a :class:`CommitsSteps` can get a number again after a crash,
        and then with other changes unless the pipeline's fault tolerance is ``exactly_once``.

        :returns: the number of records and of bytes that were written
        :raises ConnectorFailure: if they cannot be written; :class:`TransientConnectorFailure` if they may be later. The step then
            comes again, unless :meth:`CommitsSteps.committed_step` says that it is there
        """

    def close(self) -> None:
        """Flush and release the sink."""


@runtime_checkable
class Rewindable(Protocol):
    """A sink that remembers what each step wrote, so that a step that is computed again is in it once.

    If it is also a :class:`CommitsSteps`, it is asked to take back only steps that the pipeline no longer knows.
    """

    def rewind(self, step: int) -> None:
        """Take back everything that was written after ``step``."""


@runtime_checkable
class CommitsSteps(Protocol):
    """A sink whose target commits the number of a step atomically with its changes.

    The target keeps the number by ``OutputContext.writer``, so that several outputs can have the same target, and as a 64-bit
    integer. Such a sink gets numbers made of the run of the pipeline and the step (run * 10**12 + step): the same number always has
    the same changes, and later changes have a greater one. So a step is not written if the target has reached its number, which
    makes a pipeline with the fault tolerance ``exactly_once`` exact. With another one, steps of a run that crashed can be computed
    again in another way, and get numbers of the next run.
    """

    def committed_step(self) -> int | None:
        """Return the newest step of this output in the target; None if there is none.

        It is called after :meth:`OutputTransport.open`.

        :raises ConnectorFailure: if it cannot be determined
        """


@runtime_checkable
class ForgetsSteps(Protocol):
    """A :class:`CommitsSteps` whose target forgets the number of a step that is not renewed for a long time."""

    @property
    def renewal_s(self) -> float:
        """The number of seconds without a step after which the number must be renewed."""

    def renew(self, step: int) -> None:
        """Write the number of the newest step again, without changes.

        :raises ConnectorFailure: if it cannot be written; :class:`TransientConnectorFailure` if it may be later
        """

    def was_written(self) -> bool:
        """Return True if the target has, or had, records, so that a missing number does not mean that it is another target.

        :raises ConnectorFailure: if it cannot be determined
        """


class ConnectorFailure(Exception):
    """A failure with which a connector cannot continue. The message names the problem, its place and a remedy."""


class TransientConnectorFailure(ConnectorFailure):
    """A failure that may pass: a connection was lost, or a server is unreachable. The connector is unhealthy meanwhile.

    The transport is closed, and after a while another is opened: an input at the position of the last chunk that was taken; an
    output as resumed, which gets the failed step again. An input that cannot seek is retried only until its first chunk.
    """


class FatalConnectorFailure(ConnectorFailure):
    """A failure of a connector that the pipeline cannot do without, so the pipeline stops."""
