"""A change log: each change of a view is a row, with its operation and its place in the order of all changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.transports.lake.readable_texts import check_texts
from airflow_pipelines.rows.formats.delta import with_operations


class ChangeLogRows:
    """The rows of a change log.

    :param schema: the schema of the table without the two columns
    :param op_column: the name of the column that has ``i``, ``d`` or, for an update by an index, ``u``
    :param ts_column: the name of the column with a number that is greater than those of all earlier changes: about the microseconds
        since 1970
    :param as_rows: a function that turns rows of the view into rows of the table
    """

    def __init__(self, schema: pa.Schema, op_column: str, ts_column: str, as_rows: Callable[[pa.Table], pa.Table]) -> None:
        self.table_schema = schema.append(pa.field(op_column, pa.string())).append(pa.field(ts_column, pa.int64()))
        self._as_rows = as_rows
        self.last_ts = 0
        """The number of the last change that was committed."""

    def make_logged_changes(self, changes: Changes) -> LoggedChanges:
        """Return the changes of a step as rows of the log. They count as committed once :attr:`last_ts` is set to theirs.

        :param changes: the changes of the step
        """
        return LoggedChanges(self.table_schema, self.rows, changes, max(self.last_ts + 1, time.time_ns() // 1000))

    def rows(self, changes: pa.Table, first: int = 0) -> pa.Table:
        """Return changes as rows of the log.

        :param changes: rows with a weight of 1 or -1 as the last column, and maybe with updates
        :param first: the number of the first change
        :raises UnreadableTextError: when a text of them is not UTF-8
        """
        # An update by an index needs only its new row.
        changes, ops = with_operations(changes)
        rows = self._as_rows(changes)
        check_texts(rows)
        numbers = pa.array(np.arange(first, first + changes.num_rows))
        return pa.Table.from_arrays([*rows.columns, ops, numbers], schema=self.table_schema)


class LoggedChanges:
    """The log rows of one step, which are made while they are read.

    :param schema: the schema of the table
    :param as_rows: a function that turns changes, and the number of the first one, into rows of the log
    :param changes: the changes of the step
    :param first: the number of the first change
    """

    def __init__(self, schema: pa.Schema, as_rows: Callable[[pa.Table, int], pa.Table], changes: Changes, first: int) -> None:
        self._schema = schema
        self._as_rows = as_rows
        self._changes = changes
        self._first = first
        # It is committed with the rows, and so has to be known before they are made.
        self.last_ts = first + changes.count() - 1
        """The number of the last change."""
        self.records = 0
        """The number of rows read so far."""
        self.size_bytes = 0
        """The number of bytes that they take in memory."""

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, which can be read once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for rows in self._changes.tables():
            logged = self._as_rows(rows, self._first + self.records)
            self.records += logged.num_rows
            self.size_bytes += logged.nbytes
            yield from logged.to_batches()
