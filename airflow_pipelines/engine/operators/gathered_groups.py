"""Groups, and first rows of groups, that are found part by part: each part is added to what was found before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from airflow_pipelines.engine.limits import Limits

_SURE = 10
"""A tenth of the groups that there may be is found out in any case. Of more it is asked first what they will come to."""


class GatheredGroups:
    """Gathers groups within the limits of one process.

    Parts are merged when they have come to half of the bytes that there may be. How many groups the last rows have added tells
    whether there will be too many: of very many rows only the first ones are then read in vain.
    """

    def __init__(self, merged: Callable[[Sequence[pa.Table]], pa.Table], rows: int, limits: Limits) -> None:
        """:param merged: makes one table of several, each group once

        :param rows: so many rows will be read in all
        :param limits: say how many groups there may be
        """
        self._merged, self._rows, self._limits = merged, rows, limits
        self._found: pa.Table | None = None
        self._has_room = True
        self._new: list[pa.Table] = []
        self._new_bytes = 0
        self._read = self._read_before = 0

    def add(self, part: pa.Table, rows: int) -> bool:
        """Add the groups of more rows.

        :param part: the groups
        :param rows: the number of the rows
        :return: whether there is room for them, and for those that are still to come
        """
        self._new.append(part)
        self._new_bytes += part.nbytes
        self._read += rows
        if 2 * self._new_bytes >= self._limits.grouped_bytes:
            self._merge()
        return self._has_room

    def result(self) -> pa.Table | None:
        """All groups; None for no rows and for too many groups."""
        if self._new:
            self._merge()
        return self._found if self._has_room else None

    def _merge(self) -> None:
        """Merge the new groups with those that were found before, and find out whether all groups have room."""
        before = 0 if self._found is None else self._found.num_rows
        found = self._merged([*([] if self._found is None else [self._found]), *self._new])
        most = self._limits.most_groups(found.nbytes // max(1, found.num_rows))
        added, read = found.num_rows - before, self._read - self._read_before
        expected = found.num_rows + added * (self._rows - self._read) // max(1, read)
        self._found, self._new, self._new_bytes, self._read_before = found, [], 0, self._read
        self._has_room &= found.num_rows <= most and (_SURE * found.num_rows <= most or expected <= most)
