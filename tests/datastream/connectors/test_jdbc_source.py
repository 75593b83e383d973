"""The source of databases: every row once, in order, from any position, and what it refuses."""

from __future__ import annotations

import datetime
import pickle
import sqlite3
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity
from sqlalchemy import create_engine
from sqlalchemy.dialects import mssql, oracle, postgresql

from airflow_pipelines.datastream import Duration, Row, StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.connectors import JdbcConnectionOptions, JdbcSource, JdbcSourceBuilder
from airflow_pipelines.datastream.connectors.jdbc_reader import JdbcReader, _Pages
from airflow_pipelines.streams.errors import StreamProgramError

TYPE = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    _execute(path, "CREATE TABLE t (id INTEGER, part INTEGER, name TEXT)")
    return path


def _execute(path: Path, statement: str, *rows: Any) -> None:
    with sqlite3.connect(path) as connection:
        connection.executemany(statement, rows) if rows else connection.execute(statement)
    connection.close()


def _insert(path: Path, *ids: int | None) -> None:
    for number in ids:
        _execute(path, "INSERT INTO t VALUES (?, 0, ?)", (number, f"n{number}"))


def _options(path: Path) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{path}").build()


def _builder(path: Path) -> JdbcSourceBuilder:
    builder = JdbcSource.builder().set_connection_options(_options(path)).set_table("t").set_type_info(TYPE)
    return builder.set_order_columns("id").set_fetch_size(3)


def _read(source: JdbcSource, limit: int = 100, split: Any = None, position: Any = None) -> list[Any]:
    reader, values = source.open(split, position), []
    while True:
        polled = reader.poll(limit)
        values += polled.values
        if polled.finished:
            reader.close()
            return values


def _ids(rows: list[Any]) -> list[int]:
    return [row.id for row in rows]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 7, 30])
def test_reads_all_rows_in_order_whatever_fits_into_a_page(database: Path, number: int) -> None:
    _insert(database, *reversed(range(number)))
    rows = _read(_builder(database).build(), limit=2)
    assert rows == [Row(id=each, name=f"n{each}") for each in range(number)]


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_goes_on_behind_any_row(database: Path, limit: int) -> None:
    _insert(database, *range(0, 40, 2))
    source = _builder(database).build()
    reader = source.open(None, None)
    assert reader.position() is None
    read: list[Any] = []
    while True:
        polled = reader.poll(limit)
        read += polled.values
        again = pickle.loads(pickle.dumps(reader.position()))
        if polled.finished:
            break
        reader.close()
        reader = source.open(None, again)
    assert _ids(read) == list(range(0, 40, 2))


def test_rows_that_go_and_come_meanwhile(database: Path) -> None:
    _insert(database, 1, 2, 3)
    source = _builder(database).build()
    reader = source.open(None, None)
    assert _ids(reader.poll(2).values) == [1, 2]
    position = reader.position()
    _execute(database, "DELETE FROM t WHERE id = 2")
    _insert(database, 4)
    assert _ids(_read(source, position=position)) == [3, 4]


def test_several_order_columns_are_compared_from_the_left(database: Path) -> None:
    keys = [(part, number) for part in (1, 2, 2, 3) for number in range(5)]
    _execute(database, "INSERT INTO t (part, id, name) VALUES (?, ?, 'x')", *sorted(set(keys), key=lambda key: key[1]))
    source = _builder(database).set_order_columns("part", "id").set_fetch_size(1).build()
    expected = [number for _, number in sorted(set(keys))]
    assert _ids(_read(source)) == expected
    reader = source.open(None, None)
    reader.poll(1)
    assert _ids(_read(source, position=(("part", "id"), (2, 3)))) == [4, *range(5)]


def test_begins_behind_a_place(database: Path) -> None:
    _insert(database, 1, 2, 3)
    source = _builder(database).start_after(2).build()
    assert _ids(_read(source)) == [3]
    assert _ids(_read(source, position=(("id",), (1,)))) == [2, 3]
    assert _ids(_read(_builder(database).start_after(3).build())) == []


@pytest.mark.parametrize("ids", [(1, 1), (1, 2, 3, 3), (1, 2, 3, 4, 4), (1, 2, 3, 4, 5, 5), (1, 2, 3, 3, 4, 5)])
@pytest.mark.parametrize("fetch_size", [1, 2, 3, 10])
def test_rows_that_the_order_does_not_tell_apart_are_refused(database: Path, ids: tuple[int, ...], fetch_size: int) -> None:
    _insert(database, *ids)
    with pytest.raises(StreamProgramError, match=r"order of id, and it has several rows .* add a column that makes them unique"):
        _read(_builder(database).set_fetch_size(fetch_size).build())


