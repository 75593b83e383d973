"""The table in which outputs record the number of each step, in the transaction of the step."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.names import quote_name

NAME: Final = "airflow_pipelines_steps"
_COLUMNS: Final = (
    "writer text PRIMARY KEY, step bigint NOT NULL, epoch bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now()"
)
_LOCK: Final = 7_305_809_134_216_043_521
"""The advisory lock for making the table, since two that make it at once conflict."""


class StepTable:
    """The steps of one output in a database.

    :param schema: the schema of the table, which is that of the table that is written
    :param writer: the name of the output
    :param epoch: the epoch of the run; None for a run that has no epoch
    """

    def __init__(self, schema: str, writer: str, epoch: int | None) -> None:
        self._schema = schema
        self._writer = writer
        self._epoch = epoch

    @property
    def sql(self) -> str:
        """The table's name in SQL."""
        return f"{quote_name(self._schema)}.{quote_name(NAME)}"

    def prepare(self, connection: psycopg.Connection[Any], where: str) -> None:
        """Make the table if it does not exist.

        :param connection: a connection that is in no transaction
        :param where: the connector, for messages
        :raises ConnectorFailure: when the user may not make it
        """
        create = f"CREATE TABLE IF NOT EXISTS {self.sql} ({_COLUMNS})"
        if connection.execute("SELECT to_regclass(%s)", (self.sql,)).fetchone() != (None,):
            return
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                connection.execute(create.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConnectorFailure(
                f"{where}: the user in 'uri' may not make the table in which outputs keep how far they are. Let somebody who "
                f"may do it: {create}; and GRANT SELECT, INSERT, UPDATE, DELETE on it."
            ) from error

    def forget(self, connection: psycopg.Connection[Any]) -> None:
        """Delete the steps of an earlier pipeline, since this one begins anew."""
        connection.execute(f"DELETE FROM {self.sql} WHERE writer = %s".encode(), (self._writer,))

    def newest(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the newest step that was written, or None if there is none."""
        row = connection.execute(f"SELECT step FROM {self.sql} WHERE writer = %s".encode(), (self._writer,)).fetchone()
        return None if row is None else int(row[0])

    def keep(self, connection: psycopg.Connection[Any], step: int) -> bool:
        """Record a step, in the transaction that writes it.

        :param connection: the connection, in that transaction
        :param step: the number of the step
        :returns: False when a later run has written already
        """
        newer = "" if self._epoch is None else "WHERE kept.epoch <= EXCLUDED.epoch"
        statement = f"""
            INSERT INTO {self.sql} AS kept (writer, step, epoch) VALUES (%s, %s, %s)
            ON CONFLICT (writer) DO UPDATE SET step = EXCLUDED.step, epoch = EXCLUDED.epoch, written_at = now() {newer}
        """
        return connection.execute(statement.encode(), (self._writer, step, self._epoch or 0)).rowcount == 1
