"""The outbox between the thread that reads a source and the thread that sends its elements. Neither waits longer than it must."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from airflow_pipelines.streams.reading.positions import KeptPosition, SourcePosition

MESSAGE_ELEMENTS = 4_000
"""The maximum number of elements of a message."""
_MESSAGES_AHEAD = 8
_GATHER_SECONDS = 0.004


@dataclass(slots=True)
class Piece:
    """Consecutive elements of a split.

    :param split: the number of the split
    :param values: the elements
    :param timestamps: their timestamps; None if they have none
    :param position: the position after them
    :param is_last: True if nothing follows in the split
    """

    split: int
    values: list[Any]
    timestamps: list[int | None] | None
    position: KeptPosition
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class MoreSplits:
    """New splits of the source, which are numbered after the others.

    :param splits: the pickled descriptions of all splits
    :param number: the number of all splits
    """

    splits: bytes
    number: int


@dataclass(frozen=True, slots=True)
class NoInput:
    """A split that has had nothing to read yet.

    :param split: its number
    """

    split: int


Found: TypeAlias = Piece | MoreSplits | NoInput
"""The changes of a source's state, in order."""


@dataclass(slots=True)
class Taken:
    """The content that was taken from an outbox.

    :param pieces: elements, in order, and notices about splits before their elements
    :param begins: the position at which reading began; given once, before any element
    :param has_ended: True if nothing follows
    """

    pieces: list[Found] = field(default_factory=list)
    begins: SourcePosition | None = None
    has_ended: bool = False


