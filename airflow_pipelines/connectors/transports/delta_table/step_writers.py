"""Writers that put the changes of a step into a Delta table, each step as one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.transports.delta_table.appending import append
from airflow_pipelines.connectors.transports.delta_table.ledger import LAST_TS
from airflow_pipelines.connectors.transports.lake.change_log import ChangeLogRows
from airflow_pipelines.connectors.transports.lake.columns import table_rows
from airflow_pipelines.connectors.transports.lake.readable_texts import check_texts, drop_unreadable, drop_unreadable_deletes
from airflow_pipelines.connectors.updates import equal_neighbours
from airflow_pipelines.rows.formats.delta import with_operations
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.zsets import WEIGHT

logger = logging.getLogger(__name__)

_ACTION: Final = "__action"
"""The column of a MERGE's source that has the action for a row."""
_COUNT: Final = "__count"
Properties: TypeAlias = Callable[[dict[str, int]], CommitProperties]
"""A function that takes additional entries and returns the properties of the commit of a step."""


@dataclass(frozen=True, slots=True)
class WrittenCommit:
    """The number of changes in a commit, and their number of bytes in memory."""

    records: int
    size_bytes: int


class DeltaStepWriter(Protocol):
    """A writer that puts the changes of a step into a table."""

    def write(self, table: DeltaTable, changes: Changes, properties: Properties) -> WrittenCommit:
        """Commit the changes.

        :param table: the table in its newest version
        :param changes: the changes of the step
        :param properties: a function that returns the properties of the commit
        """

    def rows(self, changes: pa.Table) -> pa.Table:
        """Make the rows of some changes as the table has them.

        :param changes: the rows with a weight of 1 or -1 as the last column, and maybe with updates
        """


class DeltaChangeLogWriter:
    """A writer that appends each change as a row.

    :param log: the change log that makes the rows
    """

    def __init__(self, log: ChangeLogRows) -> None:
        self.log = log
        self.table_schema = log.table_schema

    def write(self, table: DeltaTable, changes: Changes, properties: Properties) -> WrittenCommit:
        """Append the changes."""
        logged = self.log.make_logged_changes(changes)
        append(table, logged.reader(), properties({LAST_TS: logged.last_ts}))
        self.log.last_ts = logged.last_ts
        return WrittenCommit(logged.records, logged.size_bytes)

    def rows(self, changes: pa.Table) -> pa.Table:
        """Return a row for each change."""
        return self.log.rows(changes)


class _MergedWriter:
    """The common part of both writers that keep a table equal to a view: the treatment of changes that only add rows."""

    def __init__(self, columns: Sequence[Column], schema: pa.Schema) -> None:
        self._columns = columns
        self.table_schema = schema

    def rows(self, changes: pa.Table) -> pa.Table:
        """Return the inserted rows."""
        rows = table_rows(changes, self._columns, self.table_schema).filter(pc.greater(changes.column(WEIGHT), 0))
        check_texts(rows)
        return rows

    def _append(self, table: DeltaTable, changes: Changes, properties: Properties) -> WrittenCommit:
        records = size = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal records, size
            for rows in changes.tables():
                plain = table_rows(rows, self._columns, self.table_schema)
                check_texts(plain)
                records += plain.num_rows
                size += plain.nbytes
                yield from plain.to_batches()

        reader = pa.RecordBatchReader.from_batches(self.table_schema, batches())
        append(table, reader, properties({}))
        return WrittenCommit(records, size)


class MergedByKeyWriter(_MergedWriter):
    """A writer that keeps the table equal to a view in which each key of an index has one row.

    :param columns: the columns of the view
    :param schema: the schema of the table
    :param key: the columns of the index
    :param only_ours: True if the table has only what this output wrote, so that a new key is not in it
    """

    def __init__(self, columns: Sequence[Column], schema: pa.Schema, key: Sequence[str], only_ours: bool) -> None:
        super().__init__(columns, schema)
        self._key = key
        self._only_ours = only_ours

    def write(self, table: DeltaTable, changes: Changes, properties: Properties) -> WrittenCommit:
        """Delete, update and insert the rows of the keys that changed."""
        if self._only_ours and _only_adds(changes):
            return self._append(table, changes, properties)
        source = self._source(changes)
        assigned = {_quote(name): f"change.{_quote(name)}" for name in self.table_schema.names}
        merge = table.merge(
            source,
            _build_same_condition(source, self._key),
            source_alias="change",
            target_alias="kept",
            # Without streaming, the library can skip files whose keys are all smaller, or all greater, than those that changed.
            streamed_exec=False,
            commit_properties=properties({}),
        )
        metrics = (
            merge.when_matched_delete(f"change.{_ACTION} = 'd'")
            .when_matched_update(assigned)
            .when_not_matched_insert(assigned, predicate=f"change.{_ACTION} <> 'd'")
            .execute()
        )
        self._compare(source, metrics["num_target_rows_updated"] + metrics["num_target_rows_deleted"])
        return WrittenCommit(source.num_rows, source.nbytes)

    def _source(self, changes: Changes) -> pa.Table:
        """Return one row for each key that changed: the new row, or the old one of a key that has none any more."""
        parts = [self.table_schema.append(pa.field(_ACTION, pa.string())).empty_table()]
        for rows in changes.tables():
            rows, actions = with_operations(rows)
            table = table_rows(rows, self._columns, self.table_schema).append_column(_ACTION, actions)
            parts.append(drop_unreadable_deletes(table, pc.equal(table.column(_ACTION), "d")))
        source = pa.concat_tables(parts)
        if source.num_rows > 1:
            same = equal_neighbours(source.select(self._key))
            if same.any():
                raise self._not_unique(int(np.flatnonzero(same)[0]))
        return source

    def _compare(self, source: pa.Table, matched: int) -> None:
        expected = int(pc.sum(pc.not_equal(source.column(_ACTION), "i")).as_py() or 0)
        if matched > expected and self._only_ours:
            raise ConnectorFailure(
                f"{matched} rows of the table had the keys of {expected} rows that changed, so it is no longer equal to the view: "
                f"the index ({', '.join(self._key)}) is not unique in the view, or others write the table. Name an index whose "
                "keys are unique or none, and write a new table."
            )
        if matched < expected:
            logger.warning("of %d rows that were to change only %d were in the Delta table; others write it", expected, matched)

    def _not_unique(self, at: int) -> ConnectorFailure:
        names = ", ".join(self._key)
        return ConnectorFailure(
            f"more than one row of the view has the same key ({names}), first in row {at} of the changes, so that no table can "
            "have one row for each key. Name an index whose keys are unique, or none: then rows are told apart by all columns."
        )


