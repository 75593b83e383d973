"""An output that writes a view, or its changes, to an Iceberg table: one snapshot per step.

The summary of a snapshot has the step's number.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, VoidTransform
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import OutputContext
from airflow_pipelines.connectors.left_out import FittingChanges
from airflow_pipelines.connectors.transports.iceberg.columns import as_iceberg, iceberg_schema, with_required
from airflow_pipelines.connectors.transports.iceberg.ledger import IcebergLedger
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions, check_key
from airflow_pipelines.connectors.transports.iceberg.step_writers import IcebergChangeLogWriter, MergedWriter, WrittenSnapshot
from airflow_pipelines.connectors.transports.iceberg.tables import open_catalog, table_access, without_retries
from airflow_pipelines.connectors.transports.iceberg.trial import IcebergTrialTable, may_be_of_rows
from airflow_pipelines.connectors.transports.lake.change_log import ChangeLogRows
from airflow_pipelines.connectors.transports.lake.output_options import Beginning, TableContents

logger = logging.getLogger(__name__)

_CONFLICTS_S: Final = 60.0
"""The time, in seconds, for which a step is retried while others commit."""
_CONFLICT_RETRIES: Final = RetryPolicy(first_wait_s=0.1, longest_wait_s=2.0, limit_s=_CONFLICTS_S)


class IcebergOutput:
    """An output whose table records the steps that it has."""

    def __init__(self, options: IcebergOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the options that identify the table
        :param context: the context of the connector
        """
        self._options = options
        self._name = options.table_name or ""
        self._fence = context.fence
        self._ledger = IcebergLedger(context.writer, None if context.fence is None else context.fence.epoch)
        self._columns = context.schema.columns
        self._key = context.key
        self._left_out = context.left_out
        if options.write is TableContents.MERGED:
            check_key(context.schema, context.key)
        self._writer = self._new_writer()
        self._table: Table | None = None
        self._step = -1
        self._all_ours = False

    def open(self, resumed: bool) -> None:
        """Make or empty the table at the first start; at others, check that it is the table that was written before.

        :raises ConnectorFailure: when the table cannot be written, or has other columns
        :raises OvertakenError: when a later run of the pipeline writes it
        """
        self._check_newest()
        with table_access(self._what("open")):
            if resumed:
                self._go_on()
            else:
                self._begin()

    def committed_step(self) -> int | None:
        """Return the last step in the table, or None if there is none."""
        return None if self._step < 0 else self._step

    def rewind(self, step: int) -> None:
        """Roll back to the snapshot after a step.

        Where others have written since, a change log gets its rows again, and a merged table is compared key by key.

        :param step: the number of the step
        """
        if step >= self._step:
            return
        table = self._require_open()
        self._check_newest()
        with table_access(self._what("restore")):
            table.refresh()
            entry = self._ledger.entry_after(table, step)
            if entry is not None:
                table.manage_snapshots().rollback_to_snapshot(entry.snapshot_id).commit()
                table.refresh()
                self._resume_writer(entry.last_ts)
                logger.info("%s: went back to snapshot %d, which has step %d", self._name, entry.snapshot_id, entry.step)
            else:
                logger.warning("%s: steps %d to %d in it come again and cannot be taken back", self._name, step + 1, self._step)
                self._all_ours = False
            self._open_for_run(table, step)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Commit a step's changes with its number, unless the table has the step.

        :returns: the number of changes that were written, and the number of bytes that they took in memory
        :raises ConnectorFailure: when they cannot be written
        :raises OvertakenError: when a later run of the pipeline writes the table
        """
        if step <= self._step:
            return 0, 0
        with table_access(self._what("write")):
            try:
                written = self._commit_step(step, changes)
            except Exception as error:
                if not may_be_of_rows(error):
                    raise
                written = self._commit_what_fits(step, changes, error)
        self._step = step
        self._resume_writer(written.last_ts)
        return written.records, written.size_bytes

    def close(self) -> None:
        """Release the table; everything is in it."""
        self._table = None

    def _begin(self) -> None:
        catalog = open_catalog(self._options)
        mode = self._options.mode
        try:
            table = catalog.load_table(self._name)
        except NoSuchTableError:
            namespace = self._name.rpartition(".")[0]
            with suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(namespace)
            table = catalog.create_table(self._name, self._writer.table_schema)
        else:
            entry = self._ledger.newest(table)
            # Do not refuse a table that an interrupted start has made.
            if mode is Beginning.ERROR_IF_EXISTS and (entry is None or entry.step >= 0):
                raise ConnectorFailure(
                    f"{self._what('begin')}: there is such a table already. Give another 'table_name', drop the table, or use "
                    "'mode': 'append' or 'truncate'."
                )
            self._fit_to(table)
        self._table = table
        if mode is Beginning.TRUNCATE and table.current_snapshot() is not None:
            table.delete()
        self._all_ours = not any(True for _ in table.scan().plan_files()) if table.current_snapshot() is not None else True
        self._open_for_run(table, -1)

    def _go_on(self) -> None:
        try:
            table = open_catalog(self._options).load_table(self._name)
        except NoSuchTableError as error:
            raise ConnectorFailure(
                f"{self._what('go on with')}: the table, which this pipeline wrote, is gone. Give the connector another name to "
                "start a new table."
            ) from error
        entry = self._ledger.newest(table)
        if entry is None:
            raise ConnectorFailure(
                f"{self._what('go on with')}: it is not the table that this pipeline wrote: no snapshot in its history names it. "
                "Give the connector another name to start anew, or put the table back."
            )
        self._fit_to(table)
        self._table = table
        self._all_ours = entry.all_ours
        self._resume_writer(entry.last_ts)
        self._open_for_run(table, entry.step)

    def _open_for_run(self, table: Table, step: int) -> None:
        """Record in the table that this run writes it, and which steps it has."""
        self._step = step
        properties = self._ledger.properties(step, self._last_ts, all_ours=self._all_ours)
        table.append(self._writer.table_schema.empty_table(), snapshot_properties=properties)

    def _commit_what_fits(self, step: int, changes: Changes, error: Exception) -> WrittenSnapshot:
        """Commit a step without the rows that the table does not take."""
        trial = IcebergTrialTable(self._require_open(), self._writer, error)
        try:
            fitting = FittingChanges(changes, trial.check, self._left_out)
        finally:
            trial.close()
        return self._commit_step(step, fitting)

    def _commit_step(self, step: int, changes: Changes) -> WrittenSnapshot:
        """Commit a step, and retry while commits of others conflict with it."""
        try:
            return _CONFLICT_RETRIES.retrying(retry_if_exception_type(CommitFailedException))(self._try_to_commit, step, changes)
        except CommitFailedException as error:
            raise ConnectorFailure(
                f"{self._what('write')}: others have committed for {_CONFLICTS_S:.0f} s, the last time: {error}. Let one "
                "writer at a time change the table."
            ) from error

    def _try_to_commit(self, step: int, changes: Changes) -> WrittenSnapshot:
        table = self._require_open()
        self._check_newest()
        table.refresh()
        entry = self._ledger.newest(table)
        if self._ledger.is_overtaken(entry):
            raise ConnectorFailure(f"{self._what('write')}: another run of the pipeline has opened the table since. This one ends.")
        if entry is not None and entry.step >= step:
            return WrittenSnapshot(0, 0, self._last_ts)
        self._all_ours = self._all_ours and entry is not None and self._is_current(table, entry.snapshot_id)
        if isinstance(self._writer, MergedWriter):
            self._writer.appends_new_keys = self._all_ours
        return self._write_and_commit(table, step, changes)

    def _write_and_commit(self, table: Table, step: int, changes: Changes) -> WrittenSnapshot:
        transaction = without_retries(table).transaction()
        written = self._writer.write(
            table, transaction, changes, lambda last_ts: self._ledger.properties(step, last_ts, all_ours=self._all_ours)
        )
        self._check_newest()
        transaction.commit_transaction()
        return written

    def _is_current(self, table: Table, snapshot_id: int) -> bool:
        current = table.current_snapshot()
        return current is not None and current.snapshot_id == snapshot_id

    def _new_writer(self, required: Collection[str] = ()) -> IcebergChangeLogWriter | MergedWriter:
        """Make a writer for a table in which some columns are never NULL."""
        schema = with_required(iceberg_schema(self._columns), required)
        if self._options.write is TableContents.MERGED:
            return MergedWriter(self._columns, schema, self._key)
        log = ChangeLogRows(
            schema, self._options.op_column, self._options.ts_column, lambda rows: as_iceberg(rows, self._columns, schema)
        )
        log.table_schema = with_required(log.table_schema, required)
        return IcebergChangeLogWriter(log)

    def _fit_to(self, table: Table) -> None:
        """Adapt the rows to write to an existing table.

        :raises ConnectorFailure: when they cannot be adapted
        """
        self._check_columns(table)
        self._writer = self._new_writer([field.name for field in table.schema().fields if field.required])

    def _check_partitions(self, table: Table) -> None:
        """Refuse a table whose partitions cannot be computed here."""
        computed = [each for each in table.spec().fields if not isinstance(each.transform, IdentityTransform | VoidTransform)]
        if computed and importlib.util.find_spec("pyiceberg_core") is None:
            listed = ", ".join(f"{each.transform}({table.schema().find_column_name(each.source_id)})" for each in computed)
            raise ConnectorFailure(
                f"{self._what('write')}: it is partitioned by {listed}, for which pyiceberg-core is missing: "
                "pip install 'airflow-pipelines[iceberg]'"
            )

    def _check_columns(self, table: Table) -> None:
        self._check_partitions(table)
        wanted = self._writer.table_schema
        there = schema_to_pyarrow(table.schema(), include_field_ids=False)
        reasons = []
        for field in wanted:
            place = there.get_field_index(field.name)
            if place < 0:
                reasons.append(f"column {field.name!r} ({field.type}) is not in the table")
            elif not _are_alike(there.field(place).type, field.type):
                reasons.append(
                    f"column {field.name!r} is {_format_type(field.type)} in the view and "
                    f"{_format_type(there.field(place).type)} in the table"
                )
        reasons += [
            f"column {field.name!r} of the table must not be NULL and is not in the view"
            for field in there
            if not field.nullable and field.name not in wanted.names
        ]
        if reasons:
            raise ConnectorFailure(
                f"{self._what('write')}: the table does not have the columns of the rows to write: {'; '.join(reasons)}. Change "
                "the view or the table (ALTER TABLE), or give another 'table_name' in a connector with another name."
            )

    @property
    def _last_ts(self) -> int:
        return self._writer.log.last_ts if isinstance(self._writer, IcebergChangeLogWriter) else 0

    def _resume_writer(self, last_ts: int) -> None:
        if isinstance(self._writer, IcebergChangeLogWriter):
            self._writer.log.last_ts = last_ts

    def _check_newest(self) -> None:
        if self._fence is not None:
            self._fence.check()

    def _require_open(self) -> Table:
        if self._table is None:
            raise ConnectorFailure(f"{self._what('write')}: it is not open")
        return self._table

    def _what(self, doing: str) -> str:
        return f"iceberg_output cannot {doing} {self._name}"


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True if the types are the same apart from the maximum size of texts."""
    return _format_type(one) == _format_type(other)


def _format_type(kind: pa.DataType) -> str:
    return str(kind).replace("large_", "").replace(" not null", "")
