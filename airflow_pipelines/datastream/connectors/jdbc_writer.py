"""A writer of rows to a database with SQLAlchemy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Engine, text
from tenacity import retry_if_exception

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.sinks import SinkWriter
from airflow_pipelines.systems.databases.engines import is_transient

JDBC_RETRIES: Final = RetryPolicy(first_wait_s=0.1, longest_wait_s=5.0, attempts=4)
TRANSIENT: Final = retry_if_exception(is_transient)


class JdbcWriter(SinkWriter):
    """A writer that runs a statement for each row, with several rows in a transaction.

    :param engine: the engine of the database
    :param statement: the statement in SQLAlchemy's notation of parameters: ``:p0``, ``:p1`` and so on
    :param convert: the function that converts an element to a row
    :param batch_size: the number of rows after which they are written
    :param batch_interval_ms: the time after which rows are written, checked when elements arrive; 0 for any time
    :param max_retries: the maximum number of retries of a transaction
    """

    def __init__(
        self,
        engine: Engine,
        statement: str,
        convert: Callable[[Any], Any],
        batch_size: int,
        batch_interval_ms: int,
        max_retries: int,
    ) -> None:
        self._engine = engine
        self._statement = text(statement)
        self._convert = convert
        self._parameter = _sqlite_parameter if engine.dialect.name == "sqlite" else _parameter
        self._batch_size = batch_size
        self._interval = batch_interval_ms / 1000
        self._retries = replace(JDBC_RETRIES, attempts=max_retries + 1)
        self._rows: list[dict[str, Any]] = []
        self._last_flush = time.monotonic()

    def write(self, batch: Batch) -> None:
        """Buffer rows, and write full batches."""
        size, convert, parameter = self._batch_size, self._convert, self._parameter
        for value in batch.values:
            self._rows.append({f"p{position}": parameter(field) for position, field in enumerate(convert(value))})
            if len(self._rows) >= size:
                self._flush()
        if self._interval and time.monotonic() - self._last_flush >= self._interval:
            self._flush()

    def prepare(self) -> Any | None:
        """Write the buffered rows, so that a checkpoint holds none of them."""
        self._flush()
        return None

    def _flush(self) -> None:
        self._last_flush = time.monotonic()
        if not self._rows:
            return
        for attempt in self._retries.retrying(TRANSIENT):
            with attempt, self._engine.begin() as connection:
                connection.execute(self._statement, self._rows)
        self._rows = []

    def close(self) -> None:
        """Dispose of the engine."""
        self._engine.dispose()


def _parameter(value: Any) -> Any:
    if not isinstance(value, Instant):
        return value
    return datetime.fromtimestamp(value.seconds, UTC).replace(microsecond=value.nanos // 1000)


def _sqlite_parameter(value: Any) -> Any:
    """Return a value as SQLite stores it: numbers, text and bytes. A numeric column converts the text of a number to a number."""
    given = _parameter(value)
    match given:
        case Decimal():
            return str(given)
        case datetime():
            return given.isoformat(" ")
        case date() | time_of_day():
            return given.isoformat()
    return given
