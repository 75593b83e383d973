"""A table of SQLite, for the connector of the example package."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from tests.connectors.conformance.outputs import OutputCase


class SqliteCase(OutputCase):
    """A table that somebody else can lock."""

    transport = "sqlite_output"
    key = ("id",)
    can_be_away = True

    def __init__(self, folder: Path) -> None:
        self._path = folder / "people.db"
        self.config = {"path": str(self._path), "table": "people"}
        with sqlite3.connect(self._path) as connection:
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        self._lock: sqlite3.Connection | None = None

    def contents(self) -> Counter[tuple[int, str]]:
        """The table's rows."""
        with sqlite3.connect(self._path) as connection:
            return Counter(connection.execute("SELECT id, name FROM people").fetchall())

    def take_away(self) -> None:
        """Lock the table."""
        self._lock = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._lock.execute("BEGIN EXCLUSIVE")

    def bring_back(self) -> None:
        """Let go of it."""
        assert self._lock is not None
        self._lock.rollback()
        self._lock.close()
