"""An input with the tables of Nexmark, so that queries of the benchmark run with nothing else."""

from __future__ import annotations

import time
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.connectors.base import InputChunk
from airflow_pipelines.connectors.definition import Declared, InputContext, InputDefinition
from airflow_pipelines.connectors.transports.nexmark.generator import EventKind, Generator
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.formats.tables import TableParser

_AT_ONCE: Final = 50_000
"""The maximum number of rows that are made at a time."""


class StreamOptions(BaseModel):
    """The options that identify a stream of events. Connectors with the same options read tables of the same stream.

    :param events: the number of events in all three tables; None for no end
    :param event_rate: the number of events in a second of event time
    :param seed: the seed; another one gives another stream
    :param rate: the maximum number of events per second of wall-clock time; None for as fast as the pipeline takes them
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    events: int | None = Field(default=100_000_000, ge=0)
    event_rate: int = Field(default=10_000, ge=1)
    seed: int = Field(default=0, ge=0)
    rate: float | None = Field(default=None, gt=0)


class NexmarkOptions(BaseModel):
    """The options of the transport.

    :param table: ``person``, ``auction`` or ``bid``
    :param options: the options of the stream of events
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: EventKind
    options: StreamOptions = StreamOptions()

    @field_validator("table", mode="before")
    @classmethod
    def _by_title(cls, value: Any) -> Any:
        for table in EventKind:
            if isinstance(value, str) and value.lower() == table.title:
                return table
        raise ValueError("Input should be 'person', 'auction' or 'bid'")


class Nexmark:
    """An input over one table of the stream. A position is the number of the next row.

    :param options: the table and the stream
    :param parser: the parser that gives rows the types of the table
    """

    def __init__(self, options: NexmarkOptions, parser: TableParser) -> None:
        self._table = options.table
        stream = options.options
        self._generator = Generator(stream.event_rate, stream.seed)
        self._rows = None if stream.events is None else options.table.rows_in(stream.events)
        self._seconds_per_row = None if stream.rate is None else options.table.seconds_per_row(stream.rate)
        self._parser = parser
        self._row = 0
        self._due = 0.0

    def open(self, position: Position | None) -> None:
        """Set the next row to that of ``position``."""
        self._row = 0 if position is None else int(position["row"])
        self._due = time.monotonic()

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the rows that are due, or None if there are none within ``timeout_s``."""
        rows = min(max_records, _AT_ONCE)
        if self._rows is not None:
            rows = max(min(rows, self._rows - self._row), 0)
        if self._seconds_per_row is not None and rows:
            rows = self._due_rows(rows, self._seconds_per_row, timeout_s)
            if not rows:
                return None
        parsed = self._parser.parse_table(self._generator.rows(self._table, self._row, rows), self._row)
        self._row += rows
        return InputChunk(
            changes=parsed.changes,
            records=parsed.records,
            size_bytes=parsed.consumed,
            position={"row": self._row},
            end_of_input=self._rows is not None and self._row >= self._rows,
        )

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _due_rows(self, most: int, seconds_per_row: float, timeout_s: float) -> int:
        """Return the number of rows that are due, after waiting for the first of them."""
        wait = self._due - time.monotonic()
        if wait > timeout_s:
            time.sleep(timeout_s)
            return 0
        time.sleep(max(wait, 0))
        late = time.monotonic() - self._due
        rows = min(most, 1 + int(late / seconds_per_row))
        self._due += rows * seconds_per_row
        return rows


def _open(options: NexmarkOptions, context: InputContext) -> Nexmark:
    return Nexmark(options, TableParser(context.schema, context.now))


def _check(options: NexmarkOptions, declared: Declared) -> None:
    made = Generator().rows(options.table, 0, 0).column_names
    reader = RowReader(declared.schema)
    given = {reader.place(name) for name in made}
    missing = [column.name for place, column in enumerate(declared.schema.columns) if place not in given and column.default is None]
    if missing:
        raise InvalidOptionError(
            f"the table {options.table.title!r} of Nexmark has no column {missing[0]!r}; its columns: {', '.join(made)}", "table"
        )


NEXMARK: Final = InputDefinition(name="nexmark", options=NexmarkOptions, open=_open, check=_check)
