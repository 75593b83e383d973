"""The errors of one connector: all are counted, the newest are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from airflow_pipelines.connectors.base import CountedError
from airflow_pipelines.engine.storage.connector_state import ErrorsState, KeptError

KEPT_ERRORS = 100
"""The number of the newest errors that are kept per tag."""


class ErrorList:
    """The errors of one kind of one connector: all are counted, the newest hundred per tag are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: dict[str, deque[CountedError]] = {}

    def add(self, error: CountedError) -> None:
        """Count and keep one error."""
        self.extend([error], 1)

    def extend(self, errors: Iterable[CountedError], count: int) -> None:
        """Count ``count`` errors, of which ``errors`` are described."""
        self.count += count
        for error in errors:
            self._kept.setdefault(error.tag, deque(maxlen=KEPT_ERRORS)).append(error)

    def to_wire(self) -> list[dict[str, Any]]:
        """Return the kept errors, oldest first."""
        return [error.to_json() for error in self.to_state().kept]

    def to_state(self) -> ErrorsState:
        """Return the part that a checkpoint keeps. The connector's own thread may add errors meanwhile."""
        errors = sorted((error for kept in list(self._kept.values()) for error in list(kept)), key=lambda error: error.timestamp)
        return ErrorsState(self.count, tuple(KeptError(stamp(e.timestamp), e.index, e.tag, e.message) for e in errors))

    @classmethod
    def from_state(cls, state: ErrorsState) -> ErrorList:
        """Return the list that :meth:`to_state` described."""
        errors = cls()
        for kept in state.kept:
            when = datetime.fromisoformat(kept.timestamp)
            errors.extend([CountedError(kept.tag, kept.message, kept.index, when)], 0)
        errors.count = state.count
        return errors


def stamp(moment: datetime) -> str:
    """Return a time in the form of RFC 3339 in UTC with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
