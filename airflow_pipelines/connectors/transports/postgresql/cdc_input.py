"""An input that follows a table: first its rows, then the changes, transaction by transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    ConnectorFailure,
    CountedError,
    InputChunk,
    Lag,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.postgresql.arrow_rows import ArrowRows
from airflow_pipelines.connectors.transports.postgresql.cdc_snapshot import TableSnapshot
from airflow_pipelines.connectors.transports.postgresql.change_rows import ChangeRows
from airflow_pipelines.connectors.transports.postgresql.lsn import lsn_text, read_lsn
from airflow_pipelines.connectors.transports.postgresql.options import PostgresCdcInputOptions
from airflow_pipelines.connectors.transports.postgresql.pgoutput import (
    Delete,
    Insert,
    Relation,
    TransactionBegin,
    TransactionEnd,
    Truncate,
    Update,
    decode,
)
from airflow_pipelines.connectors.transports.postgresql.publication import (
    ChangesLostError,
    FollowedTable,
    Slot,
    slot_name,
)
from airflow_pipelines.connectors.transports.postgresql.raw_changes import TableTruncation
from airflow_pipelines.connectors.transports.postgresql.replication import ReplicationConnection
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceTypes
from airflow_pipelines.connectors.transports.postgresql.transactions import Portion, StreamedTransactions
from airflow_pipelines.connectors.transports.postgresql.watch import Watch
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.formats.parsed import Parsed, RecordError

_NAME: Final = "postgres_cdc_input"
_MAX_KEPT_ERRORS: Final = 100
_MOVED_BYTES: Final = 1 << 20
"""The number of log bytes without a change of the table after which the position advances.

