from __future__ import annotations

import sqlite3
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity
from sqlalchemy.exc import IntegrityError, OperationalError

from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.datastream.common.time import Instant
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from airflow_pipelines.streams import references
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.systems.databases.engines import database_url

TASK = SubtaskInfo("sink", 0, 1)
PAIR = Types.ROW([Types.INT(), Types.STRING()])
INSERT = "INSERT INTO t (id, name) VALUES (?, ?)"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    return path


def _options(path: Path) -> JdbcConnectionOptions:
    return (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url(f"jdbc:sqlite:{path}")
        .with_driver_name("org.sqlite.JDBC")
        .build()
    )


def _rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


def _batch(*values: Any) -> Batch:
    return Batch(list(values), [None] * len(values))


def test_writes_by_the_batch_and_at_checkpoints(database: Path) -> None:
    execution = JdbcExecutionOptions.builder().with_batch_size(2).with_batch_interval_ms(0).with_max_retries(0).build()
    writer = JdbcSink.sink(INSERT, PAIR, _options(database), execution).open(TASK)
    writer.write(_batch((1, "a"), (2, None), (3, "c")))
    assert _rows(database) == [(1, "a"), (2, None)]
    assert writer.prepare() is None
    assert _rows(database) == [(1, "a"), (2, None), (3, "c")]
    writer.close()


def test_question_marks_and_colons_in_texts_are_no_parameters(database: Path) -> None:
    sql = """INSERT INTO t (id, name) -- what? :x
        VALUES (?, 'a?:b ''?' || /* ? */ ?) ON CONFLICT ("id") DO UPDATE SET name = 'again: ' || excluded.name"""
    writer = JdbcSink.sink(sql, PAIR, _options(database)).open(TASK)
    writer.write(_batch((1, "x")))
    writer.prepare()
    writer.write(_batch((1, "y")))
    writer.prepare()
    assert _rows(database) == [(1, "again: a?:b '?y")]


def _secretive(url: str = "jdbc:postgresql://${env:HOST}/shop") -> JdbcConnectionOptions:
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_user_name("clerk")
    return options.with_password("${secret:shop/password}").build()


