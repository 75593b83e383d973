"""An output that writes a view to a table: as its contents, or as a log of its changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import OutputContext
from airflow_pipelines.connectors.left_out import RowProblem, key_alone, problems_of
from airflow_pipelines.connectors.transports.postgresql.copy_texts import lines, texts_for
from airflow_pipelines.connectors.transports.postgresql.names import quote_name
from airflow_pipelines.connectors.transports.postgresql.options import OutputMode, PostgresOutputOptions
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions, break_off
from airflow_pipelines.connectors.transports.postgresql.step_table import StepTable
from airflow_pipelines.connectors.transports.postgresql.target_table import TargetColumn, TargetTable
from airflow_pipelines.connectors.transports.postgresql.what_fits import (
    PassingRowProblem,
    rows_that_come,
    rows_that_go,
    write_what_fits,
)
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.systems.databases.postgresql import column_of, is_of_rows, may_pass_after_others

_NAME: Final = "postgres_output"
_STAGE: Final = "pg_temp.airflow_pipelines_stage"
_STAGED_OP: Final = "__airflow_pipelines_op"
_ANALYZED_ROWS: Final = 10_000
"""The number of staged rows from which on the stage is analysed, so that the server plans well."""
_INSERT, _UPDATE, _DELETE = "i", "u", "d"


class PostgresOutput:
    """An output that writes each step in one transaction, together with its number."""

    def __init__(self, options: PostgresOutputOptions, context: OutputContext) -> None:
        """Make an output that is not open yet.

        :param options: the server and the table
        :param context: the context of the connector, with the view and the writer
        """
        self._options = options
        self._context = context
        self._sessions = Sessions(_NAME, options)
        self._connection: psycopg.Connection[Any] | None = None
        self._table: TargetTable | None = None
        self._columns: list[TargetColumn] = []
        self._key: list[TargetColumn] = []
        self._steps: StepTable | None = None
        self._writing = threading.Lock()

    def open(self, resumed: bool) -> None:
        """Connect, and check that the table can take the view.

        :param resumed: True if the steps in the database belong to this pipeline's history
        :raises ConnectorFailure: when it cannot
        """
        connection = self._connection = self._sessions.connect()
        with self._sessions.failures("cannot prepare to write"):
            table = self._table = TargetTable.find(connection, self._options.table, _NAME)
            self._columns = table.columns_for(self._context.schema, self._columns_of_log(table), _NAME)
            by_name = dict(zip(self._context.schema.column_names, self._columns, strict=True))
            self._key = [by_name[name] for name in self._context.key]
            fence = self._context.fence
            steps = self._steps = StepTable(table.schema, self._context.writer, None if fence is None else fence.epoch)
            steps.prepare(connection, _NAME)
            if not resumed:
                steps.forget(connection)
            if self._options.mode is OutputMode.MATERIALIZED:
                table.check_key(self._key, _NAME)
                self._make_stage(connection, table)

    def committed_step(self) -> int | None:
        """Return the newest step in the table."""
        connection, steps = self._require_open()
        with self._sessions.failures("cannot ask for the newest step"):
            return steps.newest(connection)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        """Write a step.

        :returns: the number of changes that were written, and the number of bytes in which they were sent
        :raises ConnectorFailure: when they cannot be written; nothing of them is
        :raises OvertakenError: when a later run of the pipeline writes the table
        """
        with self._writing:
            return self._write(step, changes)

    def close(self) -> None:
        """Close the connection; may be called from another thread, where it aborts a step that is being written."""
        if self._connection is None:
            return
        if self._writing.acquire(blocking=False):
            try:
                self._connection.close()
            finally:
                self._writing.release()
        else:
            break_off(self._connection)

    def _write(self, step: int, changes: Changes) -> tuple[int, int]:
        connection, steps = self._require_open()
        fence = self._context.fence
        if fence is not None:
            fence.check()
        with self._sessions.failures(f"cannot write step {step}"), connection.transaction():
            if not steps.keep(connection, step):
                raise ConnectorFailure(f"{_NAME}: a later run of the pipeline writes {self._options.table}; this one ends.")
            try:
                written = self._put(connection, step, changes.tables())
            except (psycopg.Error, RowProblem) as error:
                if isinstance(error, psycopg.Error) and not is_of_rows(error):
                    raise
                written = self._put_what_fits(connection, step, changes)
            if fence is not None:
                fence.check()
            return written

    def _put(self, connection: psycopg.Connection[Any], step: int, tables: Iterable[pa.Table]) -> tuple[int, int]:
        """Write all changes, or none of them."""
        with connection.transaction():
            written = self._copy_to_log(connection, step, tables) if self._is_log else self._merged(connection, tables)
            # Violations of constraints, even of deferred ones, must show before the end of the transaction.
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
            return written

    def _put_what_fits(self, connection: psycopg.Connection[Any], step: int, changes: Changes) -> tuple[int, int]:
        """Write a step without the changes that do not fit."""
        # Delete first: other rows may need the unique values that are released.
        phases: list[Iterable[pa.Table]] = [map(of_phase, changes.tables()) for of_phase in (rows_that_go, rows_that_come)]
        if self._is_log:
            phases = [changes.tables()]
        count = size = 0
        for tables in phases:
            records, written = write_what_fits(tables, lambda part: self._put_part(connection, step, part), self._context.left_out)
            count, size = count + records, size + written
        return count, size

    def _put_part(self, connection: psycopg.Connection[Any], step: int, part: pa.Table) -> tuple[int, int]:
        """Write some changes.

        :raises RowProblem: when the table does not take all of them; nothing of them is written
        """
        try:
            return self._put_staged(connection, step, part)
        except (psycopg.Error, RowProblem) as error:
            problem = self._problem(error)
        if self._is_log or part.num_rows > 1 or part.column(WEIGHT)[0].as_py() > 0:
            raise problem
        # A delete needs only the key of its row; a row whose key the table cannot have is not in it.
        try:
            return self._put_staged(connection, step, key_alone(part, self._context.key))
        except (RowProblem, psycopg.DataError):
            return 0, 0
        except psycopg.Error as error:
            raise self._problem(error) from error

    def _put_staged(self, connection: psycopg.Connection[Any], step: int, part: pa.Table) -> tuple[int, int]:
        if not self._is_log:
            # The stage still has the rows of the part before.
            connection.execute(f"TRUNCATE {_STAGE}".encode())
        return self._put(connection, step, [part])

    def _problem(self, error: psycopg.Error | RowProblem) -> RowProblem:
        """Return the reason why rows do not fit.

        :raises psycopg.Error: when the rows are not the problem
        """
        if isinstance(error, RowProblem):
            return error
        if not is_of_rows(error):
            raise error
        column = column_of(error)
        where = "" if column is None else f"column {column!r}: "
        made = PassingRowProblem if may_pass_after_others(error) else RowProblem
        return made(where + self._sessions.reason(error))

    @property
    def _is_log(self) -> bool:
        return self._options.mode is OutputMode.CDC

    def _require_open(self) -> tuple[psycopg.Connection[Any], StepTable]:
        if self._connection is None or self._steps is None:
            raise ConnectorFailure(f"{_NAME} is not open")
        return self._connection, self._steps

    def _columns_of_log(self, table: TargetTable) -> list[str]:
        if not self._is_log:
            return []
        names = [self._options.cdc_op_column, self._options.cdc_ts_column]
        for name, kind in zip(names, ("text", "bigint"), strict=True):
            if name not in table.columns:
                raise ConnectorFailure(
                    f"{_NAME}: table {table.shown} has no column {name!r}, which mode 'cdc' writes. Add it: ALTER TABLE "
                    f"{table.sql} ADD COLUMN {quote_name(name)} {kind}"
                )
        return names

    def _make_stage(self, connection: psycopg.Connection[Any], table: TargetTable) -> None:
        listed = ", ".join(quote_name(column.name) for column in self._columns)
        connection.execute(
            f"CREATE TEMP TABLE airflow_pipelines_stage ON COMMIT DELETE ROWS AS SELECT ''::text AS {_STAGED_OP}, {listed} "
            f"FROM {table.sql} WITH NO DATA".encode()
        )

    def _copy_to_log(self, connection: psycopg.Connection[Any], step: int, tables: Iterable[pa.Table]) -> tuple[int, int]:
        own = [self._options.cdc_op_column, self._options.cdc_ts_column]
        names = ", ".join(quote_name(name) for name in (*own, *(column.name for column in self._columns)))
        table = self._table.sql if self._table is not None else ""
        count = size = 0
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN".encode()) as copy:
            for operations, texts in map(problems_of(self._texts), tables):
                numbers = pa.array([str(step)], pa.string()).take(pa.array([0] * len(operations), pa.int32()))
                data = lines([operations, numbers, *texts])
                copy.write(data)
                count, size = count + len(operations), size + len(data)
        return count, size

    def _merged(self, connection: psycopg.Connection[Any], tables: Iterable[pa.Table]) -> tuple[int, int]:
        count = size = 0
        seen: set[str] = set()
        with connection.cursor() as cursor, cursor.copy(f"COPY {_STAGE} FROM STDIN".encode()) as copy:
            for operations, texts in map(problems_of(self._texts), tables):
                data = lines([operations, *texts])
                copy.write(data)
                count, size = count + len(operations), size + len(data)
                seen.update(pc.unique(operations).to_pylist())
        if count >= _ANALYZED_ROWS:
            connection.execute(f"ANALYZE {_STAGE}".encode())
        try:
            for operations_of, statement in self._statements():
                if seen & set(operations_of):
                    connection.execute(statement.encode())
        except psycopg.errors.CardinalityViolation as error:
            raise self._not_unique() from error
        return count, size

    def _texts(self, table: pa.Table) -> tuple[pa.Array, list[pa.Array]]:
        """Return the operation of each row, and the texts of its columns. An update is its new row."""
        rows = table.combine_chunks()
        if UPDATE in rows.column_names:
            replaced = pc.and_(rows.column(UPDATE), pc.less(rows.column(WEIGHT), 0))
            rows = rows.filter(pc.invert(replaced)).combine_chunks()
        goes = pc.less(rows.column(WEIGHT), 0)
        comes = pc.if_else(rows.column(UPDATE), _UPDATE, _INSERT) if UPDATE in rows.column_names else _INSERT
        operations = pc.if_else(goes, _DELETE, comes)
        texts = [
            texts_for(target.type)(_one_array(rows.column(name)))
            for name, target in zip(self._context.schema.column_names, self._columns, strict=True)
        ]
        return _one_array(operations), texts

    def _statements(self) -> Sequence[tuple[str, str]]:
        """Return the statements that apply the staged rows, in order, each after the operations for which it is executed."""
        table = self._table.sql if self._table is not None else ""
        names = [quote_name(column.name) for column in self._columns]
        key = [quote_name(column.name) for column in self._key]
        rest = [name for name in names if name not in key]
        same = " AND ".join(_equal(column) for column in self._key)
        listed, of_key = ", ".join(names), ", ".join(key)
        delete = f"DELETE FROM {table} AS old USING {_STAGE} AS new WHERE new.{_STAGED_OP} = 'd' AND {same}"
        insert = f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {_STAGE} WHERE {_STAGED_OP} IN"
        replace = "DO UPDATE SET " + ", ".join(f"{name} = EXCLUDED.{name}" for name in rest) if rest else "DO NOTHING"
        if not self._options.on_conflict_do_nothing:
            return [(_DELETE, delete), (_INSERT + _UPDATE, f"{insert} ('i', 'u') ON CONFLICT ({of_key}) {replace}")]
        statements = [(_DELETE, delete), (_INSERT, f"{insert} ('i') ON CONFLICT ({of_key}) DO NOTHING")]
        if rest:
            values = ", ".join(f"{name} = new.{name}" for name in rest)
            update = f"UPDATE {table} AS old SET {values} FROM {_STAGE} AS new WHERE new.{_STAGED_OP} = 'u' AND {same}"
            statements.append((_UPDATE, update))
        return statements

    def _not_unique(self) -> ConnectorFailure:
        index = self._context.common.index
        listed = ", ".join(self._context.key)
        return ConnectorFailure(
            f"{_NAME}: the view has more than one row with the same values of ({listed}), the columns of index {index!r}, and "
            "the table can hold one of them only. Name an index whose columns tell all rows of the view apart."
        )


def _one_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _equal(column: TargetColumn) -> str:
    name = quote_name(column.name)
    return f"old.{name} = new.{name}" if column.required else f"old.{name} IS NOT DISTINCT FROM new.{name}"
