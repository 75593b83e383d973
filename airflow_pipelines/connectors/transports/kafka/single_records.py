"""Sending of a step with changes larger than a topic takes: one by one, in rounds, to find out which ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.left_out import LeftOutRows, RowProblem, records_that_fit
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.messages import MessageEncoder, WrittenMessage
from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.systems.kafka.problems import explain_size

Send = Callable[[WrittenMessage, Callable[[], None]], None]
"""A function that sends a message, and calls the given function if it turns out to be too large."""
_Place = tuple[int, bool]
"""The number of a change, and True for a message that is sent in its place."""


class SingleRecords:
    """The changes of one step, without those that are too large."""

    def __init__(self, changes: Changes, encoder: MessageEncoder, left_out: LeftOutRows, *, is_compressed: bool) -> None:
        """Begin without any that is known to be too large.

        :param changes: the changes of the step
        :param encoder: the encoder that makes messages of them
        :param left_out: the collector of those that are too large
        :param is_compressed: True if a larger one may be taken although another one was not
        """
        self._changes = changes
        self._encoder = encoder
        self._left_out = left_out
        self._is_compressed = is_compressed
        self._too_large: set[_Place] = set()
        self._least: int | None = None
        self._sent: set[_Place] = set()
        self.has_found = False
        """True if the last round has found one that is too large, so that another round is needed."""

    def send(self, send: Send, *, again: bool) -> tuple[int, int]:
        """Send all messages that are not known to be too large.

        :param send: a function that sends one message
        :param again: True if former rounds do not count, as after a transaction that was aborted
        :returns: the number of messages that were sent, and their size in bytes
        """
        records = size = 0
        self.has_found = False
        self._left_out.clear()
        for place, message in self._messages():
            if place in self._sent and not again:
                continue
            send(message, partial(self._note_too_large, place, message.size))
            self._sent.add(place)
            records, size = records + 1, size + message.size
        return records, size

    def _messages(self) -> Iterator[tuple[_Place, WrittenMessage]]:
        changes = (change for table in self._changes.tables() for change in _single(table))
        for number, change in enumerate(changes):
            for message in records_that_fit(change, self._encoder.messages, self._left_out):
                if not self._is_too_large((number, False), message):
                    yield (number, False), message
                    continue
                instead = self._left_out.add(change, RowProblem(explain_size("the connector", message.size)))
                for other in () if instead is None else records_that_fit(instead, self._encoder.messages, self._left_out):
                    if not self._is_too_large((number, True), other):
                        yield (number, True), other

    def _is_too_large(self, place: _Place, message: WrittenMessage) -> bool:
        return place in self._too_large or (self._least is not None and message.size >= self._least)

    def _note_too_large(self, place: _Place, size: int) -> None:
        self.has_found = True
        self._too_large.add(place)
        if not self._is_compressed:
            self._least = min(size, self._least or size)


def _single(changes: pa.Table) -> Iterator[pa.Table]:
    """Yield each change as a table of its own, with both rows if it is an update."""
    weights = python_values(changes.column(WEIGHT))
    updates = python_values(changes.column(UPDATE)) if UPDATE in changes.column_names else [False] * len(weights)
    for at, (weight, is_part) in enumerate(zip(weights, updates, strict=True)):
        if not is_part:
            yield changes.slice(at, 1)
        elif weight > 0:
            yield changes.slice(at - 1, 2)
