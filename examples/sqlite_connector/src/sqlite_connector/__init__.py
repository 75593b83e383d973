"""The connector ``sqlite_output``: a table of SQLite that equals a view, each step and its number in one transaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Declared, Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.left_out import RowProblem, parts_that_fit
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.zsets import WEIGHT

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
        records = size = 0
        self._execute("BEGIN IMMEDIATE")
        try:
            for table in changes.tables():
                # A row that the table does not take is left out and listed, and the others are written.
                for part_records, part_size in parts_that_fit(table, self._put, self._context.left_out.add):
                    records, size = records + part_records, size + part_size
            self._execute("INSERT OR REPLACE INTO pipeline_steps VALUES (?, ?)", (self._context.writer, step))
            self._execute("COMMIT")
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.rollback()
            raise
        return records, size

    def _put(self, changes: pa.Table) -> tuple[int, int]:
        """Write some changes, or none of them when the table does not take one."""
        names, key = self._context.schema.column_names, self._context.key
        matches = " AND ".join(f"{quoted(name)} IS ?" for name in key)
        listed, marks = ", ".join(map(quoted, names)), ", ".join("?" * len(names))
        self._execute("SAVEPOINT part")
        try:
            # Of a row that goes no more than its key has to be readable.
            for row in changes.select(key).to_pylist():
                self._execute(f"DELETE FROM {self._table} WHERE {matches}", tuple(row.values()))
            for row in changes.filter(pc.greater(changes.column(WEIGHT), 0)).select(names).to_pylist():
                self._execute(f"INSERT INTO {self._table} ({listed}) VALUES ({marks})", tuple(row.values()))
        except (RowProblem, UnicodeDecodeError) as error:
            self._execute("ROLLBACK TO part")
            raise RowProblem(f"the table does not take it: {error}") from error
        self._execute("RELEASE part")
        return changes.num_rows, changes.nbytes

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
        except sqlite3.IntegrityError as error:
            raise RowProblem(str(error)) from error
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