def test_references_get_their_values_where_the_database_is_opened(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_GIVEN", None)
    named = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:${env:FOLDER}/t.db").build()
    sink = JdbcSink.sink(INSERT, PAIR, named)
    assert sink.references() == ("${env:FOLDER}",)
    references.give_references({"${env:FOLDER}": str(database.parent)})
    writer = sink.open(TASK)
    writer.write(_batch((1, "a")))
    writer.prepare()
    writer.close()
    assert _rows(database) == [(1, "a")]
    assert sink.connection.url == "jdbc:sqlite:${env:FOLDER}/t.db", "what is kept and shown has the reference"
    with pytest.raises(StreamProgramError, match=r"\{env:HOST\} has no value here"):
        _secretive().resolved()


def test_a_program_that_runs_by_itself_finds_what_references_stand_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_GIVEN", None)
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path))
    for name in ("AIRFLOW_PIPELINES_SECRETS", "HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StreamProgramError, match=r"\{env:HOST\} has no value: set the environment variable HOST"):
        _secretive().resolved()
    monkeypatch.setenv("HOST", "db.example")
    with pytest.raises(StreamProgramError, match=r"secrets set shop/password"):
        _secretive().resolved()
    SecretFiles(tmp_path / "secrets").write("shop/password", "open sesame")
    found = _secretive().resolved()
    assert (found.url, found.user_name, found.password) == ("jdbc:postgresql://db.example/shop", "clerk", "open sesame")
    assert "open sesame" not in repr(found)


def test_tries_again_what_may_pass_only(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = JdbcExecutionOptions(max_retries=2)
    writer = JdbcSink.sink(INSERT, PAIR, _options(database), execution).open(TASK)
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    attempts: list[float] = []

    def sleep(seconds: float) -> None:
        attempts.append(seconds)
        if len(attempts) == 2:
            locker.execute("COMMIT")

    # In place of the module, whose own function all other threads of this process call.
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(writer._engine.dialect, "connect", lambda *args, **kwargs: sqlite3.connect(database, timeout=0))  # type: ignore[attr-defined]
    writer.write(_batch((1, "a")))
    writer.prepare()
    assert len(attempts) == 2
    assert _rows(database) == [(1, "a")]
    locker.execute("DROP TABLE t")
    writer.write(_batch((2, "b")))
    with pytest.raises(OperationalError, match="no such table"):
        writer.prepare()
    assert len(attempts) == 4
    locker.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    locker.execute("INSERT INTO t VALUES (2, 'b')")
    locker.close()
    with pytest.raises(IntegrityError):
        writer.prepare()
    assert len(attempts) == 4


def test_values_become_what_databases_take(tmp_path: Path, database: Path) -> None:
    writer = JdbcSink.sink(INSERT, Types.ROW([Types.INT(), Types.INSTANT()]), _options(database)).open(TASK)
    writer.write(_batch((1, Instant(1, 5_000_000))))
    writer.prepare()
    assert _rows(database) == [(1, "1970-01-01 00:00:01.005000+00:00")]


def test_sqlite_gets_the_text_of_what_it_has_no_type_for(tmp_path: Path) -> None:
    file = tmp_path / "d.db"
    fields = [Types.BIG_DEC(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BOOLEAN()]
    moment = datetime(2024, 5, 1, 10, 20, 30, 5000)
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, exact TEXT, number DECIMAL(10, 2), day DATE, at TIME, ts TIMESTAMP, b BOOLEAN)"
        )
    sink = JdbcSink.sink("INSERT INTO t VALUES (NULL, ?, ?, ?, ?, ?, ?)", Types.ROW(fields), _options(file))
    writer = sink.open(TASK)
    writer.write(_batch((Decimal("1.50"), Decimal("1.50"), moment.date(), moment.time(), moment, True), (None,) * 6))
    writer.prepare()
    assert _rows(file) == [
        (1, "1.50", 1.5, "2024-05-01", "10:20:30.005000", "2024-05-01 10:20:30.005000", 1),
        (2, *(None,) * 6),
    ]


def test_a_file_of_sqlite_has_no_users(database: Path) -> None:
    assert str(database_url(f"jdbc:sqlite:{database}", "me", "hush")) == f"sqlite:///{database}"
    assert str(database_url(f"sqlite:///{database}", "me", "hush")) == f"sqlite:///{database}"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://h:5432/d?a=b", "postgresql+psycopg://me:***@h:5432/d?a=b"),
        ("jdbc:mysql://h/d", "mysql+pymysql://me:***@h/d"),
        ("oracle+oracledb://h/d", "oracle+oracledb://me:***@h/d"),
    ],
)
def test_urls_are_translated(url: str, expected: str) -> None:
    options = (
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).with_user_name("me").with_password("se cret").build()
    )
    translated = database_url(options.url, options.user_name, options.password)
    assert str(translated) == expected
    assert translated.password == "se cret"
    assert "cret" not in repr(options)


def test_refuses_what_makes_no_sense(database: Path) -> None:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    with pytest.raises(ValueError, match="needs a URL"):
        builder.build()
    with pytest.raises(ValueError, match="A JDBC URL for 'derby' is not translated: use a URL of SQLAlchemy"):
        builder.with_url("jdbc:derby:memory:x").build()
    with pytest.raises(ValueError, match="neither a URL of JDBC"):
        builder.with_url("no url").build()
    with pytest.raises(ValueError, match=r"The statement has 1 '\?', and the rows have 2 fields"):
        JdbcSink.sink("DELETE FROM t WHERE id = ?", PAIR, _options(database))
    with pytest.raises(TypeError, match=r"use Types.ROW"):
        JdbcSink.sink(INSERT, Types.STRING(), _options(database))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        JdbcExecutionOptions.builder().with_batch_size(0)
    missing = JdbcSink.sink(INSERT, PAIR, builder.with_url("nothing://h/d").build())
    with pytest.raises(ValueError, match="The driver is not installed"):
        missing.open(TASK)
