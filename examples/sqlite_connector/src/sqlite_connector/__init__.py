"""The connector ``sqlite_output``: a table of SQLite that equals a view, each step and its number in one transaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Declared, Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.option_errors import InvalidOptionError
from airflow_pipelines.engine.arrow import WEIGHT

STEPS = "CREATE TABLE IF NOT EXISTS pipeline_steps (writer TEXT PRIMARY KEY, step INTEGER NOT NULL)"
BUSY_S = 5.0
KINDS = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE", "VARCHAR", "CHAR"}


class SqliteOptions(BaseModel):
    """Options of the connector. What it does not know is refused when a program is compiled.

    :param path: the database's file
    :param table: the table, which has the view's columns
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1)
    table: str = Field(min_length=1)


class SqliteOutput:
    """Deletes and inserts rows by the columns of an index."""

    def __init__(self, options: SqliteOptions, context: OutputContext) -> None:
        self._options = options
        self._context = context
        self._connection: sqlite3.Connection | None = None
        self._table = quoted(options.table)

    def open(self, resumed: bool) -> None:
        """Open the database. A target that this output has written before is left as it is."""
        if not Path(self._options.path).parent.is_dir():
            # It may be a disk that is not mounted yet: the host tries again, and the pipeline goes on meanwhile.
            raise TransientConnectorFailure(f"sqlite_output: the folder of {self._options.path} is not there")
        self._connection = sqlite3.connect(self._options.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._execute(STEPS)
        if not resumed:
            self._execute(f"DELETE FROM {self._table}")

    def committed_step(self) -> int | None:
        """The newest step that the database has: the host gives none again that is there."""
        rows = self._execute("SELECT step FROM pipeline_steps WHERE writer = ?", (self._context.writer,))
        return rows[0][0] if rows else None

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step. All of it is in the database when this returns, or nothing."""
        names, key = self._context.schema.column_names, self._context.key
        matches = " AND ".join(f"{quoted(name)} IS ?" for name in key)
        marks = ", ".join("?" * len(names))
        listed = ", ".join(map(quoted, names))
        records = size = 0
        self._execute("BEGIN IMMEDIATE")
        try:
            for table in changes.tables():
                for row in table.select([*names, WEIGHT]).to_pylist():
                    weight = row.pop(WEIGHT)
                    # A delete comes before the insert of the same key.
                    self._execute(f"DELETE FROM {self._table} WHERE {matches}", tuple(row[name] for name in key))
                    if weight > 0:
                        self._execute(f"INSERT INTO {self._table} ({listed}) VALUES ({marks})", tuple(row.values()))
                    records, size = records + 1, size + sum(len(str(value)) for value in row.values())
            self._execute("INSERT OR REPLACE INTO pipeline_steps VALUES (?, ?)", (self._context.writer, step))
            self._execute("COMMIT")
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.rollback()
            raise
        return records, size

    def close(self) -> None:
        """Let go of the database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[int]]:
        if self._connection is None:
            raise ConnectorFailure("sqlite_output: it is not open")
        try:
            with closing(self._connection.execute(statement, values)) as cursor:
                return cursor.fetchall()
        except sqlite3.OperationalError as error:
            # The message says what is wrong, where, and what to do; a value is never in it.
            if "locked" in str(error) or "unable to open" in str(error):
                raise TransientConnectorFailure(f"sqlite_output: {self._options.path} is in use: {error}") from error
            wanted = ", ".join(f"{column.name} {column.type.name}" for column in self._context.schema.columns)
            raise ConnectorFailure(
                f"sqlite_output: {self._options.path} takes no rows: {error}. It needs a table {self._options.table} ({wanted})"
            ) from error
        except sqlite3.Error as error:
            raise ConnectorFailure(f"sqlite_output: {self._options.path} takes no rows: {error}") from error


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check(options: SqliteOptions, declared: Declared) -> None:
    """Called when a program is compiled."""
    for column in declared.schema.columns:
        if column.type.name not in KINDS:
            raise InvalidOptionError(
                f"sqlite_output cannot write column {column.name!r} of type {column.type.name}; cast it in the view"
            )


SQLITE_OUTPUT = OutputDefinition(
    name="sqlite_output",
    options=SqliteOptions,
    open=SqliteOutput,
    guarantee=Guarantee.EXACTLY_ONCE,
    needs_index=True,
    mirrors=lambda _: True,
    check=check,
)
