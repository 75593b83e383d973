"""Writing of changes to a table that does not take all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.left_out import LeftOutRows, RowProblem, parts_that_fit
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.zsets import WEIGHT

_ROUNDS: Final = 5
_MOST_AGAIN: Final = 10_000
"""The maximum number of changes that are kept to be retried."""
Put: TypeAlias = Callable[[pa.Table], tuple[int, int]]
"""A function that writes changes, and returns their number and their number of bytes.

It raises :class:`RowProblem` and writes nothing if the table does not take all of them.
"""


class PassingRowProblem(RowProblem):
    """A change that the table may take after others of the step."""


def write_what_fits(tables: Iterable[pa.Table], put: Put, left_out: LeftOutRows) -> tuple[int, int]:
    """Write changes without those that the table does not take.

    A change may need another that is written later: the row that a foreign key leads to, or one that releases a unique value.
    So such changes are retried after the rest, as long as that helps.

    :param tables: the changes
    :param put: a function that writes some of them
    :param left_out: the collector of what the table does not take
    :returns: the number of changes that were written, and the number of bytes
    """
    count = size = 0
    refused = _Refused(left_out)
    for _ in range(_ROUNDS):
        known, refused = len(refused.changes), _Refused(left_out)
        for table in tables:
            for records, written in parts_that_fit(table, put, refused.add) if table.num_rows else ():
                count, size = count + records, size + written
        if len(refused.changes) in (0, known):
            break
        tables = [pa.concat_tables(refused.changes)]
    for change, problem in zip(refused.changes, refused.problems, strict=True):
        instead = left_out.add(change, problem)
        if instead is not None:
            with suppress(RowProblem):
                records, written = put(instead)
                count, size = count + records, size + written
    return count, size


def rows_that_go(changes: pa.Table) -> pa.Table:
    """Return the changes that are deletes, and not part of an update."""
    return changes.filter(_are_deletes(changes))


def rows_that_come(changes: pa.Table) -> pa.Table:
    """Return the changes that are not such deletes."""
    return changes.filter(pc.invert(_are_deletes(changes)))


def _are_deletes(changes: pa.Table) -> pa.ChunkedArray:
    goes = pc.less(changes.column(WEIGHT), 0)
    return pc.and_(goes, pc.invert(changes.column(UPDATE))) if UPDATE in changes.column_names else goes


class _Refused:
    """The changes that may be taken after others, up to a maximum number; all else is left out at once."""

    def __init__(self, left_out: LeftOutRows) -> None:
        self.changes: list[pa.Table] = []
        self.problems: list[RowProblem] = []
        self._left_out = left_out

    def add(self, change: pa.Table, problem: RowProblem) -> pa.Table | None:
        if not isinstance(problem, PassingRowProblem) or len(self.changes) >= _MOST_AGAIN:
            return self._left_out.add(change, problem)
        self.changes.append(change)
        self.problems.append(problem)
        return None
