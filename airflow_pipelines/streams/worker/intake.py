"""Brings what has come in to the readers of fed sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.operators.source import SourceOperator
from airflow_pipelines.streams.worker.fed import check_number, elements
from airflow_pipelines.streams.worker.fed_plan import FedPlan
from airflow_pipelines.streams.worker.messages import Feed, FeedKind, SourceFeed


class Intake:
    """Where feeds go.

    :param fed: what runs
    :param operators: gives the operators that read a source, one for each task that runs here
    :param warn: is given what the user should know
    """

    def __init__(
        self, fed: FedPlan, operators: Callable[[str], Sequence[SourceOperator]], warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self._warn = warn
        self._sources = fed.sources
        self._names = fed.source_names
        self._ports = fed.ports
        self._operators = operators

    @property
    def has_waiting(self) -> bool:
        """Whether something has come that was not read."""
        return any(source.has_waiting for source in self._sources.values())

    def check(self, feeds: Iterable[Feed]) -> None:
        """Whether the program has the sources of some feeds.

        :param feeds: the feeds
        :raises StreamProgramError: when it has not
        """
        for feed in feeds:
            if feed.uid not in self._sources:
                raise StreamProgramError(f"There are elements for the source {feed.uid!r}, which the program does not have.")

    def take(self, feeds: Iterable[Feed]) -> None:
        """Bring feeds to their readers.

        :param feeds: what has come in, in the order in which it came
        :raises StreamProgramError: when one is of a source that the program does not have, or that has lost splits
        """
        for feed in feeds:
            self.check([feed])
            try:
                self._take(feed)
            except Exception as error:
                note_operator(error, self._names[feed.uid], "reading what came in")
                raise

    def _take(self, feed: Feed) -> None:
        source = self._sources[feed.uid]
        if not isinstance(feed, SourceFeed):
            assert self._ports is not None  # noqa: S101 (there is one where there are relations)
            pieces = list(self._ports.elements(feed))
            if any(operator.is_at_end_of(0) for operator in self._operators(feed.uid)):
                rows = sum(len(piece.values) for piece in pieces)
                self._warn(
                    f"{rows} rows came to {self._names[feed.uid]!r} after its end, with that of"
                    " all connectors of its tables, and are not read: from_relation(..., stays_open=True) keeps it open."
                )
                return
            for piece in pieces:
                source.readers[0].add(piece)
        elif feed.kind is FeedKind.SPLITS:
            for operator in self._operators(feed.uid):
                check_number(operator.name, operator.number_of_splits, feed.records)
                operator.appear(range(feed.records))
        elif feed.kind is FeedKind.NO_INPUT:
            source.readers[feed.split].expect_no_input()
        else:
            source.readers[feed.split].add(elements(feed))
