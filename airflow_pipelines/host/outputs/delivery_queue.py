"""The queue of changes that wait for the target of an output."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.connector_state import KeptStep
from airflow_pipelines.host.outputs.step_changes import StepChanges

MEMORY_BYTES: Final = 64 << 20
"""The approximate number of bytes of waiting changes in memory; the others are in files."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a queue, at which steps wait.

    :param records: the maximum number of records
    :param bytes: the maximum number of bytes
    """

    records: int
    bytes: int


class DeliveryQueue:
    """The changes of an output in the order of their steps. The pipeline's thread adds to it, the output's thread takes from it.

    The first change is removed once it is delivered, so that a checkpoint taken meanwhile keeps it.
    """

    def __init__(self, limits: QueueLimits, store: BatchStore) -> None:
        """Create an empty queue.

        :param limits: the limits at which steps wait
        :param store: the store to which changes spill that are too large for memory
        """
        self._limits = limits
        self._store = store
        self._condition = threading.Condition()
        self._parts: deque[StepChanges] = deque()
        self._records = 0
        self._bytes = 0
        self._full_since: float | None = None
        self._closed = False
        self.delivered: int | None = None
        """The greatest number of the changes that were delivered."""

    def put(self, part: StepChanges) -> None:
        """Add changes, even if the queue is full: the caller checks that first.

        After the end, changes are kept for a checkpoint.
        """
        if self._bytes + part.delta.memory_bytes > MEMORY_BYTES:
            part = part.in_files(self._store)
        with self._condition:
            self._parts.append(part)
            self._count(part, 1)
            self._condition.notify_all()

    def wait_first(self, seconds: float) -> bool:
        """Wait for changes or the end.

        :returns: True if :meth:`first` returns at once
        """
        with self._condition:
            return bool(self._condition.wait_for(lambda: self._parts or self._closed, seconds))

    def first(self) -> StepChanges | None:
        """Wait for changes and return the oldest, or None after the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._parts or self._closed)
            return None if self._closed else self._parts[0]

    def delivered_first(self, number: int) -> None:
        """Remove the oldest changes, which are in the target.

        :param number: the number of these changes
        """
        with self._condition:
            if self._parts and self._parts[0].number == number:
                self._count(self._parts.popleft(), -1)
                self.delivered = number

    def wait_closed(self, seconds: float) -> bool:
        """Wait for a time, or until the end.

        :returns: True if the end has come
        """
        with self._condition:
            return self._condition.wait_for(lambda: self._closed, seconds)

    def clear(self) -> int:
        """Drop all waiting changes, because nobody will deliver them.

        :returns: the number of records dropped
        """
        with self._condition:
            records = self._records
            while self._parts:
                self._count(self._parts.popleft(), -1)
            return records

    def close(self) -> None:
        """End the delivery. Waiting changes are kept for a checkpoint."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def kept(self) -> tuple[int | None, tuple[KeptStep, ...]]:
        """Return the state for a checkpoint: the greatest delivered number, and the undelivered changes, flushed to disk."""
        with self._condition:
            parts = list(self._parts)
            delivered = self.delivered
        # Files are written without the lock, which would hold up the delivery.
        flushed = [part.to_kept(self._store) for part in parts]
        on_disk = {part.number: part for part, _ in flushed}
        with self._condition:
            # The files are kept as long as the queue refers to them.
            self._parts = deque(on_disk.get(part.number, part) for part in self._parts)
        return delivered, tuple(kept for _, kept in flushed)

    def known_before(self, epoch: int) -> int | None:
        """Return the greatest number of the changes of earlier runs that were delivered or wait, or None if there are none.

        :param epoch: the epoch of this run
        """
        with self._condition:
            earlier = [part.number for part in self._parts if part.epoch < epoch]
        return max(earlier, default=self.delivered)

    @property
    def batches(self) -> int:
        """The number of steps that wait."""
        return len(self._parts)

    @property
    def records(self) -> int:
        """The number of records that wait."""
        return self._records

    @property
    def memory_bytes(self) -> int:
        """The number of bytes that wait in memory."""
        return self._bytes

    @property
    def oldest_step(self) -> int | None:
        """The oldest step that waits, or None if none does."""
        with self._condition:
            return self._parts[0].first_step if self._parts else None

    @property
    def is_full(self) -> bool:
        """True if steps should wait."""
        return self._full_since is not None

    @property
    def full_s(self) -> float:
        """The number of seconds for which the queue has been full."""
        since = self._full_since
        return 0.0 if since is None else time.monotonic() - since

    def _count(self, part: StepChanges, times: int) -> None:
        self._records += times * part.delta.rows
        self._bytes += times * part.delta.memory_bytes
        full = self._records >= self._limits.records or self._bytes >= self._limits.bytes
        if not full:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = time.monotonic()
