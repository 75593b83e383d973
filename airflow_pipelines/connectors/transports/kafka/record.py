"""What a record is, whoever has fetched it."""

from __future__ import annotations

from typing import Any, Protocol


class Record(Protocol):
    """A record, as the client of Kafka shows it."""

    def topic(self) -> str | None:
        """The name of its topic."""

    def partition(self) -> int | None:
        """The number of its partition."""

    def offset(self) -> int | None:
        """Its place there."""

    def key(self) -> Any:
        """Its key; None without one."""

    def value(self) -> Any:
        """Its value; None for a tombstone."""

    def headers(self) -> Any:
        """Its headers."""

    def timestamp(self) -> tuple[int, int]:
        """What kind of time it has, and that in milliseconds."""
