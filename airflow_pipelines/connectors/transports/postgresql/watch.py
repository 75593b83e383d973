"""Looks from time to time how far a server has come, and whether a followed table is still there."""

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
    """Has a connection of its own.

    :param sessions: makes it
    :param where: for messages
    """

    def __init__(self, sessions: Sessions, where: str) -> None:
        self._sessions = sessions
        self._where = where
        self._connection: psycopg.Connection[Any] | None = None
        self._next = 0.0
        self.table: FollowedTable | None = None
        """The table that is followed."""
        self.end: int | None = None
        """How far the server's log had come; None before anybody has looked."""

    def look(self, *, is_quiet: bool) -> None:
        """Look, if it is time to.

        :param is_quiet: whether no transaction is on its way, so that a table that is gone is so for good
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
            # Whether the server is there is seen by the stream, which is what matters.
            self.close()

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
