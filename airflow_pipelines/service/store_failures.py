"""The kinds of failures that a database reports, by the error codes of its driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError


class StoreFailure(Enum):
    """The kinds of failures that are distinguished."""

    LOCKED = auto()
    CANNOT_OPEN = auto()
    READ_ONLY = auto()
    NO_DATABASE = auto()
    DAMAGED = auto()
    EXISTS = auto()
    """The failure to create a table, column or index that exists already."""


_SQLITE: Final[Mapping[int, StoreFailure]] = {
    sqlite3.SQLITE_BUSY: StoreFailure.LOCKED,
    sqlite3.SQLITE_LOCKED: StoreFailure.LOCKED,
    sqlite3.SQLITE_CANTOPEN: StoreFailure.CANNOT_OPEN,
    sqlite3.SQLITE_READONLY: StoreFailure.READ_ONLY,
    sqlite3.SQLITE_NOTADB: StoreFailure.NO_DATABASE,
    sqlite3.SQLITE_CORRUPT: StoreFailure.DAMAGED,
}
_PRIMARY: Final = 0xFF
"""The mask for the primary code in SQLite's extended error codes."""
_SQLSTATE: Final[Mapping[str, StoreFailure]] = {
    "40P01": StoreFailure.LOCKED,
    "55P03": StoreFailure.LOCKED,
    "25006": StoreFailure.READ_ONLY,
    "XX001": StoreFailure.DAMAGED,
    "XX002": StoreFailure.DAMAGED,
    "42701": StoreFailure.EXISTS,
    "42710": StoreFailure.EXISTS,
    "42P07": StoreFailure.EXISTS,
}


def store_failure(error: SQLAlchemyError) -> StoreFailure | None:
    """Return the kind of a failure.

    :param error: the error of SQLAlchemy
    :returns: the kind; None if the driver gives no code, or one that is not distinguished
    """
    cause = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code & _PRIMARY)
    return _SQLSTATE.get(getattr(cause, "sqlstate", None) or "")