def test_a_row_like_the_last_one_that_comes_later_is_refused(database: Path) -> None:
    _insert(database, 1, 2)
    reader = _builder(database).monitor_continuously(Duration.of_millis(1)).build().open(None, None)
    assert _ids(reader.poll(10).values) == [1, 2]
    _insert(database, 2)
    time.sleep(0.002)
    with pytest.raises(StreamProgramError, match="several rows with the same values"):
        reader.poll(10)


def test_rows_without_a_place_are_refused(database: Path) -> None:
    _insert(database, 1, None)
    with pytest.raises(StreamProgramError, match=r"has rows with NULL in them.*IS NOT NULL"):
        _read(_builder(database).build())
    builder = JdbcSource.builder().set_connection_options(_options(database)).set_type_info(TYPE).set_order_columns("id")
    assert _ids(_read(builder.set_query("SELECT * FROM t WHERE id IS NOT NULL;").build())) == [1]


def test_looks_for_new_rows_at_its_interval(database: Path) -> None:
    source = _builder(database).monitor_continuously(Duration.of_millis(200)).build()
    assert not source.is_bounded
    reader = source.open(None, None)
    began = time.monotonic()
    assert reader.poll(10).values == []
    _insert(database, 1, 2, 3, 4, 5, 6)
    read = reader.poll(10).values
    assert read == [] or time.monotonic() - began >= 0.2
    while len(read) < 6:
        polled = reader.poll(10)
        assert not polled.finished
        read += polled.values
    assert time.monotonic() - began >= 0.2
    assert _ids(read) == [1, 2, 3, 4, 5, 6]
    assert reader.position() == (("id",), (6,))


def test_ranges_have_each_row_once(database: Path) -> None:
    _execute(database, "INSERT INTO t VALUES (?, ?, 'x')", *((number, number - 5) for number in range(20)), (20, None))
    source = _builder(database).set_splits("part", 0, 10, 3).build()
    splits = source.splits(1)
    assert splits == [("part", None, 3), ("part", 3, 6), ("part", 6, None)]
    parts = [_ids(_read(source, split=split)) for split in splits]
    assert parts == [[*range(8), 20], [8, 9, 10], list(range(11, 20))]
    assert _builder(database).set_splits("part", 0, 1, 1).build().splits(4) == [("part", None, None)]


def test_decimals_are_made_of_what_a_database_without_them_has(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    _execute(path, "CREATE TABLE v (id INTEGER PRIMARY KEY, number DECIMAL(10, 2), exact TEXT)")
    _execute(path, "INSERT INTO v VALUES (?, ?, ?)", (1, "1.50", "1.50"), (2, "7", "1e400"), (3, None, None))
    names = ["number", "exact"]
    builder = JdbcSource.builder().set_connection_options(_options(path)).set_table("v").set_order_columns("id")
    source = builder.set_type_info(Types.ROW_NAMED(names, [Types.BIG_DEC(), Types.BIG_DEC()])).build()
    assert [list(map(str, row)) for row in _read(source)] == [["1.5", "1.50"], ["7", "1E+400"], ["None", "None"]]
    _execute(path, "INSERT INTO v VALUES (4, 1, 'dear')")
    with pytest.raises(TypeError, match=r"field 'exact': Types.BIG_DEC\(\) does not take 'dear'"):
        _read(source)


def test_values_have_the_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    _execute(path, 'CREATE TABLE v (id INTEGER, d DATE, ts TIMESTAMP, t TIME, ok BOOLEAN, x REAL, "Na me" TEXT, e NUMERIC)')
    row = (1, "2024-02-29", "2024-02-29 01:02:03.000004", "01:02:03", 1, 1.5, "a:b 'c'", 7)
    _execute(path, "INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row, (2, *[None] * 7))
    names = ["d", "ts", "t", "ok", "x", "Na me", "e"]
    types = [
        Types.SQL_DATE(),
        Types.SQL_TIMESTAMP(),
        Types.SQL_TIME(),
        Types.BOOLEAN(),
        Types.DOUBLE(),
        Types.STRING(),
        Types.BIG_DEC(),
    ]
    builder = JdbcSource.builder().set_connection_options(_options(path)).set_type_info(Types.ROW_NAMED(names, types))
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
    expected = [moment.date(), moment, moment.time().replace(microsecond=0), True, 1.5, "a:b 'c'", Decimal(7)]
    rows = _read(builder.set_table("main.v").set_order_columns("id").build())
    assert [list(each) for each in rows] == [expected, [None] * 7]
    assert rows[0].get_field_names() == names
    by_time = builder.set_order_columns("ts", "id").start_after("2024-02-29 01:02:03.000004", 0)
    with pytest.raises(StreamProgramError, match="NULL"):
        _read(by_time.build())
    _execute(path, "DELETE FROM v WHERE id = 2")
    assert len(_read(by_time.build())) == 1


def test_colons_and_percents_of_a_query_are_its_own(database: Path) -> None:
    _insert(database, 1, 2)
    builder = JdbcSource.builder().set_connection_options(_options(database)).set_type_info(TYPE).set_order_columns("id")
    query = "SELECT id, 'a:b::c \\:d %s %(x)s' AS name FROM t WHERE id % 2 = 1 -- :no"
    (row,) = _read(builder.set_query(query + "\n").build())
    assert row == Row(id=1, name="a:b::c \\:d %s %(x)s")


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mssql.dialect(), oracle.dialect()])  # type: ignore[no-untyped-call]
def test_other_databases_get_statements_of_their_own(database: Path, dialect: Any) -> None:
    pages = _Pages(_builder(database).set_order_columns("part", "id").build().relation, ("part", 1, 2))
    text = str(pages.after((1, 2), 3).compile(dialect=dialect))
    assert ("TOP" in text) == (dialect.name == "mssql")
    assert ("LIMIT" in text) == (dialect.name == "postgresql")
    assert "ORDER BY part, id" in text


