"""The access to the store's database, with the same settings for the service and for every host that writes to it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from tenacity import retry_if_exception

from airflow_pipelines.common.private_files import close_to_others
from airflow_pipelines.common.retries import RetryPolicy

BUSY_TIMEOUT_MS = 15_000
"""The number of milliseconds that a SQLite writer waits for another process's write before it gives up."""


class DatabaseError(Exception):
    """The error of a store database that cannot be used. The message gives its place and the reason."""


def open_database(database_url: str) -> Engine:
    """Create the engine for a database; nothing is read or created in the database yet.

    SQLite runs with a write-ahead log, so that readers never wait for writers, and with a busy timeout; its folder is created.

    :param database_url: a SQLAlchemy URL
    :returns: the engine
    :raises DatabaseError: when the URL is invalid, its driver is not installed or the folder cannot be written
    """
    try:
        url = make_url(database_url)
        url.get_dialect()
    except ArgumentError as error:
        # The URL itself may hold a password, so it is not repeated.
        raise DatabaseError("The database URL is not one SQLAlchemy understands, such as sqlite:////folder/store.sqlite") from error
    if url.get_backend_name() != "sqlite":
        options: dict[str, Any] = {"pool_size": 10, "max_overflow": 20, "pool_pre_ping": True, "hide_parameters": True}
        try:
            return _with_limits(create_engine(_with_driver(url), **options))
        except ModuleNotFoundError as error:
            raise DatabaseError(
                f"The database driver {error.name} is not installed: for PostgreSQL, pip install 'airflow-pipelines[postgres]'"
            ) from error
    if url.database and url.database != ":memory:":
        _make_private(Path(url.database).absolute())
    engine = create_engine(
        url,
        pool_size=20,
        max_overflow=60,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False},
        hide_parameters=True,
    )
    event.listen(engine, "connect", _configure_sqlite)
    return engine


def _make_private(path: Path) -> None:
    """Create the folder, and the file for this user alone, since it holds the tokens of hosts.

    SQLite gives its side files the same mode.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"The store folder {path.parent} cannot be created: {error.strerror or error}") from error
    with suppress(OSError):  # SQLite gives a better error when it opens the file
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
    for file in (path, *(path.with_name(path.name + side) for side in ("-wal", "-shm", "-journal"))):
        close_to_others(file)


class DatabaseFile:
    """The file of a SQLite database, as it was when this object was made.

    A process that has the file open can read and write it even after it was deleted, and would not notice the deletion otherwise.
    """

    def __init__(self, engine: Engine) -> None:
        """Remember the file of ``engine``; a database without a file of its own never counts as gone."""
        name = engine.url.database
        is_file = engine.url.get_backend_name() == "sqlite" and name and name != ":memory:"
        self._path = Path(name).absolute() if is_file and name else None
        self._identity = self._now()

    @property
    def gone(self) -> str | None:
        """A description of the file's deletion or replacement; None while it is there."""
        now = self._now()
        if now == self._identity:
            return None
        return f"{self._path} was {'deleted' if now is None else 'replaced'}"

    def _now(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def _with_limits(engine: Engine) -> Engine:
    """Return the engine with connections that do not wait without limit, as far as the driver supports that."""
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "do_connect", _connect_patiently)
    return engine


def _connect_patiently(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
    # Imported here: whoever has no PostgreSQL need not have its driver.
    from airflow_pipelines.common.postgresql import connect

    return connect(*arguments, **options)


def _with_driver(url: URL) -> URL:
    """Return the URL with psycopg, the driver of the ``postgres`` extra, if it is for PostgreSQL and names no driver."""
    return url.set(drivername="postgresql+psycopg") if url.drivername in {"postgresql", "postgres"} else url


def _configure_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _wait_while_busy(lambda: cursor.execute("PRAGMA journal_mode=WAL"))
        cursor.execute("PRAGMA synchronous=NORMAL")
    finally:
        cursor.close()


def _wait_while_busy(action: Callable[[], Any]) -> None:
    """Repeat an action while SQLite reports that it is busy.

    SQLite refuses some actions at once, whatever the busy timeout, if another connection to a new database does the same.
    """
    busy = retry_if_exception(lambda error: getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY)
    RetryPolicy(first_wait_s=0.02, longest_wait_s=0.02, limit_s=BUSY_TIMEOUT_MS / 1000).retrying(busy)(action)
