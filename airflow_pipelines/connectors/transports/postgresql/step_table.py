"""The table in which outputs keep, in the transaction of each step, which step it was."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.names import quoted

NAME: Final = "airflow_pipelines_steps"
_COLUMNS: Final = (
    "writer text PRIMARY KEY, step bigint NOT NULL, epoch bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now()"
)
_LOCK: Final = 7_305_809_134_216_043_521
"""Whoever makes the table holds this lock, since two that do so at once disturb each other."""


class StepTable:
    """The steps of one output in a database.

    :param schema: where the table is, beside the one that is written
    :param writer: the output
    :param epoch: that of the run; None for one that has no other to be told from
    """

    def __init__(self, schema: str, writer: str, epoch: int | None) -> None:
        self._schema = schema
        self._writer = writer
        self._epoch = epoch

    @property
    def sql(self) -> str:
        """The table's name in SQL."""
        return f"{quoted(self._schema)}.{quoted(NAME)}"

    def prepare(self, connection: psycopg.Connection[Any], where: str) -> None:
        """Make the table where it is not there.

        :param connection: in no transaction
        :param where: for messages
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
        """A pipeline begins anew: what an earlier one wrote is not of its steps."""
        connection.execute(f"DELETE FROM {self.sql} WHERE writer = %s".encode(), (self._writer,))

    def newest(self, connection: psycopg.Connection[Any]) -> int | None:
        """The newest step that was written; None when there is none."""
        row = connection.execute(f"SELECT step FROM {self.sql} WHERE writer = %s".encode(), (self._writer,)).fetchone()
        return None if row is None else int(row[0])

    def keep(self, connection: psycopg.Connection[Any], step: int) -> bool:
        """Note a step, in the transaction that writes it.

        :param connection: in that transaction
        :param step: its number
        :returns: False when a later run has written already
        """
        newer = "" if self._epoch is None else "WHERE kept.epoch <= EXCLUDED.epoch"
        statement = f"""
            INSERT INTO {self.sql} AS kept (writer, step, epoch) VALUES (%s, %s, %s)
            ON CONFLICT (writer) DO UPDATE SET step = EXCLUDED.step, epoch = EXCLUDED.epoch, written_at = now() {newer}
        """
        return connection.execute(statement.encode(), (self._writer, step, self._epoch or 0)).rowcount == 1
