"""Requests for checkpoints, by number, and their results."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from airflow_pipelines.host.state.error_list import stamp


class CheckpointRequests:
    """The checkpoint requests of one incarnation, numbered from 0, with the last success and failure."""

    def __init__(self, incarnation: UUID) -> None:
        self.incarnation = incarnation
        self._lock = threading.Lock()
        self._next = 0
        self._success: int | None = None
        self._failure: dict[str, Any] | None = None
        self._started_at: datetime | None = None
        self._delayed: tuple[list[str], datetime] | None = None

    def request(self) -> int:
        """Register a new request and return its number."""
        with self._lock:
            number = self._next
            self._next += 1
            return number

    def note_start(self) -> None:
        """Note that a checkpoint is being written."""
        with self._lock:
            self._delayed = None
            self._started_at = datetime.now(UTC)

    def note_delay(self, reasons: list[str]) -> None:
        """Note that a checkpoint has to wait.

        :param reasons: the reasons, in wire form
        """
        with self._lock:
            since = datetime.now(UTC) if self._delayed is None else self._delayed[1]
            self._delayed = (reasons, since)

    def note_success(self, number: int) -> None:
        """Note that the request ``number`` led to a checkpoint."""
        with self._lock:
            self._success = number
            self._started_at = None

    def note_failure(self, number: int, error: str) -> None:
        """Note that the request ``number`` did not lead to a checkpoint."""
        with self._lock:
            self._failure = {"sequence_number": number, "error": error, "failed_at": stamp(datetime.now(UTC))}
            self._started_at = None

    def is_pending(self, number: int) -> bool:
        """Return True if the request ``number`` has neither succeeded nor failed yet."""
        with self._lock:
            return not self._has_succeeded(number) and not self._has_failed(number)

    def error_of(self, number: int) -> str | None:
        """Return the reason why the request ``number`` failed, or None if it succeeded or is pending."""
        with self._lock:
            failed = self._has_failed(number) and not self._has_succeeded(number)
            return str(self._failure["error"]) if failed and self._failure is not None else None

    def status(self) -> dict[str, Any]:
        """Return the answer of ``GET checkpoint_status``."""
        with self._lock:
            return {"success": self._success, "failure": self._failure, "activity": self._activity()}

    def activity(self) -> dict[str, Any]:
        """Return the ``checkpoint_activity`` of the statistics."""
        with self._lock:
            return self._activity()

    def _has_succeeded(self, number: int) -> bool:
        # Checkpoints are taken one after the other, and each includes the state of the earlier requests.
        return self._success is not None and self._success >= number

    def _has_failed(self, number: int) -> bool:
        return self._failure is not None and int(self._failure["sequence_number"]) >= number

    def _activity(self) -> dict[str, Any]:
        if self._started_at is not None:
            return {"status": "in_progress", "started_at": stamp(self._started_at)}
        if self._delayed is not None:
            return {"status": "delayed", "reasons": self._delayed[0], "delayed_since": stamp(self._delayed[1])}
        return {"status": "idle"}