def test_a_locked_database_is_tried_again(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _insert(database, 1)
    reader = _builder(database).build().open(None, None)
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            locker.execute("COMMIT")

    # In place of the module, whose own function all other threads of this process call.
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=sleep))
    assert isinstance(reader, JdbcReader)
    monkeypatch.setattr(reader._engine.dialect, "connect", lambda *_, **__: sqlite3.connect(database, timeout=0))
    assert _ids(reader.poll(5).values) == [1]
    assert len(waits) == 2
    locker.close()


def test_what_cannot_be_read_says_what_to_do(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=lambda _: None))
    with pytest.raises(
        StreamProgramError, match=r"cannot read the table 'no' of .*no such table: no. Check that .* columns id, name"
    ):
        _read(_builder(database).set_table("no").build())
    missing = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("nothing://me:hush@h/d?password=hush").build()
    with pytest.raises(StreamProgramError, match="driver is not installed") as raised:
        _builder(database).set_connection_options(missing).build().open(None, None)
    assert "hush" not in str(raised.value)
    _insert(database, 1)
    other = _builder(database).set_order_columns("part").build()
    with pytest.raises(StreamProgramError, match=r"in the order of id, and is to go on in that of part.*another uid"):
        other.open(None, (("id",), (1,)))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hush@h/d", "jdbc:sqlserver://h:1;user=me;password=hush", "jdbc:mysql://h/d?user=me&password=hush"]
)
def test_nothing_secret_is_shown(url: str, database: Path) -> None:
    options = JdbcConnectionOptions(url, "ann", "hush")
    source = _builder(database).set_connection_options(options).build()
    assert "hush" not in repr(source) + str(source) + repr(options)
    assert "//" in repr(options)


def test_an_error_of_the_database_does_not_show_the_password(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _builder(database).build().open(None, None)
    assert isinstance(reader, JdbcReader)
    monkeypatch.setattr(reader, "_engine", create_engine("sqlite:///file", connect_args={}))
    monkeypatch.setattr(reader._engine, "url", reader._engine.url.set(password="hush"))

    def fail(_: Any) -> Any:
        with sqlite3.connect(":memory:") as connection:
            try:
                connection.execute("hush")
            except sqlite3.Error as error:
                from sqlalchemy.exc import DatabaseError

                raise DatabaseError("x", None, error) from error

    monkeypatch.setattr(reader, "_rows", fail)
    with pytest.raises(StreamProgramError, match=r"near \"\*\*\*\"") as raised:
        reader.poll(1)
    assert "hush" not in str(raised.value)


def test_refuses_what_makes_no_sense(database: Path) -> None:
    with pytest.raises(ValueError, match="needs a connection"):
        JdbcSource.builder().build()
    with pytest.raises(ValueError, match="either a table or a query"):
        _builder(database).set_query("SELECT 1").build()
    builder = JdbcSource.builder().set_connection_options(_options(database))
    with pytest.raises(ValueError, match="either a table or a query"):
        builder.build()
    with pytest.raises(ValueError, match="type of its rows"):
        builder.set_table("t").build()
    with pytest.raises(ValueError, match="set_order_columns"):
        builder.set_type_info(TYPE).build()
    with pytest.raises(ValueError, match="one value for each order column: id"):
        _builder(database).start_after(1, 2).build()
    with pytest.raises(ValueError, match="not None"):
        _builder(database).start_after(None)
    with pytest.raises(ValueError, match="comes twice"):
        _builder(database).set_order_columns("id", "id")
    with pytest.raises(ValueError, match="upper must be at least 4"):
        _builder(database).set_splits("id", 0, 3, 4)
    with pytest.raises(ValueError, match="must be at least 1"):
        _builder(database).monitor_continuously(Duration.of_millis(0))


@pytest.mark.rest
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_program_reads_a_database(database: Path, parallelism: int) -> None:
    _insert(database, *range(100))
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    source = _builder(database).set_splits("id", 0, 100, 3).build()
    rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "t").execute_and_collect()
    assert sorted(_ids(list(rows))) == list(range(100))
