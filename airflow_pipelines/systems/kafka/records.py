"""Records, whoever has fetched them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

_NO_TIMESTAMP: Final = 0
"""The type of the timestamp of a record that has none."""


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


def next_offset(record: Record) -> int:
    """Return the offset behind a record."""
    return (record.offset() or 0) + 1


def next_offsets(records: Iterable[Record]) -> dict[int, int]:
    """Return the offset behind the last of some records, by partition.

    :param records: records of one topic, in order within each partition
    """
    return {record.partition() or 0: next_offset(record) for record in records}


def timestamp_of(record: Record) -> int | None:
    """Return the timestamp of a record in milliseconds since 1970; None if it has none."""
    kind, milliseconds = record.timestamp()
    return None if kind == _NO_TIMESTAMP else milliseconds


def headers_of(record: Record) -> tuple[tuple[str, bytes | None], ...]:
    """Return names and values of the headers of a record, in order."""
    headers = record.headers() or ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
