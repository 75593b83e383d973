"""An output that writes a view, or its changes, to a Delta table: one commit for each step, with the step's number in it."""

from __future__ import annotations

import logging
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.left_out import FittingChanges, LeftOutRows
from airflow_pipelines.connectors.transports.delta_table.appending import append
from airflow_pipelines.connectors.transports.delta_table.beginning import existing, first_version, next_version
from airflow_pipelines.connectors.transports.delta_table.failures import failure, in_words, is_of_store
from airflow_pipelines.connectors.transports.delta_table.filesystems import table_files
from airflow_pipelines.connectors.transports.delta_table.ledger import DeltaLedger, NotToBeTakenBackError
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions
from airflow_pipelines.connectors.transports.delta_table.restoring import NotRestoredError, restore
from airflow_pipelines.connectors.transports.delta_table.step_writers import (
    DeltaChangeLogWriter,
    DeltaStepWriter,
    MergedByKeyWriter,
    MergedByRowWriter,
    WrittenCommit,
)
from airflow_pipelines.connectors.transports.delta_table.trial import DeltaTrialTable
from airflow_pipelines.connectors.transports.lake.change_log import ChangeLogRows
from airflow_pipelines.connectors.transports.lake.columns import table_rows, table_schema
from airflow_pipelines.connectors.transports.lake.output_options import Beginning, TableContents
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.rows.schema import RelationSchema

logger = logging.getLogger(__name__)

_CONFLICTS_S: Final = 60.0
"""The time, in seconds, for which a step is retried while others commit changes of the same rows."""
_CONFLICT_RETRIES: Final = RetryPolicy(first_wait_s=0.1, longest_wait_s=2.0, limit_s=_CONFLICTS_S)


