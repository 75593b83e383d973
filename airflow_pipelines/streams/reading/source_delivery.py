"""Delivery of the elements of a source as messages, on request."""

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


class SourceDelivery:
    """A converter of the elements that were read to messages. It keeps the position after them.

    :param source: the source
    :param outbox: the outbox with the elements that were read
    :param is_new: True if the source is read from its beginning, so that its splits are reported
    """

    def __init__(self, source: NamedSource, outbox: Outbox, *, is_new: bool) -> None:
        self._source = source
        self._outbox = outbox
        self._is_new = is_new
        self._position: SourcePosition
        # The size of the elements is unknown at first.
        outbox.message_elements = _FIRST_ELEMENTS

    def give(self, most: int) -> Given | None:
        """Return the next messages of the source, as soon as there are any.

        :param most: the maximum number of elements
        :returns: the messages, None if the outbox was closed
        :raises BaseException: if reading has failed; the error that stopped the source
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
            payload = self._make_payload(piece.split, values, piece.timestamps and piece.timestamps[start:stop])
            size = max(1, len(payload) // len(values))
            most = min(MESSAGE_ELEMENTS, 4 * self._outbox.message_elements, _MESSAGE_BYTES // size)
            self._outbox.message_elements = max(1, most)
            yield SourceFeed(self._source.uid, piece.split, FeedKind.ELEMENTS, len(values), payload)
            start = stop

    def _make_payload(self, split: int, values: list[Any], timestamps: list[int | None] | None) -> bytes:
        try:
            return elements_payload(values, timestamps)
        except Exception as error:
            note_operator(error, self._source.name, f"sending what split {split} gave")
            for value in values:
                # Raises an error that names the part of the value that cannot be pickled.
                to_bytes(value, f"an element of {self._source.name!r}")
            raise

    def _move_on(self, taken: Sequence[Found]) -> None:
        for more in taken:
            if isinstance(more, MoreSplits):
                self._position = self._position.with_splits(more.splits)
        pieces = [piece for piece in taken if isinstance(piece, Piece)]
        positions = {piece.split: piece.position.to_bytes() for piece in pieces}
        self._position = self._position.after(positions, (piece.split for piece in pieces if piece.is_last))
