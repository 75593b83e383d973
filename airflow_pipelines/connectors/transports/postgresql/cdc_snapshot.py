"""The rows that a table had when its slot was made."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from airflow_pipelines.connectors.transports.postgresql.arrow_rows import ArrowRows
from airflow_pipelines.connectors.transports.postgresql.query_rows import PostgresQueryRows
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions
from airflow_pipelines.rows.formats.parsed import Parsed


class TableSnapshot:
    """A snapshot of a table, which is first copied to a file of this machine and then read from there.

    So the server keeps its snapshot no longer than the copy takes, however slowly the pipeline reads. And a connection that is
    lost on the way costs only another copy: the pipeline has not seen a row.

    :param sessions: the sessions that make connections
    :param rows: the parser of the rows
    :param source: the text after FROM
    :param name: the name of the snapshot that the server has exported
    """

    def __init__(self, sessions: Sessions, rows: ArrowRows, source: str, name: str) -> None:
        self._parser = rows
        before = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", f"SET TRANSACTION SNAPSHOT '{name}'")
        self._query = PostgresQueryRows(sessions, rows.select(source), before)
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="airflow-pipelines-snapshot-")  # noqa: SIM115 - it stays open until the rows are read
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._left: pa.Table | None = None
        self._number = 0

    def copy(self, limit_s: float) -> bool:
        """Copy for a limited time.

        :param limit_s: the time, in seconds
        :returns: True if all rows are in the file
        :raises psycopg.Error: when the server cannot go on
        """
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            rows = self._query.next()
            if rows is None:
                self._query.close()
                self._read_from_file()
                return True
            self._write(rows)
        return False

    def read(self, max_records: int) -> Parsed | None:
        """Return the next rows, or None after the last ones.

        :param max_records: the maximum number of rows
        """
        if self._left is None:
            return None
        rows, rest = self._left.slice(0, max_records), self._left.slice(max_records)
        self._left = rest if rest.num_rows else self._next()
        parsed = self._parser.parse(rows, self._number)
        self._number = parsed.next_index
        return parsed

    @property
    def has_more(self) -> bool:
        """True if there are rows that were not read."""
        return self._left is not None

    def close(self) -> None:
        """Close the connection; may be called from another thread."""
        self._query.close()

    def forget(self) -> None:
        """Close and delete the file."""
        self._file.close()

    def _write(self, rows: pa.Table) -> None:
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(self._file, rows.schema, options=options)
        self._writer.write_table(rows)

    def _read_from_file(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        self._batches = iter(pa.ipc.open_stream(self._file))
        self._left = self._next()

    def _next(self) -> pa.Table | None:
        for batch in self._batches or ():
            if batch.num_rows:
                return pa.Table.from_batches([batch])
        return None
