"""A writer of rows to a database with SQLAlchemy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import NullPool
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.sinks import SinkWriter

_DRIVERS = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql", "mariadb": "mariadb+pymysql", "sqlserver": "mssql+pyodbc"}
JDBC_RETRIES: Final = RetryPolicy(first_wait_s=0.1, longest_wait_s=5.0, attempts=4)
TRANSIENT: Final = retry_if_exception_type((OperationalError, InterfaceError))


def database_url(url: str, user_name: str | None, password: str | None) -> URL:
    """Return the SQLAlchemy URL of a database.

    :param url: a URL of JDBC or of SQLAlchemy
    :param user_name: the user; None for that of the URL
    :param password: the password; None for that of the URL
    :returns: the URL
    :raises ValueError: if the URL is invalid or cannot be translated
    """
    try:
        made = make_url(_translate_url(url))
    except ArgumentError:
        raise ValueError("url is neither a URL of JDBC such as 'jdbc:postgresql://host/db' nor one of SQLAlchemy") from None
    if made.get_backend_name() == "sqlite":
        return made  # A file has no users, so they are ignored, as with JDBC.
    if user_name is not None:
        made = made.set(username=user_name)
    return made if password is None else made.set(password=password)


def _translate_url(url: str) -> str:
    if not url.startswith("jdbc:"):
        return url
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest}"
    if kind not in _DRIVERS or not rest.startswith("//"):
        raise ValueError(f"A JDBC URL for {kind!r} is not translated: use a URL of SQLAlchemy, such as 'oracle+oracledb://host/db'")
    return f"{_DRIVERS[kind]}:{rest}"


def database_engine(url: str, user_name: str | None, password: str | None) -> Engine:
    """Return an engine that opens a connection for each transaction.

    :param url: see :func:`database_url`
    :param user_name: see :func:`database_url`
    :param password: see :func:`database_url`
    :returns: the engine
    :raises ValueError: if the driver is not installed
    """
    try:
        return create_engine(database_url(url, user_name, password), poolclass=NullPool, hide_parameters=True)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ValueError(f"The driver is not installed ({error}): install it, or name another in the URL") from None


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
