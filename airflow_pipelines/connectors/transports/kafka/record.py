"""The interface of a record, whoever has fetched it."""

from __future__ import annotations

from typing import Any, Protocol


class Record(Protocol):
    """A record, with the interface of Kafka's client."""

    def topic(self) -> str | None:
        """Return the name of its topic."""

    def partition(self) -> int | None:
        """Return the number of its partition."""

    def offset(self) -> int | None:
        """Return its offset in the partition."""

    def key(self) -> Any:
        """Return its key, or None without one."""

    def value(self) -> Any:
        """Return its value, or None for a tombstone."""

    def headers(self) -> Any:
        """Return its headers."""

    def timestamp(self) -> tuple[int, int]:
        """Return the type of its timestamp, and the time in milliseconds."""
