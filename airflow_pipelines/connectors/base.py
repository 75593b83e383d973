"""The two protocols a connector implements, and what passes through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol, runtime_checkable

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.engine.changes import TableChanges
from airflow_pipelines.engine.storage.connector_state import Position


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
        """The effect of all that was read up to a position is on disk. Does not wait; may be called from another thread."""


class OutputTransport(Protocol):
    """A sink that gets each step's encoded delta."""

    def open(self, resumed: bool) -> None:
        """Prepare to write; ``resumed`` is True when the pipeline goes on from a checkpoint."""

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write one step's changes.

        :returns: how many records and how many bytes were written
        """

    def close(self) -> None:
        """Flush and let go of the sink."""


@runtime_checkable
class Rewindable(Protocol):
    """A sink that remembers what each step wrote, so that a step that is computed again is in it once."""

    def rewind(self, step: int) -> None:
        """Take back what was written after ``step``."""


class ConnectorFailure(Exception):
    """A connector cannot go on: what, where, and what to do about it."""


class FatalConnectorFailure(ConnectorFailure):
    """A connector cannot go on, and what the pipeline would do without it is not what was asked for: the pipeline stops."""


class UnknownOptionError(ValueError):
    """A connector declaration names a transport, format or option that does not exist; the message lists the known ones.

    :param word: what was written wrongly, so that whoever has the declaration's text can point at it; None: all of it
    """

    def __init__(self, message: str, word: str | None = None) -> None:
        super().__init__(message)
        self.word = word


class InvalidOptionError(UnknownOptionError):
    """A known option is missing, has a value that is not allowed, or asks for something that is not supported here."""