class DeltaTableOutput:
    """An output whose table records the steps that it has."""

    def __init__(
        self,
        options: DeltaOutputOptions,
        schema: RelationSchema,
        key: tuple[str, ...],
        owner: str,
        fence: Fence | None = None,
        left_out: LeftOutRows | None = None,
    ) -> None:
        """Make an output that is not open yet.

        :param options: the options of the connector
        :param schema: the schema of the view
        :param key: the columns of the connector's index; empty without one
        :param owner: the name of the output among all that may write the table, also under another name of the pipeline
        :param fence: the epoch of the run that writes; None where there is no other
        :param left_out: the collector of the rows that the table does not take; None where nobody asks for them
        """
        self._options = options
        self._columns = schema.columns
        self._key = key
        self._fence = fence
        self._left_out = left_out or LeftOutRows(key)
        self._owner = owner
        self._ledger: DeltaLedger | None = None
        self._table: DeltaTable | None = None
        self._writer: DeltaStepWriter | None = None
        self._schema = pa.schema([])
        self._step = -1

    def open(self, resumed: bool) -> None:
        """Make or empty the table at the first start; at others, check that it is the table that was written before.

        :raises ConnectorFailure: when the table cannot be written, or has other columns
        :raises OvertakenError: when a later run of the pipeline writes it
        """
        self._check_newest()
        schema = plain = table_schema(self._columns)
        log = None
        if self._options.write is TableContents.CHANGE_LOG:
            op_column, ts_column = self._log_columns(resumed)
            log = ChangeLogRows(plain, op_column, ts_column, lambda rows: table_rows(rows, self._columns, plain))
            schema = log.table_schema
        self._schema = schema
        begin = next_version if resumed else first_version
        try:
            files = table_files(self._options.uri, self._options.storage_options)
            ledger = self._ledger = DeltaLedger(self._owner, None if self._fence is None else self._fence.epoch, files)
            self._table = begin(self._options, schema, ledger)
            step = ledger.step(self._table)
            if log is not None:
                log.last_ts = ledger.last_ts(self._table)
            only_ours = ledger.began_empty(self._table)
        except (DeltaError, OSError, ValueError) as error:
            raise failure(self._what("open"), error) from error
        self._step = -1 if step is None else step
        if log is not None:
            self._writer = DeltaChangeLogWriter(log)
        elif self._key:
            self._writer = MergedByKeyWriter(self._columns, schema, self._key, only_ours)
        else:
            self._writer = MergedByRowWriter(self._columns, schema)

    def _log_columns(self, resumed: bool) -> tuple[str, str]:
        if not resumed and self._options.mode is Beginning.TRUNCATE:
            return self._options.log_columns([])
        try:
            table = existing(self._options.uri, self._options.storage_options)
        except (DeltaError, OSError, ValueError) as error:
            raise failure(self._what("open"), error) from error
        return self._options.log_columns([] if table is None else [field.name for field in table.schema().fields])

    def committed_step(self) -> int | None:
        """Return the last step in the table, or None if there is none."""
        return None if self._step < 0 else self._step

    def rewind(self, step: int) -> None:
        """Restore the table to its state after a step.

        :param step: the number of the step
        :raises ConnectorFailure: when that cannot be done and the table would not be equal to the view
        :raises OvertakenError: when a later run of the pipeline writes the table
        """
        table, ledger, _ = self._require_open()
        if step >= self._step:
            return
        self._check_newest()
        try:
            table.update_incremental()
            try:
                version = ledger.version_after(table, step)
                properties = ledger.restoring(step, ledger.last_ts(table))
                restore(self._options.uri, self._options.storage_options, table.version(), version, properties)
                logger.info("%s: restored to version %d, which has step %d", self._options.uri, version, step)
            except (NotToBeTakenBackError, NotRestoredError) as problem:
                self._go_on_in_spite_of(table, ledger, step, problem)
            table.update_incremental()
        except (DeltaError, OSError) as error:
            raise failure(self._what("restore"), error) from error
        self._step = step

    def _go_on_in_spite_of(self, table: DeltaTable, ledger: DeltaLedger, step: int, problem: Exception) -> None:
        """Let a change log repeat steps that cannot be taken back; raise an error for a table that is to be equal to the view."""
        text = f"steps {step + 1} to {self._step} in it come again and cannot be taken back: {in_words(problem)}"
        connector_error = failure(self._what("restore"), problem)
        if isinstance(connector_error, TransientConnectorFailure):
            raise connector_error from problem
        if self._options.write is TableContents.CHANGE_LOG:
            logger.warning("%s: %s; the change log will have them twice", self._options.uri, text)
            append(table, self._schema.empty_table(), ledger.opening(step, ledger.last_ts(table)))
            return
        raise ConnectorFailure(
            f"{self._what('restore')}: {text}. Write a new table: another 'uri', or 'mode': 'truncate' in a connector with another "
            "name and 'send_snapshot': true."
        ) from problem

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Commit a step's changes with its number, unless the table has the step.

        :returns: the number of changes that were written, and the number of bytes that they took in memory
        :raises ConnectorFailure: when they cannot be written
        :raises OvertakenError: when a later run of the pipeline writes the table
        """
        if step <= self._step:
            return 0, 0
        try:
            try:
                written = self._commit_step(step, changes)
            except (DeltaError, ValueError) as error:
                if isinstance(error, TableNotFoundError | CommitFailedError) or is_of_store(error):
                    raise
                # Maybe the table refuses some of the rows.
                written = self._commit_what_fits(step, changes)
        except (DeltaError, OSError, ValueError) as error:
            raise failure(self._what("write"), error) from error
        self._step = step
        return written.records, written.size_bytes

    def _commit_what_fits(self, step: int, changes: Changes) -> WrittenCommit:
        """Commit a step without the rows that the table does not take."""
        table, _, writer = self._require_open()
        trial = DeltaTrialTable(table, writer.rows)
        try:
            fitting = FittingChanges(changes, trial.check, self._left_out)
        finally:
            trial.close()
        return self._commit_step(step, fitting)

    def _commit_step(self, step: int, changes: Changes) -> WrittenCommit:
        """Commit a step, and retry while commits of others conflict with it."""
        try:
            return _CONFLICT_RETRIES.retrying(retry_if_exception_type(CommitFailedError))(self._try_to_commit, step, changes)
        except CommitFailedError as error:
            raise ConnectorFailure(
                f"{self._what('write')}: others have committed changes of the same rows for {_CONFLICTS_S:.0f} s, the last "
                f"time: {error}. Let one writer at a time change the table."
            ) from error

    def _try_to_commit(self, step: int, changes: Changes) -> WrittenCommit:
        table, ledger, writer = self._require_open()
        self._check_newest()
        table.update_incremental()
        if ledger.is_overtaken(table):
            raise ConnectorFailure(f"{self._what('write')}: another run of the pipeline has opened the table since. This one ends.")
        there = ledger.step(table)
        if there is not None and there >= step:
            return WrittenCommit(0, 0)
        return writer.write(table, changes, lambda notes: ledger.writing(step, notes))

    def close(self) -> None:
        """Release the table; everything is in it."""
        self._table = None
        self._writer = None

    def _check_newest(self) -> None:
        if self._fence is not None:
            self._fence.check()

    def _require_open(self) -> tuple[DeltaTable, DeltaLedger, DeltaStepWriter]:
        if self._table is None or self._ledger is None or self._writer is None:
            raise ConnectorFailure(f"{self._what('write')}: it is not open")
        return self._table, self._ledger, self._writer

    def _what(self, doing: str) -> str:
        return f"delta_table_output cannot {doing} {self._options.uri}"
