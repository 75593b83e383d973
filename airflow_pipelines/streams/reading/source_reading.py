"""Reading of one source. The code of the source runs nowhere else."""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.function_source import FunctionReader
from airflow_pipelines.streams.pickled import to_bytes
from airflow_pipelines.streams.reading.outbox import MoreSplits, Outbox, Piece
from airflow_pipelines.streams.reading.positions import KeptPosition, SourcePosition
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.sources import Source, SourceReader

_SHORTEST_WAIT = 0.001
_LONGEST_WAIT = 0.02
_CHEAP_POSITION = 0.000_02
_COUNT_INTERVAL = 0.5
_POSITION_SHARE = 10
"""The factor for the pause after a position that takes long to compute: it is computed again after ten times as long."""


@dataclass(frozen=True)
class NamedSource:
    """A source of a program.

    :param uid: the uid of its operator
    :param name: the name, for people
    :param source: the source
    :param parallelism: the number of tasks that read it
    :param max_parallelism: the maximum number of tasks
    :param job_parameters: the parameters that the program gives to its functions
    """

    uid: str
    name: str
    source: Source
    parallelism: int
    max_parallelism: int = 1
    job_parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Split:
    number: int
    reader: SourceReader
    has_ended: bool = False


class SourceReading:
    """A reader of a source into an outbox. It reads the splits in turn, in one thread.

    :param source: the source
    :param position: the position to resume from, None for the beginning
    :param outbox: the outbox, which takes the elements and says how many are wanted
    :param tell_left: a function that receives the number of unread elements when it has changed; never called if the source does
        not know it
    """

    def __init__(
        self, source: NamedSource, position: bytes | None, outbox: Outbox, tell_left: Callable[[int], None] = lambda _: None
    ) -> None:
        self._source = source
        self._start = position
        self._outbox = outbox
        self._splits: list[_Split] = []
        self._descriptions: list[Any] = []
        self._look_interval = source.source.look_interval
        self._next_look = 0.0
        self._turn: deque[_Split] = deque()
        self._wait = _SHORTEST_WAIT
        self._has_ended = False
        self._tell_left = tell_left
        self._left: int | None = None
        self._next_count = 0.0

    def run(self) -> None:
        """Read until reading fails or the outbox is closed. Errors go to the outbox.

        After the end of the source, the loop goes on to pass committed positions to it.
        """
        try:
            self._open()
            while not self._outbox.is_closed:
                self._do_what_is_wanted()
        except BaseException as error:  # noqa: BLE001 (SystemExit too: the user's code asked for it, not this process)
            if self._has_ended:
                # The elements that were read stay valid. Print the error, since nobody may read it from the outbox any more.
                traceback.print_exception(error)
            self._outbox.fail(error)
        finally:
            self._close()

    def cancel(self) -> None:
        """Make the readers return from their waits. Called from another thread."""
        for split in list(self._splits):
            try:
                split.reader.cancel()
            except BaseException as error:  # noqa: BLE001 (the others are to come back all the same)
                self._show(error, f"cancelling split {split.number}")

    def _open(self) -> None:
        source = self._source.source
        if self._start is None:
            with self._noting("looking for its splits"):
                descriptions = _list_splits(self._source.name, source.splits(self._source.parallelism))
            position = SourcePosition(source.position_kind, self._to_bytes(descriptions))
        else:
            position = SourcePosition.from_bytes(self._start, self._source.name, source.position_kind)
            descriptions = list(position.split_descriptions())
        self._descriptions = descriptions
        for number, description in enumerate(descriptions):
            if number not in position.ended:
                self._open_split(number, description, position.of_split(number))
        self._outbox.begin(position)
        for split in self._splits:
            if split.number not in position.positions:
                self._tell_of_no_input(split)
        self._end_if_nothing_follows()

    def _open_split(self, number: int, description: Any, position: Any | None) -> _Split:
        with self._noting(f"opening split {number}"):
            split = _Split(number, self._source.source.open_in(self._subtask(number), description, position))
        self._splits.append(split)
        self._turn.append(split)
        return split

    def _tell_of_no_input(self, split: _Split) -> None:
        # A bounded split without input reports its end at once.
        if not self._source.source.is_bounded and not split.reader.has_input:
            self._outbox.add_split_without_input(split.number)

    def _look_for_splits(self) -> None:
        if self._look_interval is None or time.monotonic() < self._next_look:
            return
        with self._noting("looking for splits that have appeared"):
            more = list(self._source.source.more_splits(tuple(self._descriptions)))
        self._next_look = time.monotonic() + self._look_interval
        if not more:
            return
        first = len(self._descriptions)
        self._descriptions += more
        self._outbox.add_splits(MoreSplits(self._to_bytes(self._descriptions), len(self._descriptions)))
        for number, description in enumerate(more, first):
            self._tell_of_no_input(self._open_split(number, description, None))

    def _count_left(self) -> None:
        """Report the number of unread elements, at intervals. Elements that wait in the outbox count as read."""
        if time.monotonic() < self._next_count:
            return
        self._next_count = time.monotonic() + _COUNT_INTERVAL
        left = 0
        for split in self._turn:
            with self._noting(f"counting what is left of split {split.number}"):
                of_split = split.reader.left()
            if of_split is None:
                return
            left += of_split
        if left != self._left:
            self._left = left
            self._tell_left(left)

    def _to_bytes(self, descriptions: list[Any]) -> bytes:
        return to_bytes(descriptions, f"the description of the splits of {self._source.name!r}")

    def _subtask(self, split: int) -> SubtaskInfo:
        source = self._source
        return SubtaskInfo(
            source.name,
            split % source.parallelism,
            source.parallelism,
            max_parallelism=source.max_parallelism,
            job_parameters=source.job_parameters,
        )

    def _end_if_nothing_follows(self) -> None:
        if not self._turn and self._look_interval is None:
            self._has_ended = True
            self._outbox.end()

    def _do_what_is_wanted(self) -> None:
        committed = self._outbox.take_commit()
        if committed is not None:
            self._commit(committed)
        self._count_left()
        if self._outbox.room() <= 0:
            # The number of unread elements grows while nobody reads, so wait only until the next count.
            self._outbox.wait_for_room(max(0.0, self._next_count - time.monotonic()))
            return
        self._look_for_splits()
        if self._read_in_turn():
            self._wait = _SHORTEST_WAIT
        else:
            self._outbox.set_idle()
            self._outbox.wait_for_more(self._wait)
            self._wait = min(2 * self._wait, _LONGEST_WAIT)

    def _read_in_turn(self) -> bool:
        """Read each split once, beginning with the one whose turn it is.

        :returns: True if there was something to read
        """
        has_read = False
        for _ in range(len(self._turn)):
            limit = min(self._outbox.room(), self._outbox.message_elements)
            if limit <= 0 or self._outbox.is_closed:
                return True
            split = self._turn[0]
            with self._noting(f"reading split {split.number}"):
                if isinstance(split.reader, FunctionReader):
                    has_read = self._take_one_by_one(split, split.reader, limit) or has_read
                else:
                    has_read = self._poll(split, limit) or has_read
            if split.has_ended:
                self._turn.popleft()
            else:
                self._turn.rotate(-1)
        if not self._outbox.is_closed:
            self._end_if_nothing_follows()
        return has_read

    def _poll(self, split: _Split, limit: int) -> bool:
        polled = split.reader.poll(limit)
        if not polled.values and not polled.finished:
            return False
        split.has_ended = polled.finished
        position = self._keep_position(split)
        self._outbox.add(Piece(split.number, polled.values, polled.timestamps, position, polled.finished))
        return True

    def _take_one_by_one(self, split: _Split, reader: FunctionReader, limit: int) -> bool:
        """Read elements of a function one by one.

        The function may wait for each element, so all elements before it are added with their position first. If a position takes
        long to compute, it is computed less often.
        """
        values: list[Any] = []
        timestamps: list[int | None] = []
        cost = due = 0.0
        has_given = False

        def give(is_last: bool = False) -> None:
            nonlocal values, timestamps, has_given, cost, due
            has_given = True
            began = time.monotonic()
            position = self._keep_position(split)
            # A single long measurement may be due to another thread, so the cost at most doubles each time.
            cost = min(time.monotonic() - began, 2 * max(cost, _CHEAP_POSITION / 2))
            due = time.monotonic() + _POSITION_SHARE * cost if cost > _CHEAP_POSITION else 0.0
            given = None if timestamps.count(None) == len(timestamps) else timestamps
            self._outbox.add(Piece(split.number, values, given, position, is_last))
            values, timestamps = [], []

        def take(value: Any, timestamp: int | None) -> bool:
            values.append(value)
            timestamps.append(timestamp)
            if not due or time.monotonic() >= due:
                give()
            return self._outbox.is_more_wanted

        split.has_ended = reader.hand_over(limit, take)
        if values or split.has_ended:
            give(split.has_ended)
        return has_given

    def _keep_position(self, split: _Split) -> KeptPosition:
        return KeptPosition(split.reader.position(), f"the position of split {split.number} of {self._source.name!r}")

    def _commit(self, data: bytes) -> None:
        position = SourcePosition.from_bytes(data, self._source.name, self._source.source.position_kind)
        for split in self._splits:
            if split.number in position.positions:
                with self._noting(f"committing the position of split {split.number}"):
                    split.reader.commit(position.of_split(split.number))

    def _close(self) -> None:
        for split in self._splits:
            try:
                split.reader.close()
            except BaseException as error:  # noqa: BLE001 (the others are closed all the same)
                self._show(error, f"closing split {split.number}")

    def _show(self, error: BaseException, doing: str) -> None:
        """Print an error at the end of reading, which no longer ends anything."""
        note_operator(error, self._source.name, doing)
        traceback.print_exception(error)

    @contextmanager
    def _noting(self, doing: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            note_operator(error, self._source.name, doing)
            raise


def _list_splits(name: str, splits: Sequence[Any] | None) -> list[Any]:
    if splits is None:
        raise StreamProgramError(f"splits() of the source {name!r} returned None: it must return a sequence of descriptions.")
    return list(splits)
