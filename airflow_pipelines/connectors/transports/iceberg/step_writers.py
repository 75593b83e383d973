"""Writers that put the changes of a step into an Iceberg table, each step as one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyiceberg.expressions import And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.table import FileScanTask, Table, Transaction

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.transports.iceberg.columns import as_iceberg
from airflow_pipelines.connectors.transports.iceberg.pieces import ALL_ROWS
from airflow_pipelines.connectors.transports.lake.change_log import ChangeLogRows
from airflow_pipelines.connectors.updates import equal_neighbours
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.zsets import WEIGHT

_PART_BYTES: Final = 128 << 20
_FEW: Final = 100
"""The maximum number of keys that are compared one by one with the statistics of files.

Of more keys only the least and the greatest are compared.
"""


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """The number of changes in a snapshot, their number of bytes in memory, and the greatest number of a change."""

    records: int
    size_bytes: int
    last_ts: int


Properties = Callable[[int], dict[str, str]]
"""A function that takes the greatest number of a change and returns the properties for the summary of a snapshot."""


class IcebergStepWriter(Protocol):
    """A writer that puts the changes of a step into a transaction of a table."""

    def write(self, table: Table, transaction: Transaction, changes: Changes, properties: Properties) -> WrittenSnapshot:
        """Add the changes to the transaction, which the caller commits.

        :param table: the table in its newest version
        :param transaction: the transaction of the table
        :param changes: the changes of the step
        :param properties: a function that returns the properties for the snapshot's summary
        """


class IcebergChangeLogWriter:
    """A writer that appends each change as a row.

    :param log: the change log that makes the rows
    """

    def __init__(self, log: ChangeLogRows) -> None:
        self.log = log
        self.table_schema = log.table_schema

    def write(self, table: Table, transaction: Transaction, changes: Changes, properties: Properties) -> WrittenSnapshot:
        """Append the changes."""
        logged = self.log.make_logged_changes(changes)
        with transaction.update_snapshot(snapshot_properties=properties(logged.last_ts)).fast_append() as update:
            # The library can split rows by partition only in memory.
            parts = [logged.reader()] if table.spec().is_unpartitioned() else _read_in_memory(logged.reader())
            for rows in parts:
                for data_file in _dataframe_to_data_files(transaction.table_metadata, rows, table.io):
                    update.append_data_file(data_file)
        return WrittenSnapshot(logged.records, logged.size_bytes, logged.last_ts)


class MergedWriter:
    """A writer that keeps the table equal to a view in which each key of an index has one row.

    Files that hold rows of changed keys are rewritten without these rows; the new rows are files of their own. Writing the
    same changes again changes nothing.

    :param columns: the columns of the view
    :param schema: the schema of the table
    :param key: the columns of the index
    """

    def __init__(self, columns: Sequence[Column], schema: pa.Schema, key: Sequence[str]) -> None:
        self._columns = columns
        self.table_schema = schema
        self._key = list(key)
        self._key_columns = [column for name in key for column in columns if column.name == name]
        self._key_schema = pa.schema([schema.field(name).with_nullable(True) for name in key])
        self.appends_new_keys = False
        """True if an inserted key without a delete is certainly not in the table."""

    def write(self, table: Table, transaction: Transaction, changes: Changes, properties: Properties) -> WrittenSnapshot:
        """Replace the rows of the keys that changed."""
        comes, goes = self._split(changes)
        written = WrittenSnapshot(comes.num_rows + goes.num_rows, comes.nbytes + goes.nbytes, 0)
        keys = goes if self.appends_new_keys else pa.concat_tables([comes.select(self._key).cast(self._key_schema), goes])
        with transaction.update_snapshot(snapshot_properties=properties(0)).overwrite() as update:
            for task in self._files_with(table, keys):
                rows = self._rows(table, task)
                gone = _is_among(rows.select(self._key), keys)
                if not gone.any():
                    continue
                update.delete_data_file(task.file)
                self._add(transaction, table, update, rows.filter(pa.array(~gone)))
            self._add(transaction, table, update, comes)
        return written

    def _split(self, changes: Changes) -> tuple[pa.Table, pa.Table]:
        """Return the inserted rows, and the keys of the deleted ones, whose other values the table may never have had."""
        coming, going = [self.table_schema.empty_table()], [self._key_schema.empty_table()]
        for rows in changes.tables():
            more = pc.greater(rows.column(WEIGHT), 0)
            coming.append(as_iceberg(rows.filter(more), self._columns, self.table_schema))
            going.append(as_iceberg(rows.filter(pc.invert(more)), self._key_columns, self._key_schema))
        comes, goes = pa.concat_tables(coming), pa.concat_tables(going)
        # Changes come in the order of the index, so that equal keys are neighbours.
        if comes.num_rows > 1 and equal_neighbours(comes.select(self._key)).any():
            raise ConnectorFailure(
                f"iceberg_output: more than one row of the view has the same key ({', '.join(self._key)}), so that no table can "
                "have one row for each key. Name an index whose keys are unique, or use 'write': 'change_log'."
            )
        return comes, goes

    def _files_with(self, table: Table, keys: pa.Table) -> list[FileScanTask]:
        """Return the files that may have rows with one of the keys, according to their statistics."""
        if not keys.num_rows or table.current_snapshot() is None:
            return []
        return list(table.scan(row_filter=_build_condition(keys)).plan_files())

    def _rows(self, table: Table, task: FileScanTask) -> pa.Table:
        projected = table.scan().projection()
        batches = list(ArrowScan(table.metadata, table.io, projected, ALL_ROWS).to_record_batches([task]))
        rows = pa.Table.from_batches(batches) if batches else self.table_schema.empty_table()
        return rows.select(self.table_schema.names).cast(self.table_schema)

    def _add(self, transaction: Transaction, table: Table, update: Any, rows: pa.Table) -> None:
        if rows.num_rows:
            for data_file in _dataframe_to_data_files(transaction.table_metadata, rows, table.io):
                update.append_data_file(data_file)


def _read_in_memory(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the rows as tables that are about as large as the minimum size of a file."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size >= _PART_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def _build_condition(keys: pa.Table) -> BooleanExpression:
    """Return a condition that all rows with one of the keys meet, and possibly others."""
    conditions: list[BooleanExpression] = []
    for name in keys.column_names:
        values = keys.column(name)
        if values.null_count or not (pat.is_integer(values.type) or pat.is_string(values.type)):
            continue
        distinct = pc.unique(values)
        # The classes take a second positional argument, which their type hints do not show.
        if len(distinct) <= _FEW:
            conditions.append(In(name, set(distinct.to_pylist())))  # type: ignore[call-arg, arg-type]
        else:
            bounds = pc.min_max(distinct).as_py()
            conditions.append(GreaterThanOrEqual(name, bounds["min"]))  # type: ignore[call-arg]
            conditions.append(LessThanOrEqual(name, bounds["max"]))  # type: ignore[call-arg]
    return And(ALL_ROWS, *conditions) if conditions else ALL_ROWS


def _is_among(rows: pa.Table, keys: pa.Table) -> Any:
    """Return a boolean for each row, True if its key is one of ``keys``; NULL is equal to NULL."""
    codes = np.zeros(rows.num_rows + keys.num_rows, np.int64)
    for name in rows.column_names:
        both = pa.chunked_array([*rows.column(name).chunks, *keys.column(name).cast(rows.schema.field(name).type).chunks])
        encoded = both.combine_chunks().dictionary_encode("encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        column = np.asarray(encoded.indices, np.int64)
        # Renumber the pairs densely, so that the numbers never overflow.
        _, codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)
    return np.isin(codes[: rows.num_rows], codes[rows.num_rows :])
