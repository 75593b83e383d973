"""A collector of the changes of transactions, which fills chunks and never mixes a part of a transaction with anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_pipelines.connectors.transports.postgresql.raw_changes import Entry


@dataclass(frozen=True, slots=True)
class Portion:
    """The changes for one chunk.

    :param entries: the changes
    :param size_bytes: the number of bytes in which they were sent
    :param place: the place in the log after the newest transaction that has been given as a whole
    :param messages: the number of messages of the next transaction that were given with this and earlier portions
    :param is_part: True if it is a part of a transaction
    :param ends: True if it ends a transaction that began with an earlier portion
    """

    entries: Sequence[Entry]
    size_bytes: int
    place: int
    messages: int = 0
    is_part: bool = False
    ends: bool = False


@dataclass(slots=True)
class _Collected:
    entries: list[Entry] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, entries: Sequence[Entry], size_bytes: int) -> None:
        self.entries.extend(entries)
        self.size_bytes += size_bytes


class StreamedTransactions:
    """The transactions of a stream, from a place in the log on.

    :param place: the place
    :param messages: the number of messages of the first transaction that were given before, and are skipped
    """

    def __init__(self, place: int, messages: int = 0) -> None:
        self.place = place
        """The place after the newest transaction that was received as a whole."""
        self.given_place = place
        """The place after the newest transaction that was given as a whole."""
        self._given = messages
        self._seen = 0
        self._whole = _Collected()
        self._open = _Collected()
        self.is_open = False
        """True if a transaction has begun and not ended."""

    def begin(self) -> None:
        """Begin a transaction."""
        self.is_open = True
        self._seen = 0
        self._open = _Collected()

    def next_is_known(self) -> bool:
        """Count a message of the open transaction. Return True if it was given before."""
        self._seen += 1
        return self._seen <= self._given

    def add(self, entries: Sequence[Entry], size_bytes: int) -> None:
        """Add the changes of a message of the open transaction.

        :param entries: the changes
        :param size_bytes: the size of the message
        """
        self._open.add(entries, size_bytes)

    def commit(self, place: int) -> Portion | None:
        """End the open transaction.

        :param place: the place in the log after it
        :returns: its last portion, when others were given before
        """
        self.is_open = False
        self.place = place
        last, self._open = self._open, _Collected()
        if self._given:
            self._given = 0
            self.given_place = place
            return Portion(last.entries, last.size_bytes, place, is_part=True, ends=True)
        self._whole.add(last.entries, last.size_bytes)
        return None

    @property
    def has_whole(self) -> bool:
        """True if there is a change of a transaction that was received as a whole."""
        return bool(self._whole.entries)

    def full(self, most: int) -> Portion | None:
        """Return a portion if the collected changes fill a chunk, else None.

        :param most: the number of changes of a full chunk
        """
        if len(self._whole.entries) + len(self._open.entries) < most:
            return None
        return self.whole() or self._part()

    def whole(self) -> Portion | None:
        """Return all transactions that were received as a whole, or None if none of them has a change."""
        if not self._whole.entries:
            return None
        collected, self._whole = self._whole, _Collected()
        self.given_place = self.place
        return Portion(collected.entries, collected.size_bytes, self.place)

    def move_to(self, place: int) -> Portion | None:
        """Return an empty portion that moves the position to a place, or None while there is something to give first.

        :param place: the place
        """
        if self.is_open or self._whole.entries or place <= self.given_place:
            return None
        self.place = self.given_place = place
        return Portion((), 0, place)

    def again(self) -> StreamedTransactions:
        """Return a collector of the same stream once more, from the end of what was given."""
        return StreamedTransactions(self.given_place, self._given)

    def _part(self) -> Portion:
        collected, self._open = self._open, _Collected()
        self._given = self._seen
        return Portion(collected.entries, collected.size_bytes, self.given_place, self._given, is_part=True)
