"""The rows of a query in Arrow, as fast as the server sends them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa

from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions

_CANCEL_EVERY_S: Final = 0.2
_MESSAGE: Final = re.compile(r"(\w+: )?(\[libpq\] )?[^\n]*?((?P<severity>ERROR|FATAL|PANIC):\s+|failed: )(?P<text>[^\n]*)")


class PostgresQueryRows:
    """A query on a connection of its own, which is opened for the first rows.

    :param sessions: the sessions that make the connection
    :param query: the query
    :param before: the statements of its transaction that come before it
    """

    def __init__(self, sessions: Sessions, query: str, before: tuple[str, ...] = ()) -> None:
        self._sessions = sessions
        self._query = query
        self._before = before
        self._using = threading.Lock()
        self._connection: Any = None
        self._cursor: Any = None
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._closed = False

    def next(self) -> pa.Table | None:
        """Return the next rows, some megabytes of them, or None after the last ones.

        :raises psycopg.Error: when the server cannot carry out the query, or the connection is lost or closed
        """
        with self._using:
            if self._closed:
                raise psycopg.OperationalError("the connector was closed")
            try:
                if self._batches is None:
                    self._batches = self._start_query()
                batch = next(self._batches, None)
            except (adbc_driver_manager.Error, OSError) as error:
                raise _translate_error(error) from error
            return None if batch is None else pa.Table.from_batches([batch])

    def close(self) -> None:
        """Cancel the query; may be called from another thread, and more than once."""
        self._closed = True
        # Repeat it: a request to cancel may come before there is anything to cancel.
        while not self._using.acquire(timeout=_CANCEL_EVERY_S):
            cursor = self._cursor
            if cursor is not None:
                with suppress(adbc_driver_manager.Error):
                    cursor.adbc_cancel()
        try:
            cursor, connection, self._cursor, self._connection = self._cursor, self._connection, None, None
            for each in (cursor, connection):
                if each is not None:
                    with suppress(adbc_driver_manager.Error, OSError):
                        each.close()
        finally:
            self._using.release()

    def _start_query(self) -> Iterator[pa.RecordBatch]:
        self._connection = adbc.connect(self._sessions.conninfo())
        self._cursor = self._connection.cursor()
        for statement in self._before:
            self._cursor.execute(statement)
        self._cursor.execute(self._query)
        return iter(self._cursor.fetch_record_batch())


def _translate_error(error: Exception) -> psycopg.Error:
    """Return the error as the other client library would raise it."""
    match = _MESSAGE.match(str(error))
    severity, text = (match["severity"], match["text"]) if match is not None else (None, str(error))
    state = getattr(error, "sqlstate", None)
    if state:
        with suppress(KeyError):
            return psycopg.errors.lookup(state)(text)
    # Errors between rows have no code. An ERROR is one of the query; all else is one of the connection.
    return psycopg.DatabaseError(text) if severity == "ERROR" else psycopg.OperationalError(text)
