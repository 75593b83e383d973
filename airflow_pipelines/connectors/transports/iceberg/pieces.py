"""The pieces, file by file, that an input reads of an Iceberg table: those of a snapshot, or of its changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.iceberg.field_names import FieldNames
from airflow_pipelines.rows.changes import Op

ALL_ROWS: Final[BooleanExpression] = AlwaysTrue()


@dataclass(frozen=True, slots=True)
class IcebergPiece:
    """A file whose rows are inserted or deleted.

    :param task: the file, and its deleted rows
    :param snapshot_id: the snapshot in which the file is read
    :param op: the operation of its rows
    """

    task: FileScanTask
    snapshot_id: int
    op: Op


def pieces_of_snapshot(table: Table, snapshot_id: int, condition: BooleanExpression) -> list[IcebergPiece]:
    """Return the files of a snapshot, in a stable order."""
    return [IcebergPiece(task, snapshot_id, Op.INSERT) for task in _tasks(table, snapshot_id, condition)]


def pieces_of_change(table: Table, snapshot: Snapshot) -> list[IcebergPiece]:
    """Return the files whose rows a snapshot deleted, then those whose rows it inserted.

    Files that lost some of their rows are both: the remaining rows are deleted and inserted again, which is no change.
    """
    summary = snapshot.summary
    if summary is not None and summary.operation is Operation.REPLACE:
        # The same rows in other files.
        return []
    after = {_identity(task): task for task in _tasks(table, snapshot.snapshot_id, ALL_ROWS)}
    parent = snapshot.parent_snapshot_id
    before = {} if parent is None else {_identity(task): task for task in _tasks(table, parent, ALL_ROWS)}
    gone = [IcebergPiece(task, parent or 0, Op.DELETE) for key, task in before.items() if key not in after]
    come = [IcebergPiece(task, snapshot.snapshot_id, Op.INSERT) for key, task in after.items() if key not in before]
    return gone + come


def schema_of(table: Table, snapshot_id: int | None) -> Schema:
    """Return the columns that the table had at a snapshot.

    :param table: the table
    :param snapshot_id: the snapshot; None for the columns that it has now
    """
    return table.scan(snapshot_id=snapshot_id).projection()


def rows_of(table: Table, piece: IcebergPiece, names: FieldNames, condition: BooleanExpression) -> Iterator[pa.Table]:
    """Yield the rows of a piece, in a stable order.

    :param table: the table
    :param piece: the file
    :param names: the names under which its columns are read
    :param condition: the condition that rows have to meet
    """
    scan = ArrowScan(table.metadata, table.io, names.of(schema_of(table, piece.snapshot_id)), condition)
    for batch in scan.to_record_batches([piece.task]):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def snapshots_after(table: Table, snapshot_id: int | None) -> list[Snapshot]:
    """Return the snapshots that led from one to the current one, oldest first.

    :param snapshot_id: the snapshot to start after; None for a table that had none
    :raises ConnectorFailure: when the table's history no longer has it
    """
    snapshots: list[Snapshot] = []
    snapshot = table.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != snapshot_id:
        snapshots.append(snapshot)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
        if snapshot is None and (parent is not None or snapshot_id is not None):
            raise ConnectorFailure(
                f"iceberg_input: snapshot {snapshot_id}, up to which {'.'.join(table.name())} was read, is not in the history of "
                "its current snapshot any more: it has expired, or the table was rolled back. Load the table anew, into a "
                "connector with another name, and keep snapshots for longer than a pipeline may stand still."
            )
    return snapshots[::-1]


def _tasks(table: Table, snapshot_id: int, condition: BooleanExpression) -> list[FileScanTask]:
    tasks = table.scan(row_filter=condition, snapshot_id=snapshot_id).plan_files()
    return sorted(tasks, key=lambda task: task.file.file_path)


def _identity(task: FileScanTask) -> tuple[Any, ...]:
    return (task.file.file_path, tuple(sorted(deletes.file_path for deletes in task.delete_files)))
