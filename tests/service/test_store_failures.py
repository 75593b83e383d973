"""Failures of databases, told apart by the codes of their drivers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from airflow_pipelines.service.store_failures import StoreFailure, store_failure


def failure_of(url: str, statement: str = "CREATE TABLE t (a INT)") -> StoreFailure | None:
    engine = create_engine(url, connect_args={"timeout": 0})
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    except DBAPIError as error:
        return store_failure(error)
    finally:
        engine.dispose()
    return None


def test_a_locked_file(tmp_path: Path) -> None:
    blocker = sqlite3.connect(tmp_path / "s")
    blocker.execute("BEGIN EXCLUSIVE")
    assert failure_of(f"sqlite:///{tmp_path / 's'}") is StoreFailure.LOCKED
    blocker.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"nothing of the kind" * 100)
    assert failure_of(f"sqlite:///{tmp_path / 's'}") is StoreFailure.NO_DATABASE


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert failure_of(f"sqlite:///{tmp_path / 'nowhere' / 's'}") is StoreFailure.CANNOT_OPEN


def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "s"
    sqlite3.connect(path).execute("CREATE TABLE u (a INT)").connection.close()
    url = f"sqlite:///file:{path}?mode=ro&uri=true"
    assert failure_of(url) is StoreFailure.READ_ONLY


@pytest.mark.parametrize(
    ("state", "failure"),
    [("40P01", StoreFailure.LOCKED), ("55P03", StoreFailure.LOCKED), ("42P07", StoreFailure.EXISTS), ("28P01", None), (None, None)],
)
def test_postgresql_by_its_state(state: str | None, failure: StoreFailure | None) -> None:
    class Refused(Exception):
        sqlstate = state

    assert store_failure(OperationalError("SELECT 1", {}, Refused("whatever it says, locked or not"))) is failure


def test_a_statement_that_is_wrong_is_none_of_them(tmp_path: Path) -> None:
    assert failure_of(f"sqlite:///{tmp_path / 's'}", "SELECT nonsense") is None