class MergedByRowWriter(_MergedWriter):
    """A writer that keeps the table equal to a view without keys: each row is in it as often as in the view."""

    def write(self, table: DeltaTable, changes: Changes, properties: Properties) -> WrittenCommit:
        """Insert new rows, and reduce the number of copies of deleted ones."""
        if _only_adds(changes):
            return self._append(table, changes, properties)
        names = self.table_schema.names
        comes, goes = _come_and_gone(changes, lambda rows: table_rows(rows, self._columns, self.table_schema), self.table_schema)
        check_texts(comes)
        gone = drop_unreadable(goes).group_by(names).aggregate([([], "count_all")]).rename_columns([*names, _COUNT])
        puts = [comes, _find_remaining(table, gone, names)]
        put = pa.concat_tables([part.select(names) for part in puts])
        source = pa.concat_tables(
            [
                gone.select(names).append_column(_ACTION, pa.array(["d"] * gone.num_rows, pa.string())),
                put.append_column(_ACTION, pa.array(["i"] * put.num_rows, pa.string())),
            ]
        )
        # All copies of a deleted row match, and are deleted; rows to insert match nothing.
        predicate = f"({_build_same_condition(source, names)}) AND change.{_ACTION} = 'd'"
        (
            table.merge(
                source, predicate, source_alias="change", target_alias="kept", streamed_exec=False, commit_properties=properties({})
            )
            .when_matched_delete()
            .when_not_matched_insert(
                {_quote(name): f"change.{_quote(name)}" for name in names}, predicate=f"change.{_ACTION} = 'i'"
            )
            .execute()
        )
        return WrittenCommit(comes.num_rows + goes.num_rows, source.nbytes)


def _find_remaining(table: DeltaTable, gone: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the copies that stay of rows of which some are deleted."""
    # Filter by the values of the first columns, before the remaining rows are compared as a whole.
    copies = []
    for batch in pa.RecordBatchReader.from_stream(table.scan(columns=list(names))):
        rows = pa.Table.from_batches([batch]).select(names).cast(gone.select(names).schema)
        for name in names[:2]:
            rows = rows.filter(pc.is_in(rows.column(name), value_set=gone.column(name).combine_chunks()))
        if rows.num_rows:
            copies.append(rows)
    if not copies:
        return gone.select(names).slice(0, 0)
    counted = pa.concat_tables(copies).group_by(list(names)).aggregate([([], "count_all")]).rename_columns([*names, _COUNT])
    less = gone.set_column(len(names), _COUNT, pc.negate(gone.column(_COUNT)))
    marked = pa.concat_tables(
        [
            counted.append_column("__gone", pa.array([0] * counted.num_rows, pa.int64())),
            less.append_column("__gone", pa.array([1] * less.num_rows, pa.int64())),
        ]
    )
    summed = marked.group_by(list(names)).aggregate([(_COUNT, "sum"), ("__gone", "max")])
    left = summed.filter(pc.and_(pc.equal(summed.column("__gone_max"), 1), pc.greater(summed.column(f"{_COUNT}_sum"), 0)))
    times = left.column(f"{_COUNT}_sum").to_numpy()
    return left.select(names).take(pa.array(np.repeat(np.arange(left.num_rows), times)))


def _only_adds(changes: Changes) -> bool:
    return all(pc.min(rows.column(WEIGHT)).as_py() > 0 for rows in changes.tables() if rows.num_rows)


def _build_same_condition(source: pa.Table, names: Sequence[str]) -> str:
    """Return the condition that a row of the table equals one of the source; NULL is equal to NULL."""
    # The plain comparison is faster, and sufficient without NULL.
    equal = "IS NOT DISTINCT FROM" if any(source.column(name).null_count for name in names) else "="
    return " AND ".join(f"(kept.{_quote(name)} {equal} change.{_quote(name)})" for name in names)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _come_and_gone(changes: Changes, shaped: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """Return the inserted rows and the deleted rows, each in their order.

    :param changes: the rows with weights
    :param shaped: a function that turns rows of changes into rows of a table
    :param schema: the schema of that table
    """
    comes, goes = [schema.empty_table()], [schema.empty_table()]
    for rows in changes.tables():
        plain = shaped(rows)
        more = pc.greater(rows.column(WEIGHT), 0)
        comes.append(plain.filter(more))
        goes.append(plain.filter(pc.invert(more)))
    return pa.concat_tables(comes), pa.concat_tables(goes)
