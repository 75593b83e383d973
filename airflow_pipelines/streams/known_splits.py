"""Which splits a source has, as all of its tasks in a process know them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from airflow_pipelines.streams.sources import Source


class KnownSplits:
    """The splits of a source. Their numbers are their places in the list, so it only grows at its end.

    :param source: the source
    :param parallelism: how many tasks read it
    """

    def __init__(self, source: Source, parallelism: int) -> None:
        self._source = source
        self._parallelism = parallelism
        self._descriptions: list[Any] | None = None
        self._next_look = 0.0

    def first(self) -> Sequence[Any] | None:
        """The splits with which a source begins that was not read before: the same for all who ask.

        :returns: their descriptions; None when they are not known yet
        """
        if self._descriptions is None:
            found = self._source.splits(self._parallelism)
            if found is None:
                return None
            self.go_on_with(found)
        return self._descriptions

    def go_on_with(self, descriptions: Sequence[Any]) -> None:
        """The source was read before.

        :param descriptions: of the splits that it had
        """
        if self._descriptions is None or len(self._descriptions) < len(descriptions):
            self._descriptions = list(descriptions)
            # What has appeared since is found soon.
            self._next_look = 0.0

    def look(self) -> Sequence[Any]:
        """All splits, with those that have appeared, when it is time to look for them.

        :returns: their descriptions
        """
        known = self._descriptions or []
        interval = self._source.look_interval
        if interval is not None and time.monotonic() >= self._next_look:
            known += self._source.more_splits(tuple(known))
            self._next_look = time.monotonic() + interval
        return known