class Outbox:
    """A buffer for the elements of one source until they are requested. The request determines how far the source is read.

    One thread reads (:meth:`wait_for_room`, :meth:`room`, :meth:`add` ...), another takes (:meth:`take`).
    """

    def __init__(self) -> None:
        lock = threading.RLock()
        self._wanted = threading.Condition(lock)
        self._arrived = threading.Condition(lock)
        self._most = 0
        self._pieces: deque[Found] = deque()
        self._elements = 0
        self._begins: SourcePosition | None = None
        self._idle = False
        self._ended = False
        self._failure: BaseException | None = None
        self._commit: bytes | None = None
        self._closed = False
        self._somebody_waits = False
        self.message_elements = MESSAGE_ELEMENTS
        """The maximum number of elements of a message, lower if the elements are large."""

    # the thread that reads

    @property
    def is_closed(self) -> bool:
        """True if no more elements are wanted."""
        return self._closed

    @property
    def is_more_wanted(self) -> bool:
        """True if another element is wanted.

        It is read without the lock, for each element: a change is seen with the next element.
        """
        return self._most > self._elements and not self._closed

    def room(self) -> int:
        """Return the number of elements that may be read now."""
        with self._wanted:
            if self._ended:
                return 0
            return min(self._most - self._elements, _MESSAGES_AHEAD * self.message_elements - self._elements)

    def wait_for_room(self, seconds: float) -> None:
        """Wait until elements are wanted, a position was committed, or the outbox is closed.

        :param seconds: the timeout in seconds
        """
        with self._wanted:
            self._wanted.wait_for(lambda: self._closed or self._commit is not None or self.room() > 0, seconds)

    def wait_for_more(self, seconds: float) -> None:
        """Wait, when there is nothing to read, until more is wanted, a position was committed, or the outbox is closed.

        :param seconds: the timeout in seconds
        """
        with self._wanted:
            if not self._closed and self._commit is None:
                self._wanted.wait(seconds)

    def take_commit(self) -> bytes | None:
        """Remove and return the newest committed position, or None if there is no new one."""
        with self._wanted:
            position, self._commit = self._commit, None
            return position

    def begin(self, position: SourcePosition) -> None:
        """Record the position at which reading begins, after the source was opened.

        :param position: the position
        """
        with self._arrived:
            self._begins = position
            self._notify()

    def add(self, piece: Piece) -> None:
        """Add elements that were read.

        :param piece: the elements
        """
        with self._arrived:
            self._idle = False
            self._elements += len(piece.values)
            if not (self._pieces and _try_to_merge(self._pieces[-1], piece, self.message_elements)):
                self._pieces.append(piece)
            if self._somebody_waits or self.room() <= 0:
                self._notify()

    def add_splits(self, more: MoreSplits) -> None:
        """Add splits that have appeared.

        :param more: all splits
        """
        with self._arrived:
            self._pieces.append(more)
            self._notify()

    def add_split_without_input(self, split: int) -> None:
        """Add a notice that a split has had nothing to read yet.

        :param split: its number
        """
        with self._arrived:
            self._pieces.append(NoInput(split))
            self._notify()

    def set_idle(self) -> None:
        """Note that the source has nothing more at the moment, so that the available elements are sent without delay."""
        with self._arrived:
            if not self._idle:
                self._idle = True
                self._notify()

    def end(self) -> None:
        """Note that nothing follows in any split."""
        with self._arrived:
            self._ended = True
            self._notify()

    def fail(self, error: BaseException) -> None:
        """Record the error that stopped the source.

        :param error: the error
        """
        with self._arrived:
            self._failure = error
            self._notify()

    # the thread that takes

    def take(self, most: int) -> Taken | None:
        """Wait for elements, then remove and return them.

        :param most: the maximum number of elements
        :returns: the elements, None if the outbox was closed
        :raises BaseException: if reading has failed and all elements before it were taken; the error that stopped the source
        """
        with self._arrived:
            self._most = most
            self._wanted.notify_all()
            self._wait(lambda: self._has_something)
            if not self._closed and not self._is_over:
                # More elements may follow the first at once, so gather them for a moment.
                self._somebody_waits = False
                self._arrived.wait_for(lambda: self._idle or self._is_over or self.room() <= 0, _GATHER_SECONDS)
            self._somebody_waits = False
            self._most = 0
            return self._take_pieces(most)

    def _wait(self, condition: Callable[[], bool]) -> None:
        self._somebody_waits = True
        self._arrived.wait_for(lambda: condition() or self._closed)

    @property
    def _has_something(self) -> bool:
        return bool(self._pieces) or self._begins is not None or self._is_over

    @property
    def _is_over(self) -> bool:
        return self._ended or self._failure is not None or self._closed

    def _take_pieces(self, most: int) -> Taken | None:
        if self._closed:
            return None
        taken = Taken(begins=self._begins)
        self._begins = None
        number = 0
        while self._pieces and (number == 0 or number + _elements(self._pieces[0]) <= most):
            piece = self._pieces.popleft()
            number += _elements(piece)
            taken.pieces.append(piece)
        self._elements -= number
        if not taken.pieces and taken.begins is None and self._failure is not None:
            raise self._failure
        taken.has_ended = self._ended and not self._pieces
        return taken

    def commit(self, position: bytes) -> None:
        """Record that everything up to a position is durable. The thread that reads tells the source between two elements.

        :param position: the position
        """
        with self._wanted:
            self._commit = position
            self._wanted.notify_all()

    def close(self) -> None:
        """Close the outbox: no more elements are wanted."""
        with self._wanted:
            self._closed = True
            self._wanted.notify_all()
            self._arrived.notify_all()

    def _notify(self) -> None:
        self._arrived.notify_all()


def _elements(piece: Found) -> int:
    return len(piece.values) if isinstance(piece, Piece) else 0


def _try_to_merge(last: Found, piece: Piece, most: int) -> bool:
    """Append elements to others of the same split, if they fit into one message. Return True if this was done."""
    if not isinstance(last, Piece) or last.split != piece.split or len(last.values) + len(piece.values) > most:
        return False
    if last.timestamps is None and piece.timestamps is not None:
        last.timestamps = [None] * len(last.values)
    if last.timestamps is not None:
        last.timestamps += piece.timestamps or [None] * len(piece.values)
    last.values += piece.values
    last.position = piece.position
    last.is_last = piece.is_last
    return True
