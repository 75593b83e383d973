"""A periodic check of the end of a server's log, and of the existence of a followed table."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import TransientConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.lsn import read_lsn
from airflow_pipelines.connectors.transports.postgresql.publication import FollowedTable
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions

_EVERY_S: Final = 5.0
_END: Final = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END)::text"


class Watch:
    """A watch with a connection of its own.

    :param sessions: the sessions that make the connection
    :param where: the connector, for messages
    """

    def __init__(self, sessions: Sessions, where: str) -> None:
        self._sessions = sessions
        self._where = where
        self._connection: psycopg.Connection[Any] | None = None
        self._next = 0.0
        self.table: FollowedTable | None = None
        """The table that is followed."""
        self.end: int | None = None
        """The end of the server's log at the last look; None before the first one."""

    def look(self, *, is_quiet: bool) -> None:
        """Look at the server, if it is time to.

        :param is_quiet: True if no transaction is under way, so that a table that is gone is so for good
        :raises ConnectorFailure: when the table is gone, or its publication
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        try:
            if self._connection is None:
                self._connection = self._sessions.connect()
            row = self._connection.execute(_END).fetchone()
            self.end = None if row is None or row[0] is None else read_lsn(row[0])
            if is_quiet and self.table is not None:
                FollowedTable.find(self._connection, self.table.sql, self.table.publication, self._where)
        except (psycopg.Error, TransientConnectorFailure):
            # The stream notices when the server is away, and reports it.
            self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
