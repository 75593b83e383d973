"""The two protocols a connector implements, and what passes through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, runtime_checkable

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import TableChanges


@dataclass(frozen=True, slots=True)
class ConnectorError:
    """One record or transport error: kept in the connector's error list (newest 100 per tag) and counted."""

    tag: str
    message: str
    index: int = 0
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))


class ChunkInTransaction(Enum):
    """Where a chunk stands in a transaction of its input, which opens or joins the pipeline's with the first of its chunks."""

    MORE = "more"
    """The input has more for the transaction."""
    LAST = "last"
    """The input's part of the transaction ends with this chunk."""


@dataclass(frozen=True, slots=True)
class InputChunk:
    """What one read of an input gave.

    ``records`` counts well-formed rows, ``size_bytes`` what was read; ``errors`` are malformed rows, which are not in ``changes``.

    :param position: where the source stands after this chunk
    """

    changes: TableChanges | None
    records: int
    size_bytes: int
    position: Position
    parse_errors: tuple[ConnectorError, ...] = ()
    num_parse_errors: int = 0
    end_of_input: bool = False
    transaction: ChunkInTransaction | None = None


class InputTransport(Protocol):
    """A source that is read chunk by chunk from a thread of its own."""

    def open(self, position: Position | None) -> None:
        """Prepare to read from ``position`` (None: from the start).

        :raises ConnectorFailure: when the source cannot be read
        """

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """The next chunk, or None when nothing came within ``timeout_s``. Not called again after end of input."""

    def close(self) -> None:
        """Let go of the source; safe to call from another thread and more than once."""


@runtime_checkable
class Resting(Protocol):
    """A source that holds something, such as a connection, which it lets go of when it is not read for a while."""

    @property
    def idle_limit_s(self) -> float:
        """For how many seconds it holds it."""

    def rest(self) -> None:
        """Let go of it until the next read. Called by the thread that reads."""


@runtime_checkable
class Committing(Protocol):
    """A source that wants to know what need not be read again. It stays open after its end, until the pipeline ends."""

    def commit(self, position: Position) -> None:
        """A checkpoint or the journal has a position, so that a restart goes on there at the latest.

        Does not wait; may be called from another thread.
        """


@dataclass(frozen=True, slots=True)
class Lag:
    """How far an input is behind its source. None where the source does not say.

    :param records: how many records the source has that were not read yet
    :param bytes: the same in bytes
    :param seconds: how old the newest record was when it was read, or how old the oldest is that was not
    """

    records: int | None = None
    bytes: int | None = None
    seconds: float | None = None


@runtime_checkable
class Lagging(Protocol):
    """A source that knows how much it has that was not read yet."""

    def lag(self) -> Lag | None:
        """What is known at the moment; None before anything is. Does not wait; may be called from another thread."""


@runtime_checkable
class Gauged(Protocol):
    """A source that has figures of its own, which are among the pipeline's metrics."""

    def gauges(self) -> Mapping[str, int]:
        """The figures by their names. Asked after the source was opened, and after each read, by the same thread."""


class OutputTransport(Protocol):
    """A sink that gets each step's changes. All methods are called from one thread at a time."""

    def open(self, resumed: bool) -> None:
        """Prepare to write.

        :param resumed: whether this output has opened the target before, in this or an earlier run of the pipeline. If not, it
            begins: an option such as ``mode: truncate`` has its effect now
        :raises ConnectorFailure: when nothing can be written; :class:`TransientConnectorFailure` when it may be possible later
        """

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write one step's changes. They are in the target when this returns.

        Steps have growing numbers, with gaps. A sink that is no :class:`CommitsSteps` may get a number again after a crash, and
        then with other changes unless the pipeline's fault tolerance is ``exactly_once``.

        :returns: how many records and how many bytes were written
        :raises ConnectorFailure: when they cannot be written; :class:`TransientConnectorFailure` when they may be later. The step
            then comes again, unless :meth:`CommitsSteps.committed_step` says that it is there
        """

    def close(self) -> None:
        """Flush and let go of the sink."""


@runtime_checkable
class Rewindable(Protocol):
    """A sink that remembers what each step wrote, so that a step that is computed again is in it once.

    One that also :class:`CommitsSteps` is asked to take back only what the pipeline no longer knows.
    """

    def rewind(self, step: int) -> None:
        """Take back what was written after ``step``."""


@runtime_checkable
class CommitsSteps(Protocol):
    """A sink whose target keeps the number of a step together with its changes: both are there, or none of them.

    The target keeps it by ``OutputContext.writer``, so that several outputs can have the same target, and in a 64-bit integer. The
    numbers that such a sink gets are those of the step and of the run of the pipeline (run * 10**12 + step): the same number always
    is the same changes, and later changes have a greater one. So a step is not written whose number the target has reached, which
    makes a pipeline exact whose fault tolerance is ``exactly_once``. Under another one, steps of a run that crashed may be computed
    again in another way, and come with numbers of the next run.
    """

    def committed_step(self) -> int | None:
        """The newest step of this output in the target; None when there is none. Asked after :meth:`OutputTransport.open`.

        :raises ConnectorFailure: when it cannot be found out
        """


@runtime_checkable
class ForgetsSteps(Protocol):
    """A :class:`CommitsSteps` whose target forgets the number of a step when it is not written anew for a long time."""

    @property
    def renewal_s(self) -> float:
        """After how many seconds without a step the number is to be written anew."""

    def renew(self, step: int) -> None:
        """Write the number of the newest step anew, without changes.

        :raises ConnectorFailure: when it cannot be written; :class:`TransientConnectorFailure` when it may be later
        """

    def was_written(self) -> bool:
        """Whether the target has, or had, records: if so, its not having a number does not say that it is another target.

        :raises ConnectorFailure: when it cannot be found out
        """


class ConnectorFailure(Exception):
    """A connector cannot go on: what, where, and what to do about it."""


class TransientConnectorFailure(ConnectorFailure):
    """What failed may succeed later: a connection was lost, a server is not there. The connector is unhealthy meanwhile.

    The transport is closed, and after a while another is opened: an input at the position of the last chunk that was taken, an
    output as resumed, which gets the step again that failed. One that cannot be sought is tried again until its first chunk only.
    """


class FatalConnectorFailure(ConnectorFailure):
    """A connector cannot go on, and what the pipeline would do without it is not what was asked for: the pipeline stops."""
