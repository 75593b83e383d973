"""Sources that are read elsewhere: elements arrive as messages, and the plan reads what has arrived."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.relations import RelationSource
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.worker.messages import FeedKind, SourceFeed

NO_INPUT = -1
"""The position in a split that has had nothing to read yet."""


class RemoteSource(Source):
    """A substitute for a source that is read elsewhere.

    :param source: the source itself
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.look_interval = source.look_interval
        self.readers: dict[int, RemoteReader] = {}

    @property
    def is_bounded(self) -> bool:
        """True if the source itself is bounded."""
        return self._source.is_bounded

    def splits(self, parallelism: int) -> Sequence[int] | None:
        """Return None, since the splits are not known before the first message; a relation has one split."""
        return (0,) if isinstance(self._source, RelationSource) else None

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Open a reader for the messages of a split."""
        reader = self.readers[split] = RemoteReader(position or 0)
        return reader

    @property
    def has_waiting(self) -> bool:
        """True if some elements have arrived that were not read."""
        return any(reader.has_waiting for reader in self.readers.values())


class RemoteReader(SourceReader):
    """A reader of the elements that have arrived for one split.

    :param number: the number of elements that were read before; ``NO_INPUT`` if there was nothing to read yet
    """

    def __init__(self, number: int) -> None:
        self._number = max(number, 0)
        self._waiting: deque[Polled] = deque()
        self._expects_input = number != NO_INPUT

    @property
    def has_input(self) -> bool:  # type: ignore[override]
        """True if something has arrived, or may be on its way."""
        return bool(self._expects_input or self._number or self._waiting)

    def expect_no_input(self) -> None:
        """Note that the source has nothing for the split yet."""
        self._expects_input = False

    @property
    def has_waiting(self) -> bool:
        """True if some elements have arrived that were not read."""
        return bool(self._waiting)

    def add(self, piece: Polled) -> None:
        """Add elements that have arrived.

        :param piece: elements, or the end
        """
        self._waiting.append(piece)

    def poll(self, limit: int) -> Polled:
        """Return elements that have arrived, in whole messages, so there may be a few more than the limit."""
        if not self._waiting:
            return Polled([])
        piece = self._waiting.popleft()
        if self._waiting and len(piece.values) < limit:
            piece = self._merge_waiting(piece, limit)
        self._number += len(piece.values)
        return piece

    def _merge_waiting(self, first: Polled, limit: int) -> Polled:
        values = list(first.values)
        timestamps = _timestamps(first)
        finished = first.finished
        while self._waiting and len(values) < limit:
            piece = self._waiting.popleft()
            values += piece.values
            timestamps += _timestamps(piece)
            finished = piece.finished
        return Polled(values, timestamps, finished)

    def position(self) -> int:
        """Return the number of elements that were read, or ``NO_INPUT`` if there was nothing to read yet."""
        return self._number if self.has_input else NO_INPUT


def _timestamps(piece: Polled) -> list[int | None]:
    return [None] * len(piece.values) if piece.timestamps is None else list(piece.timestamps)


def elements(feed: SourceFeed) -> Polled:
    """Return the content of a message.

    :param feed: elements, or the end
    :returns: the content in the form that a reader gives
    """
    if feed.kind is FeedKind.ENDED:
        return Polled([], finished=True)
    values, timestamps = pickle.loads(feed.payload)  # noqa: S301 (made by the program's own process that reads its sources)
    return Polled(values, timestamps)


def with_remote_sources(plan: Plan) -> tuple[Plan, dict[str, RemoteSource]]:
    """Return a plan whose sources are replaced by fed sources.

    :param plan: the plan
    :returns: the plan, and its fed sources by uid
    """
    sources = {
        chain.head.uid: RemoteSource(chain.head.node.operator.source)
        for chain in plan.chains
        if isinstance(chain.head.node.operator, Read)
    }
    reads = {uid: replace(operator, source=sources[uid]) for uid, operator in _operators(plan) if isinstance(operator, Read)}
    return with_operators(plan, reads), sources


def _operators(plan: Plan) -> Iterable[tuple[str, OperatorSpec]]:
    return ((step.uid, step.node.operator) for chain in plan.chains for step in chain.steps)


def with_operators(plan: Plan, operators: Mapping[str, OperatorSpec]) -> Plan:
    """Return a plan in which some operators are replaced.

    :param plan: the plan
    :param operators: the new operators by uid
    :returns: the plan
    """
    chains = tuple(
        replace(
            chain,
            steps=tuple(
                replace(step, node=replace(step.node, operator=operators[step.uid])) if step.uid in operators else step
                for step in chain.steps
            ),
        )
        for chain in plan.chains
    )
    return replace(plan, chains=chains)


def check_number(source: str, known: int | None, number: int) -> None:
    """Raise an error if a source has lost splits.

    :param source: its name
    :param known: the number of splits that it had, None if that was not known
    :param number: the number of splits that it has
    :raises StreamProgramError: if splits are gone
    """
    if known is not None and number < known:
        raise StreamProgramError(
            f"The source {source!r} had {known} splits and has {number} now: the splits that are gone may have been read in part."
            " Give it another uid(), so that it begins anew, or bring the splits back."
        )
