"""The splits of a source, as all of its tasks in a process know them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from airflow_pipelines.streams.sources import Source


class KnownSplits:
    """The splits of a source. A split is numbered by its place in the list, so the list only grows at its end.

    :param source: the source
    :param parallelism: the number of tasks that read it
    """

    def __init__(self, source: Source, parallelism: int) -> None:
        self._source = source
        self._parallelism = parallelism
        self._descriptions: list[Any] | None = None
        self._next_look = 0.0

    def first(self) -> Sequence[Any] | None:
        """Return the initial splits of a source that was not read before. All callers get the same splits.

        :returns: their descriptions; None if they are not known yet
        """
        if self._descriptions is None:
            splits = self._source.splits(self._parallelism)
            if splits is None:
                return None
            self.go_on_with(splits)
        return self._descriptions

    def go_on_with(self, descriptions: Sequence[Any]) -> None:
        """Resume with the splits of a source that was read before.

        :param descriptions: the descriptions of the splits that it had
        """
        if self._descriptions is None or len(self._descriptions) < len(descriptions):
            self._descriptions = list(descriptions)
            # Look at once for splits that have appeared since.
            self._next_look = 0.0

    def look(self) -> Sequence[Any]:
        """Return all splits, and discover new ones first if the look interval has passed.

        :returns: their descriptions
        """
        known = self._descriptions or []
        interval = self._source.look_interval
        if interval is not None and time.monotonic() >= self._next_look:
            known += self._source.more_splits(tuple(known))
            self._next_look = time.monotonic() + interval
        return known
