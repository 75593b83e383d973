"""Gives what was read of a source as messages, when it is asked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.pickled import to_bytes
from airflow_pipelines.streams.reading.messages import Given
from airflow_pipelines.streams.reading.outbox import MESSAGE_ELEMENTS, Found, MoreSplits, NoInput, Outbox, Piece, Taken
from airflow_pipelines.streams.reading.positions import SourcePosition
from airflow_pipelines.streams.reading.source_reading import NamedSource
from airflow_pipelines.streams.worker.messages import FeedKind, SourceFeed, elements_payload

_MESSAGE_BYTES = 4 << 20
_FIRST_ELEMENTS = 16


class SourceGiving:
    """Makes messages of what was read, and keeps the position after them.

    :param source: the source
    :param outbox: has what was read
    :param is_new: whether the source is read from its beginning, so that its splits are told
    """

    def __init__(self, source: NamedSource, outbox: Outbox, *, is_new: bool) -> None:
        self._source = source
        self._outbox = outbox
        self._is_new = is_new
        self._position: SourcePosition
        # How large elements are is not known before the first ones.
        outbox.message_elements = _FIRST_ELEMENTS

    def give(self, most: int) -> Given | None:
        """What the source has, as soon as it has something.

        :param most: how many elements at most
        :returns: None when it is all over
        :raises BaseException: that because of which the source cannot be read any further
        """
        feeds: list[SourceFeed] = []
        while not feeds:
            taken = self._outbox.take(most)
            if taken is None:
                return None
            feeds += self._feeds(taken)
            self._move_on(taken.pieces)
            if taken.has_ended:
                return Given(self._source.uid, tuple(feeds), self._position.to_bytes(), has_ended=True)
        return Given(self._source.uid, tuple(feeds), self._position.to_bytes())

    def _feeds(self, taken: Taken) -> Iterator[SourceFeed]:
        uid = self._source.uid
        if taken.begins is not None:
            self._position = taken.begins
            if self._is_new:
                yield SourceFeed(uid, -1, FeedKind.SPLITS, len(taken.begins.split_descriptions()))
        for piece in taken.pieces:
            if isinstance(piece, MoreSplits):
                yield SourceFeed(uid, -1, FeedKind.SPLITS, piece.number)
                continue
            if isinstance(piece, NoInput):
                yield SourceFeed(uid, piece.split, FeedKind.NO_INPUT)
                continue
            yield from self._elements(piece)
            if piece.is_last:
                yield SourceFeed(uid, piece.split, FeedKind.ENDED)

    def _elements(self, piece: Piece) -> Iterator[SourceFeed]:
        start = 0
        while start < len(piece.values):
            stop = start + self._outbox.message_elements
            values = piece.values[start:stop]
            payload = self._payload(piece.split, values, piece.timestamps and piece.timestamps[start:stop])
            size = max(1, len(payload) // len(values))
            most = min(MESSAGE_ELEMENTS, 4 * self._outbox.message_elements, _MESSAGE_BYTES // size)
            self._outbox.message_elements = max(1, most)
            yield SourceFeed(self._source.uid, piece.split, FeedKind.ELEMENTS, len(values), payload)
            start = stop

    def _payload(self, split: int, values: list[Any], timestamps: list[int | None] | None) -> bytes:
        try:
            return elements_payload(values, timestamps)
        except Exception as error:
            note_operator(error, self._source.name, f"sending what split {split} gave")
            for value in values:
                # Names what it is in the value that has no bytes.
                to_bytes(value, f"an element of {self._source.name!r}")
            raise

    def _move_on(self, taken: Sequence[Found]) -> None:
        for more in taken:
            if isinstance(more, MoreSplits):
                self._position = self._position.with_splits(more.splits)
        pieces = [piece for piece in taken if isinstance(piece, Piece)]
        positions = {piece.split: piece.position.to_bytes() for piece in pieces}
        self._position = self._position.after(positions, (piece.split for piece in pieces if piece.is_last))