The server then need not keep that part of the log.
"""
_SLOT_WAIT_S: Final = 2.0
_IDLE_LIMIT_S: Final = 20.0
"""The time, in seconds, after which an idle input rests. A server takes a reader that is silent for a minute for dead."""


class PostgresCdcInput:
    """An input over the changes of one table. A position is a place in the server's log, usually between two transactions."""

    def __init__(self, options: PostgresCdcInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the server, the publication and the table
        :param context: the context of the connector, with the table that the rows are for
        """
        self._options = options
        self._context = context
        self._sessions = Sessions(_NAME, options)
        self._slot = options.slot or slot_name(context.pipeline.id, context.endpoint)
        self._table: FollowedTable | None = None
        self._system: str | None = None
        self._exporter: ReplicationConnection | None = None
        self._snapshot: TableSnapshot | None = None
        self._is_copied = False
        self._has_given_rows = False
        self._replaces_rows = False
        self._stream: ReplicationConnection | None = None
        self._transactions = StreamedTransactions(0)
        self._rows = ChangeRows(context.schema, context.now, _NAME, options.invalid_values)
        self._oids: set[int] = set()
        self._failure: ConnectorFailure | None = None
        self._watch = Watch(self._sessions, _NAME)
        self._closed = threading.Event()
        self._durable = 0
        self._confirmed = 0

    @property
    def idle_limit_s(self) -> float:
        """The number of seconds for which the server waits for a pipeline that does not read."""
        return _IDLE_LIMIT_S

    def open(self, position: Position | None) -> None:
        """Find the table and the slot; without a position, make the slot and begin with the rows of the table.

        :raises ConnectorFailure: when the table cannot be followed; :class:`TransientConnectorFailure` when it may be later
        """
        with self._sessions.connect() as connection, self._sessions.failures("cannot prepare to follow the table"):
            table = self._table = FollowedTable.find(connection, self._options.source_table, self._options.publication, _NAME)
            table.check_identity(connection, self._context.schema.primary_key, _NAME)
            table.check_generated(connection, self._rows.reads, _NAME)
            self._watch.table = table
            columns = table.columns_of_rows(connection)
            where = f"{_NAME}: table {table.schema}.{table.name}"
            rows = ArrowRows(self._context.schema, columns, where, self._context.now, self._options.invalid_values)
            slot = self._free_slot(connection)
            if position is not None:
                try:
                    self._resume(position, slot)
                except ChangesLostError:
                    is_of_others = slot is not None and self._options.slot is not None
                    if not self._options.snapshot_if_data_expires or is_of_others:
                        raise
                    self._begin_again(connection, position, slot, table, rows)
            elif self._options.snapshot:
                self._begin_with_rows(connection, slot, table, rows)
            else:
                self._begin_with_changes(slot)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next rows or changes, or None if there are none within ``timeout_s``.

        :raises ConnectorFailure: when the table can be followed no more; :class:`TransientConnectorFailure` when it can be later
        """
        if self._closed.is_set():
            return None
        if self._snapshot is not None:
            return self._read_rows(self._snapshot, max_records, timeout_s)
        if self._failure is not None:
            raise self._failure
        with self._sessions.failures("cannot read the changes"):
            portion = self._next_portion(max_records, timeout_s)
        return None if portion is None else self._chunk_of(portion)

    def commit(self, position: Position) -> None:
        """Record the position up to which the server need not keep its log."""
        self._durable = max(self._durable, read_lsn(position["lsn"]))

    def lag(self) -> Lag | None:
        """Return the number of log bytes that the server keeps for this input."""
        end = self._watch.end
        return None if end is None else Lag(bytes=max(0, end - max(self._durable, self._confirmed)))

    def rest(self) -> None:
        """Release the slot; the next read takes it again."""
        if self._stream is not None:
            self._stop_stream()
            self._transactions = self._transactions.again()
        self._watch.close()

    def close(self) -> None:
        """Close all connections; a read in another thread ends, and none takes the slot again."""
        self._closed.set()
        if self._snapshot is not None:
            self._snapshot.close()
            if not self._is_copied:
                self._forget_slot()
        self._stop_stream()
        self._watch.close()

    # The beginning.

    def _free_slot(self, connection: psycopg.Connection[Any]) -> Slot | None:
        """Return the slot, after a short wait while it is in use.

        The server may need a moment to notice that an earlier reader has gone.
        """
        deadline = time.monotonic() + _SLOT_WAIT_S
        while (slot := Slot.find(connection, self._slot)) is not None and slot.holder is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        return slot

    def _resume(self, position: Position, slot: Slot | None) -> None:
        table = self._require_table()
        if "rows" in position:
            raise ChangesLostError(
                f"{_NAME}: the pipeline was stopped within the first rows of the table. Clear it and start it again."
            )
        place, name = read_lsn(position["lsn"]), position.get("slot", self._slot)
        slot = self._check_slot(slot, place, name)
        if position.get("table", table.oid) != table.oid:
            raise self._another_table()
        self._system = position.get("system")
        # The place need not be durable yet: reading also resumes there after a lost connection.
        self._confirmed = slot.confirmed
        self._transactions = StreamedTransactions(place, int(position.get("messages", 0)))

    def _check_slot(self, slot: Slot | None, place: int, name: str) -> Slot:
        """Return the slot if it has all changes after a place, else raise an error."""
        if slot is None:
            raise ChangesLostError(
                f"{_NAME}: slot {name} is gone, and with it the changes since {lsn_text(place)}. Clear the pipeline and start "
                "it again, so that it reads the whole table."
            )
        slot.check_usable(_NAME)
        slot.check_has(place, _NAME)
        return slot

    def _begin_with_rows(
        self, connection: psycopg.Connection[Any], slot: Slot | None, table: FollowedTable, rows: ArrowRows
    ) -> None:
        if slot is not None:
            slot.check_usable(_NAME)
            if self._options.slot is not None:
                raise ConnectorFailure(
                    f"{_NAME}: slot {self._slot} is there already, and the rows of the table can be read with a new one only. "
                    f"If nobody needs it, SELECT pg_drop_replication_slot('{self._slot}'); or go on with its changes alone: "
                    "option 'snapshot' false"
                )
            # A slot of this input, left from a start before anything was durable.
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self._slot,))
        self._copy_rows(table, rows)

    def _begin_again(
        self,
        connection: psycopg.Connection[Any],
        position: Position,
        slot: Slot | None,
        table: FollowedTable,
        rows: ArrowRows,
    ) -> None:
        """Make the slot anew, and replace the rows that were given before by all rows."""
        if slot is not None:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self._slot,))
        self._system = position.get("system")
        self._replaces_rows = True
        self._copy_rows(table, rows)

    def _copy_rows(self, table: FollowedTable, rows: ArrowRows) -> None:
        exporter = self._exporter = ReplicationConnection(self._sessions)
        self._check_server(exporter)
        made = exporter.create_slot(self._slot)
        self._confirmed = made.place
        self._transactions = StreamedTransactions(made.place)
        self._snapshot = TableSnapshot(self._sessions, rows, table.source, made.snapshot)

    def _begin_with_changes(self, slot: Slot | None) -> None:
        if slot is not None:
            slot.check_usable(_NAME)
            self._confirmed = slot.confirmed
            self._transactions = StreamedTransactions(slot.confirmed)
            return
        maker = ReplicationConnection(self._sessions)
        try:
            self._system = maker.system()
            self._confirmed = maker.create_slot(self._slot).place
            self._transactions = StreamedTransactions(self._confirmed)
        finally:
            maker.close()

    def _forget_slot(self) -> None:
        """Drop a slot whose rows have not been copied, since nothing can begin with it."""
        if self._exporter is not None:
            self._exporter.close()
        with suppress(ConnectorFailure, psycopg.Error), self._sessions.connect() as connection:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self._slot,))

    def _read_rows(self, snapshot: TableSnapshot, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next rows of the table.

        They are all one transaction: no reader sees a part, and a pipeline that ends on the way has none of them.
        """
        if not self._is_copied:
            with self._sessions.failures("cannot read the rows of the table"):
                self._is_copied = snapshot.copy(timeout_s)
            if not self._is_copied:
                return None
            if self._exporter is not None:
                self._exporter.close()
        parsed = snapshot.read(max_records)
        if self._replaces_rows:
            self._replaces_rows = False
            parsed = self._rows.replacing(parsed)
        position = self._position(Portion((), 0, self._transactions.place))
        if snapshot.has_more:
            self._has_given_rows = True
            return _chunk(parsed, {**position, "rows": True}, ChunkInTransaction.MORE)
        snapshot.forget()
        self._snapshot = None
        return _chunk(parsed, position, ChunkInTransaction.LAST if self._has_given_rows else None)

    # The changes.

    def _next_portion(self, max_records: int, timeout_s: float) -> Portion | None:
        deadline = time.monotonic() + timeout_s
        self._watch.look(is_quiet=not self._transactions.is_open)
        stream = self._stream if self._stream is not None else self._start_stream()
        while (portion := self._transactions.full(max_records)) is None:
            left = 0.0 if self._transactions.has_whole else max(0.0, deadline - time.monotonic())
            data = stream.next(self._durable, left)
            if data is None:
                break
            try:
                portion = self._take(data)
            except ConnectorFailure as failure:
                # Give what was committed before first.
                self._failure = failure
                break
            if portion is not None:
                return portion
            if time.monotonic() > deadline:
                break
        if portion is None:
            portion = self._transactions.whole()
        if portion is None and self._failure is not None:
            raise self._failure
        if portion is None and stream.received - self._transactions.given_place >= _MOVED_BYTES:
            portion = self._transactions.move_to(stream.received)
        return portion

    def _take(self, data: bytes) -> Portion | None:
        """Process a message.

        :returns: the end of a transaction of which parts were given before, else None
        """
        message = decode(data)
        match message:
            case TransactionBegin():
                self._transactions.begin()
            case TransactionEnd():
                return self._transactions.commit(message.end)
            case Relation():
                self._describe(message)
            case Truncate() if self._oids & set(message.oids) and not self._transactions.next_is_known():
                self._transactions.add([TableTruncation()], len(data))
            case Insert() | Update() | Delete() if message.oid in self._oids and not self._transactions.next_is_known():
                self._transactions.add(self._rows.entries(message), len(data))
        return None

    def _describe(self, relation: Relation) -> None:
        table = self._require_table()
        if (relation.schema, relation.name) != (table.schema, table.name):
            return
        if table.oid not in {0, relation.oid}:
            raise self._another_table()
        self._oids = {relation.oid}
        with self._sessions.connect() as connection:
            table.check_generated(connection, self._rows.reads, _NAME)
            self._rows.describe(relation, SourceTypes(connection).of)

    def _start_stream(self) -> ReplicationConnection:
        with self._sessions.connect() as connection:
            # Somebody may have made the slot anew while this input rested: the server would then begin at a later place.
            self._check_slot(self._free_slot(connection), self._transactions.place, self._slot)
        stream = ReplicationConnection(self._sessions)
        try:
            self._check_server(stream)
            stream.start(self._slot, self._options.publication, self._transactions.place)
        except BaseException:
            stream.close()
            raise
        self._stream = stream
        if self._closed.is_set():
            # The thread that closed the input may have seen no stream to stop.
            self._stop_stream()
            raise TransientConnectorFailure(f"{_NAME} is closed")
        return stream

    def _check_server(self, connection: ReplicationConnection) -> None:
        """Check that this is the same server as before.

        :raises ConnectorFailure: when it is another one
        """
        system = connection.system()
        if self._system not in {None, system}:
            raise ConnectorFailure(
                f"{_NAME}: this is another server than the one whose changes were read before. Correct 'uri', or clear the "
                "pipeline and start it again, so that it reads the whole table."
            )
        self._system = system

    def _stop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close(self._durable)

    def _require_table(self) -> FollowedTable:
        if self._table is None:
            raise ConnectorFailure(f"{_NAME} is not open")
        return self._table

    def _another_table(self) -> ConnectorFailure:
        return ChangesLostError(
            f"{_NAME}: table {self._options.source_table} was dropped and made again, and the pipeline has the rows of the old "
            "one. Clear the pipeline and start it again."
        )

    # Chunks.

    def _chunk_of(self, portion: Portion) -> InputChunk:
        parsed = self._rows.parse(portion.entries, portion.size_bytes, f"behind {lsn_text(portion.place)}")
        transaction = None
        if portion.is_part:
            transaction = ChunkInTransaction.LAST if portion.ends else ChunkInTransaction.MORE
        return _chunk(parsed, self._position(portion), transaction)

    def _position(self, portion: Portion) -> Position:
        position: Position = {"lsn": lsn_text(portion.place), "slot": self._slot, "table": self._require_table().oid}
        if self._system is not None:
            position["system"] = self._system
        return {**position, "messages": portion.messages} if portion.messages else position


def _chunk(parsed: Parsed | None, position: Position, transaction: ChunkInTransaction | None) -> InputChunk:
    errors: Sequence[RecordError] = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
    return InputChunk(
        changes=None if parsed is None else parsed.changes,
        records=0 if parsed is None else parsed.records,
        size_bytes=0 if parsed is None else parsed.consumed,
        position=position,
        parse_errors=tuple(CountedError("parse", error.message, error.index) for error in errors),
        num_parse_errors=0 if parsed is None else parsed.num_errors,
        transaction=transaction,
    )
