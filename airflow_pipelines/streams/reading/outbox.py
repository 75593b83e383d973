"""Between the thread that reads a source and the one that gives what it has read: neither waits longer than it must."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from airflow_pipelines.streams.reading.positions import KeptPosition, SourcePosition

MESSAGE_ELEMENTS = 4_000
"""Elements of a message at most."""
_MESSAGES_AHEAD = 8
_GATHER_SECONDS = 0.004


@dataclass(slots=True)
class Piece:
    """Elements that a split gave one after the other.

    :param split: its number
    :param values: the elements
    :param timestamps: their timestamps; None when they have none
    :param position: the place after them
    :param is_last: whether nothing follows in the split
    """

    split: int
    values: list[Any]
    timestamps: list[int | None] | None
    position: KeptPosition
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class MoreSplits:
    """The source has more splits, which have numbers behind the others.

    :param splits: pickled descriptions of all of them
    :param number: how many there are
    """

    splits: bytes
    number: int


@dataclass(frozen=True, slots=True)
class NoInput:
    """A split has had nothing to read yet.

    :param split: its number
    """

    split: int


Found: TypeAlias = Piece | MoreSplits | NoInput
"""The changes of a source's state, in order."""


@dataclass(slots=True)
class Taken:
    """What was read.

    :param pieces: elements, in order, and what is said of splits before their elements
    :param begins: where the reading began; told once, before any element
    :param has_ended: whether nothing follows
    """

    pieces: list[Found] = field(default_factory=list)
    begins: SourcePosition | None = None
    has_ended: bool = False


class Outbox:
    """Holds what was read of one source until somebody asks for it. What was asked for says how far it is read.

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
        """Elements of a message at most, fewer when they are large."""

    # the thread that reads

    @property
    def is_closed(self) -> bool:
        """Whether nothing is wanted any more."""
        return self._closed

    @property
    def is_more_wanted(self) -> bool:
        """Whether another element is wanted. Without the lock, for each element: what has just changed is seen with the next."""
        return self._most > self._elements and not self._closed

    def room(self) -> int:
        """How many elements may be read now."""
        with self._wanted:
            if self._ended:
                return 0
            return min(self._most - self._elements, _MESSAGES_AHEAD * self.message_elements - self._elements)

    def wait_for_room(self, seconds: float) -> None:
        """Wait until elements are wanted, a position was committed, or all is over.

        :param seconds: go on after so many
        """
        with self._wanted:
            self._wanted.wait_for(lambda: self._closed or self._commit is not None or self.room() > 0, seconds)

    def wait_for_more(self, seconds: float) -> None:
        """Wait when there is nothing to read, until more is wanted, a position was committed, or all is over.

        :param seconds: go on after so many
        """
        with self._wanted:
            if not self._closed and self._commit is None:
                self._wanted.wait(seconds)

    def take_commit(self) -> bytes | None:
        """The newest position that was committed, once."""
        with self._wanted:
            position, self._commit = self._commit, None
            return position

    def begin(self, position: SourcePosition) -> None:
        """The source was opened.

        :param position: where the reading begins
        """
        with self._arrived:
            self._begins = position
            self._tell()

    def add(self, piece: Piece) -> None:
        """Something was read.

        :param piece: what was read
        """
        with self._arrived:
            self._idle = False
            self._elements += len(piece.values)
            if not (self._pieces and _merged(self._pieces[-1], piece, self.message_elements)):
                self._pieces.append(piece)
            if self._somebody_waits or self.room() <= 0:
                self._tell()

    def add_splits(self, more: MoreSplits) -> None:
        """Splits have appeared.

        :param more: all of them
        """
        with self._arrived:
            self._pieces.append(more)
            self._tell()

    def add_split_without_input(self, split: int) -> None:
        """A split has had nothing to read yet.

        :param split: its number
        """
        with self._arrived:
            self._pieces.append(NoInput(split))
            self._tell()

    def set_idle(self) -> None:
        """The source has nothing more at the moment: what is there is not held back any longer."""
        with self._arrived:
            if not self._idle:
                self._idle = True
                self._tell()

    def end(self) -> None:
        """Nothing follows in any split."""
        with self._arrived:
            self._ended = True
            self._tell()

    def fail(self, error: BaseException) -> None:
        """The source cannot be read any further.

        :param error: why
        """
        with self._arrived:
            self._failure = error
            self._tell()

    # the thread that gives

    def take(self, most: int) -> Taken | None:
        """What was read, as soon as there is something.

        :param most: how many elements at most
        :returns: None when it is all over
        :raises BaseException: that because of which the source cannot be read any further, after all that was read before
        """
        with self._arrived:
            self._most = most
            self._wanted.notify_all()
            self._wait(lambda: self._has_something)
            if not self._closed and not self._is_over:
                # More may come right behind the first; a source that waits for it now holds nothing back for long.
                self._somebody_waits = False
                self._arrived.wait_for(lambda: self._idle or self._is_over or self.room() <= 0, _GATHER_SECONDS)
            self._somebody_waits = False
            self._most = 0
            return self._taken(most)

    def _wait(self, condition: Callable[[], bool]) -> None:
        self._somebody_waits = True
        self._arrived.wait_for(lambda: condition() or self._closed)

    @property
    def _has_something(self) -> bool:
        return bool(self._pieces) or self._begins is not None or self._is_over

    @property
    def _is_over(self) -> bool:
        return self._ended or self._failure is not None or self._closed

    def _taken(self, most: int) -> Taken | None:
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
        """All up to a position is durable; the thread that reads tells the source between two elements.

        :param position: which
        """
        with self._wanted:
            self._commit = position
            self._wanted.notify_all()

    def close(self) -> None:
        """Nothing is wanted any more."""
        with self._wanted:
            self._closed = True
            self._wanted.notify_all()
            self._arrived.notify_all()

    def _tell(self) -> None:
        self._arrived.notify_all()


def _elements(piece: Found) -> int:
    return len(piece.values) if isinstance(piece, Piece) else 0


def _merged(last: Found, piece: Piece, most: int) -> bool:
    """Put elements behind others of the same split, where they fit into one message."""
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
