"""Groups, and first rows of groups, that are computed part by part: each part is added to the previous ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from airflow_pipelines.engine.execution.ways import Declined, TooMuch
from airflow_pipelines.engine.limits import Limits

_SURE = 10
"""The divisor of the maximum number of groups: this part is computed in any case. For more, the final number is estimated first."""


class GatheredGroups:
    """The collector of groups within the limits of one process.

    Parts are merged when they reach half of the bytes allowed. The number of groups that the last rows have added tells if there
    will be too many. So of very many rows only the first ones are read in vain.
    """

    def __init__(self, merged: Callable[[Sequence[pa.Table]], pa.Table], rows: int, limits: Limits) -> None:
        """Create an empty collector.

        :param merged: the function that merges several tables into one, with each group once
        :param rows: the number of rows that will be read in total
        :param limits: the limits of the number of groups
        """
        self._merged, self._rows, self._limits = merged, rows, limits
        self._found: pa.Table | None = None
        self._new: list[pa.Table] = []
        self._new_bytes = 0
        self._read = self._read_before = 0

    def add(self, part: pa.Table, rows: int) -> None:
        """Add the groups of more rows.

        :param part: the groups
        :param rows: the number of the rows
        :raises TooMuch: if there is no room for them, or for those that are still to come
        """
        self._new.append(part)
        self._new_bytes += part.nbytes
        self._read += rows
        if 2 * self._new_bytes >= self._limits.driver_bytes:
            self._merge()

    def result(self) -> pa.Table:
        """Return all groups.

        :raises Declined: if there were no rows, or there are too many groups
        """
        if self._new:
            self._merge()
        if self._found is None:
            raise Declined("there are no rows")
        return self._found

    def _merge(self) -> None:
        """Merge the new groups with the previous ones, and check that all groups have room."""
        before = 0 if self._found is None else self._found.num_rows
        groups = self._merged([*([] if self._found is None else [self._found]), *self._new])
        most = self._limits.most_groups(groups.nbytes // max(1, groups.num_rows))
        added, read = groups.num_rows - before, self._read - self._read_before
        expected = groups.num_rows + added * (self._rows - self._read) // max(1, read)
        self._found, self._new, self._new_bytes, self._read_before = groups, [], 0, self._read
        if groups.num_rows > most or (_SURE * groups.num_rows > most and expected > most):
            raise TooMuch(f"more than {most} groups")
