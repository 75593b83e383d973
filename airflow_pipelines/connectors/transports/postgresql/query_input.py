"""An input that reads the rows of a query, once."""

from __future__ import annotations

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure, CountedError, InputChunk
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.postgresql.arrow_rows import ArrowRows
from airflow_pipelines.connectors.transports.postgresql.options import PostgresInputOptions
from airflow_pipelines.connectors.transports.postgresql.query_rows import PostgresQueryRows
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceTypes
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.formats.parsed import Parsed

_NAME = "postgres_input"
_MAX_KEPT_ERRORS = 100


class QueryInput:
    """An input over a query. A position has the number of rows that were read, and whether those are all.

    Rows have no fixed place in the result of a query, which may differ the next time. So an interrupted query is restarted from its
    first row if the table has a key by which rows replace themselves, and refused otherwise.
    """

    def __init__(self, options: PostgresInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the server and the query
        :param context: the context of the connector, with the table that the rows are for
        """
        self._query = options.query
        self._invalid = options.invalid_values
        self._context = context
        self._sessions = Sessions(_NAME, options)
        self._rows: PostgresQueryRows | None = None
        self._parser: ArrowRows | None = None
        self._left: pa.Table | None = None
        self._number = 0
        self._done = False

    def open(self, position: Position | None) -> None:
        """Ask the server for the columns of the query; its rows are read afterwards.

        :raises ConnectorFailure: when it cannot be asked, a column cannot be filled, or the query was interrupted and must not be
            restarted
        """
        if position is not None:
            self._done = bool(position.get("done", False))
            self._number = int(position.get("rows", 0))
            if self._done:
                return
            self._begin_again()
        with self._sessions.connect() as connection, self._sessions.failures("cannot ask for the columns of the query"):
            described = connection.execute(f"SELECT * FROM ({self._query}\n) AS source LIMIT 0".encode()).description or ()
            types = SourceTypes(connection)
            columns = [(column.name, types.of(column.type_code)) for column in described]
        self._parser = ArrowRows(self._context.schema, columns, f"{_NAME}: the query", self._context.now, self._invalid)
        self._rows = PostgresQueryRows(self._sessions, self._parser.select(f"({self._query}\n) AS source"))

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:  # noqa: ARG002 - the server decides how long it takes
        """Return the next rows.

        :raises ConnectorFailure: when the server cannot go on
        """
        if self._done:
            return self._chunk(None)
        if self._rows is not None and (self._left is None or not self._left.num_rows):
            with self._sessions.failures("cannot read the query"):
                self._left = self._rows.next()
        if self._left is None or self._parser is None:
            self._done = True
            return self._chunk(None)
        rows, self._left = self._left.slice(0, max_records), self._left.slice(max_records)
        parsed = self._parser.parse(rows, self._number)
        self._number = parsed.next_index
        return self._chunk(parsed)

    def close(self) -> None:
        """Close the connection."""
        if self._rows is not None:
            self._rows.close()

    def _begin_again(self) -> None:
        if self._number and not self._context.schema.primary_key:
            raise ConnectorFailure(
                f"{_NAME}: the query was interrupted after {self._number} rows, and asking it again would bring them twice, since "
                "the table has no primary key. Give it one, or clear the pipeline and start it again."
            )
        self._number = 0

    def _chunk(self, parsed: Parsed | None) -> InputChunk:
        errors = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
        return InputChunk(
            changes=None if parsed is None else parsed.changes,
            records=0 if parsed is None else parsed.records,
            size_bytes=0 if parsed is None else parsed.consumed,
            position={"rows": self._number, "done": self._done},
            parse_errors=tuple(CountedError("parse", error.message, error.index) for error in errors),
            num_parse_errors=0 if parsed is None else parsed.num_errors,
            end_of_input=self._done,
        )
