"""An input that reads an Iceberg table: a snapshot, the changes of later snapshots, or both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table import Table

from airflow_pipelines.connectors.base import ChunkInTransaction, ConnectorFailure, CountedError, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.iceberg.columns import plain_uuids
from airflow_pipelines.connectors.transports.iceberg.field_names import FieldNames
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions, IcebergMode
from airflow_pipelines.connectors.transports.iceberg.pieces import (
    ALL_ROWS,
    IcebergPiece,
    pieces_of_change,
    pieces_of_snapshot,
    rows_of,
    schema_of,
    snapshots_after,
)
from airflow_pipelines.connectors.transports.iceberg.tables import open_catalog, table_access, table_of_metadata
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.formats.parsed import Parsed
from airflow_pipelines.rows.formats.tables import TableParser

_POLL_S: Final = 1.0
_MAX_KEPT_ERRORS: Final = 100
_LOADING, _FOLLOWING, _COMPLETED = 0, 1, 2


@dataclass(slots=True)
class _Place:
    """The place of an input in its table.

    :param snapshot: the id of the snapshot that is, or was, read; None before a table has any
    :param whole: True if all rows of the snapshot are read, rather than its changes
    :param piece: the number of its files that are done
    :param row: the number of rows of the next file that are done
    :param done: True if all of the snapshot is done
    :param names: the names of fields by their ids, as they were when they were seen first
    """

    snapshot: int | None
    whole: bool
    piece: int = 0
    row: int = 0
    done: bool = False
    names: dict[str, str] = field(default_factory=dict)


class IcebergInput:
    """An input over an Iceberg table. The changes of one snapshot are one transaction."""

    def __init__(self, options: IcebergInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the options that identify the table
        :param context: the context of the connector
        """
        self._options = options
        self._parser = TableParser(context.schema, context.now)
        self._shown = options.table_name or options.metadata_location
        self._table: Table | None = None
        self._names = FieldNames({}, self._parser.takes)
        self._place = _Place(None, whole=False, done=True)
        self._pieces: list[IcebergPiece] | None = None
        self._rows: Iterator[pa.Table] | None = None
        self._rest: pa.Table | None = None
        self._next_look = 0.0
        self._lag: Lag | None = None
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Open the table, and seek to ``position``.

        :raises ConnectorFailure: when it cannot be read
        """
        with table_access(f"iceberg_input cannot open {self._shown}"):
            table = self._table = self._load()
            self._condition = table.scan(row_filter=self._options.snapshot_filter or ALL_ROWS).row_filter
            if position is None:
                self._place = self._find_beginning(table)
            else:
                self._place = _Place(**position)
            chosen = self._place.snapshot
            self._names = FieldNames(self._place.names, self._parser.takes)
            if chosen is not None and not self._place.done and table.snapshot_by_id(chosen) is None:
                raise ConnectorFailure(
                    f"iceberg_input: {self._shown} has no snapshot {chosen} (any more). Name one that it has, or load the current "
                    "one into a connector with another name."
                )
            if self._options.mode is not IcebergMode.SNAPSHOT and self._place.done:
                snapshots_after(table, chosen)
            # A snapshot that was read may have expired since; its names are part of the place.
            if chosen is None or table.snapshot_by_id(chosen) is not None:
                self._see_names(table)

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next rows, or None if there was nothing new within ``timeout_s``."""
        table = self._table
        if table is None or self._closed.is_set():
            return None
        with table_access(f"iceberg_input cannot read {self._shown}"):
            if self._place.done and not self._go_on(table):
                if self._options.mode is IcebergMode.SNAPSHOT:
                    return self._chunk(None, 0)
                self._closed.wait(min(timeout_s, _POLL_S))
                return None
            return self._next_chunk(table, max_records)

    def lag(self) -> Lag | None:
        """Return the number of unread records of snapshots, from their summaries, when the input last looked."""
        return self._lag

    def gauges(self) -> Mapping[str, int]:
        """Return the phase of the input: reading its snapshot, following the table, or completed."""
        if self._place.whole and not self._place.done:
            return {"iceberg_phase": _LOADING}
        return {"iceberg_phase": _COMPLETED if self._options.mode is IcebergMode.SNAPSHOT else _FOLLOWING}

    def close(self) -> None:
        """Close the input; a read in another thread then returns."""
        self._closed.set()

    def _load(self) -> Table:
        options = self._options
        if options.metadata_location is not None:
            return table_of_metadata(options.metadata_location, options)
        return open_catalog(options).load_table(options.table_name or "")

    def _find_beginning(self, table: Table) -> _Place:
        chosen = self._find_snapshot(table)
        return _Place(chosen, whole=True, done=chosen is None or self._options.mode is IcebergMode.FOLLOW)

    def _find_snapshot(self, table: Table) -> int | None:
        """Return the id of the snapshot that the options name."""
        options = self._options
        if options.snapshot_id is not None:
            if table.snapshot_by_id(options.snapshot_id) is None:
                known = ", ".join(str(each.snapshot_id) for each in table.snapshots()[-10:]) or "none"
                raise ConnectorFailure(f"iceberg_input: {self._shown} has no snapshot {options.snapshot_id}; its newest: {known}")
            return options.snapshot_id
        if options.datetime is not None:
            at = datetime.fromisoformat(options.datetime)
            millis = int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)
            snapshot = table.snapshot_as_of_timestamp(millis)
            if snapshot is None:
                raise ConnectorFailure(f"iceberg_input: {self._shown} had no snapshot yet at {options.datetime}")
            return snapshot.snapshot_id
        current = table.current_snapshot()
        return None if current is None else current.snapshot_id

    def _go_on(self, table: Table) -> bool:
        """Go to the next snapshot. Return False if there is none."""
        if self._options.mode is IcebergMode.SNAPSHOT or time.monotonic() < self._next_look:
            return False
        table.refresh()
        later = snapshots_after(table, self._place.snapshot)
        self._lag = Lag(records=sum(_count_changed(snapshot.summary) for snapshot in later))
        if not later:
            self._next_look = time.monotonic() + _POLL_S
            return False
        self._place = _Place(later[0].snapshot_id, whole=False)
        self._see_names(table)
        self._pieces = None
        return True

    def _see_names(self, table: Table) -> None:
        """Record the names of the columns that the table has at the snapshot."""
        self._names.see(schema_of(table, self._place.snapshot))
        self._place.names = self._names.to_position()

    def _next_chunk(self, table: Table, max_records: int) -> InputChunk:
        pieces = self._pieces_of_place(table)
        rows = self._next_rows(table, pieces)
        if rows is None:
            # The snapshot has no changes: files without rows, or the same rows in another order.
            return self._chunk(None, 0)
        piece, place = pieces[self._place.piece], self._place
        taken = rows.slice(0, max_records)
        self._rest = rows.slice(taken.num_rows) if taken.num_rows < rows.num_rows else None
        parsed = self._parser.parse_sized(plain_uuids(taken), place.row, taken.nbytes)
        place.row += taken.num_rows
        self._rest = self._next_rows(table, pieces)
        return self._chunk(_as_deletes(parsed) if piece.op is Op.DELETE else parsed, taken.nbytes)

    def _pieces_of_place(self, table: Table) -> list[IcebergPiece]:
        place = self._place
        if self._pieces is None and place.snapshot is not None:
            if place.whole:
                self._pieces = pieces_of_snapshot(table, place.snapshot, self._condition)
            else:
                snapshot = table.snapshot_by_id(place.snapshot)
                self._pieces = [] if snapshot is None else pieces_of_change(table, snapshot)
        return self._pieces or []

    def _next_rows(self, table: Table, pieces: list[IcebergPiece]) -> pa.Table | None:
        """Return unread rows of the first file that has any, or None if all of the snapshot is done."""
        place = self._place
        while place.piece < len(pieces):
            if self._rest is not None:
                return self._rest
            if self._rows is None:
                condition = self._condition if place.whole else ALL_ROWS
                self._rows = _skip_rows(rows_of(table, pieces[place.piece], self._names, condition), place.row)
            self._rest = next(self._rows, None)
            if self._rest is None:
                place.piece, place.row, self._rows = place.piece + 1, 0, None
        place.done = True
        return None

    def _chunk(self, parsed: Parsed | None, size: int) -> InputChunk:
        place = self._place
        transaction = None
        if not place.whole and parsed is not None:
            transaction = ChunkInTransaction.LAST if place.done else ChunkInTransaction.MORE
        errors = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
        return InputChunk(
            changes=None if parsed is None else parsed.changes,
            records=0 if parsed is None else parsed.records,
            size_bytes=size,
            position={name: getattr(place, name) for name in _Place.__slots__},
            parse_errors=tuple(CountedError("parse", f"{self._shown}: {error.message}", error.index) for error in errors),
            num_parse_errors=0 if parsed is None else parsed.num_errors,
            end_of_input=place.done and self._options.mode is IcebergMode.SNAPSHOT,
            transaction=transaction,
        )


def _skip_rows(tables: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    left = rows
    for table in tables:
        if left < table.num_rows:
            yield table.slice(left)
        left = max(0, left - table.num_rows)


def _as_deletes(parsed: Parsed) -> Parsed:
    if parsed.changes is None:
        return parsed
    rows = parsed.changes.rows
    place = rows.schema.get_field_index(OP)
    deletes = pa.array([int(Op.DELETE)], pa.int8()).take(pa.array([0] * rows.num_rows, pa.int32()))
    changes = TableChanges(parsed.changes.table, rows.set_column(place, rows.schema.field(place), deletes))
    return Parsed(changes, parsed.records, parsed.errors, parsed.num_errors, parsed.consumed, parsed.next_index)


def _count_changed(summary: Any) -> int:
    """Return the number of records that a snapshot changed, from its summary."""
    if summary is None:
        return 0
    properties = summary.additional_properties
    return sum(int(properties.get(name, 0)) for name in ("added-records", "deleted-records"))
