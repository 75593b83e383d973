"""Delivery of feeds to the readers of fed sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.operators.source import SourceOperator
from airflow_pipelines.streams.worker.messages import Feed, FeedKind, SourceFeed
from airflow_pipelines.streams.worker.remote_plan import RemotePlan
from airflow_pipelines.streams.worker.remote_source import check_number, elements


class FeedIntake:
    """A distributor of feeds to their readers.

    :param fed: the plan that runs
    :param operators: a function that returns the operators that read a source, one for each task that runs here
    :param warn: a function that receives warnings for the user
    """

    def __init__(
        self, fed: RemotePlan, operators: Callable[[str], Sequence[SourceOperator]], warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self._warn = warn
        self._sources = fed.sources
        self._names = fed.source_names
        self._ports = fed.ports
        self._operators = operators

    @property
    def has_waiting(self) -> bool:
        """True if some elements have arrived that were not read."""
        return any(source.has_waiting for source in self._sources.values())

    def check(self, feeds: Iterable[Feed]) -> None:
        """Check that the program has the sources of some feeds.

        :param feeds: the feeds
        :raises StreamProgramError: if it lacks one
        """
        for feed in feeds:
            if feed.uid not in self._sources:
                raise StreamProgramError(f"There are elements for the source {feed.uid!r}, which the program does not have.")

    def take(self, feeds: Iterable[Feed]) -> None:
        """Deliver feeds to their readers.

        :param feeds: the feeds, in the order in which they arrived
        :raises StreamProgramError: if a feed is for a source that the program does not have, or that has lost splits
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
