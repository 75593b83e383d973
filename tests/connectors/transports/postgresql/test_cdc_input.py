"""Following a table: its rows, then its changes, transactions as a whole, places to go on from, and what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    Committing,
    ConnectorFailure,
    InputChunk,
    InputTransport,
    Lagging,
    Resting,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.transports.postgresql import cdc_input
from airflow_pipelines.rows.changes import GIVEN, Op
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.sources import errors, opened, rows
from tests.connectors.transports.postgresql.test_query_input import SCALARS, TYPES
from tests.fixtures.postgresql import PASSWORD, Database

KEYED = replace(relation(col("id", "BIGINT", null=False), col("name", "VARCHAR")), primary_key=("id",))
BAG = relation(col("id", "BIGINT"), col("name", "VARCHAR"))
TABLE = ("CREATE TABLE t (id int PRIMARY KEY, name text)", "CREATE PUBLICATION p FOR TABLE t")
FULL = "ALTER TABLE t REPLICA IDENTITY FULL"


def follow(database: Database, schema: RelationSchema = KEYED, position: Any = None, **options: Any) -> InputTransport:
    config = {"uri": database.url, "publication": "p", "source_table": "t", **options}
    return opened(schema, "postgres_cdc_input", position, **config)


def read_until(source: InputTransport, done: Callable[[list[InputChunk]], bool], max_records: int = 1000) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    deadline = time.monotonic() + 30
    while not done(chunks):
        assert time.monotonic() < deadline, rows(*chunks)
        chunk = source.read(max_records, 0.2)
        if chunk is not None:
            chunks.append(chunk)
    return chunks


def read_rows(source: InputTransport, count: int, max_records: int = 1000) -> list[InputChunk]:
    """Chunks with at least so many changes."""
    return read_until(source, lambda chunks: sum(chunk.records for chunk in chunks) >= count, max_records)


def read_first(source: InputTransport) -> InputChunk:
    return read_until(source, lambda chunks: bool(chunks))[0]


def read_nothing(source: InputTransport) -> None:
    for _ in range(3):
        assert source.read(1000, 0.1) is None


def plain(*chunks: InputChunk) -> list[tuple[Any, ...]]:
    """Operation, id and name of each change."""
    return [(row["__op"], row["id"], row["name"]) for row in rows(*chunks)]


def failure_of(source: InputTransport) -> ConnectorFailure:
    with pytest.raises(ConnectorFailure) as failure:
        read_until(source, lambda _: False)
    source.close()
    return failure.value


def slot_of(database: Database) -> str:
    [[name]] = database.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    return str(name)


@pytest.mark.core
def test_rows_come_first_and_then_what_changes(database: Database) -> None:
    database.execute(*TABLE, "INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    source = follow(database)
    # It is there already when the rows are read, and is none of them.
    database.execute("INSERT INTO t VALUES (3, 'c')")
    first = read_first(source)
    assert sorted(plain(first), key=str) == [(1, 1, "a"), (1, 2, None)]
    assert first.transaction is None
    assert plain(*read_rows(source, 1)) == [(1, 3, "c")]
    database.execute("UPDATE t SET name = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2", "UPDATE t SET id = 9 WHERE id = 3")
    assert plain(*read_rows(source, 4)) == [(1, 1, "x"), (-1, 2, None), (-1, 3, None), (1, 9, "c")]
    read_nothing(source)
    source.close()


@pytest.mark.core
def test_a_table_without_rows_and_changes_of_others(database: Database) -> None:
    database.execute(*TABLE, "CREATE TABLE u (id int PRIMARY KEY, name text)", "ALTER PUBLICATION p ADD TABLE u")
    source = follow(database)
    first = read_first(source)
    assert (first.records, first.changes) == (0, None)
    database.transaction("INSERT INTO u VALUES (1, 'u')", "INSERT INTO t VALUES (1, 't')", "DELETE FROM u")
    assert plain(*read_rows(source, 1)) == [(1, 1, "t")]
    source.close()


@pytest.mark.core
def test_a_table_without_a_key_needs_whole_old_rows(database: Database) -> None:
    database.execute(*TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(ConnectorFailure, match=r'ALTER TABLE "public"."t" REPLICA IDENTITY FULL'):
        follow(database, BAG)
    database.execute(FULL)
    source = follow(database, BAG)
    assert len(rows(read_first(source))) == 2
    database.execute("UPDATE t SET name = 'x' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    assert plain(*read_rows(source, 3)) == [(-1, 1, "a"), (1, 1, "x"), (-1, 2, "b")]
    # Somebody takes it back while the pipeline runs.
    database.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT", "DELETE FROM t WHERE id = 1")
    assert "does not say all of the old row" in str(failure_of(source))


@pytest.mark.core
def test_a_publication_of_inserts_needs_no_old_rows(database: Database) -> None:
    database.execute(TABLE[0], "CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')")
    source = follow(database, BAG)
    read_first(source)
    database.execute("INSERT INTO t VALUES (1, 'a')", "DELETE FROM t", "INSERT INTO t VALUES (2, 'b')")
    assert plain(*read_rows(source, 2)) == [(1, 1, "a"), (1, 2, "b")]
    source.close()


@pytest.mark.core
def test_the_key_of_the_pipeline_is_told_by_old_rows(database: Database) -> None:
    database.execute(*TABLE)
    by_name = replace(KEYED, primary_key=("name",), columns=(KEYED.columns[0], col("name", "VARCHAR", null=False)))
    with pytest.raises(
        ConnectorFailure, match=r"has name, and updates and deletes of public.t say of old rows: id. Let the server"
    ):
        follow(database, by_name)
    database.execute(FULL)
    source = follow(database, by_name)
    read_first(source)
    database.execute("INSERT INTO t VALUES (1, 'a')", "UPDATE t SET name = 'b'", "DELETE FROM t")
    assert [(op, name) for op, _, name in plain(*read_rows(source, 4))] == [(1, "a"), (-1, "a"), (1, "b"), (-1, "b")]
    source.close()


@pytest.mark.core
def test_values_of_all_types_are_as_in_the_first_rows_however_many_come(database: Database) -> None:
    columns = ", ".join(f"{name} {source}" for name, (_, source, *_) in SCALARS.items())
    values = ", ".join(f"{literal}::{source}" for _, source, literal, _ in SCALARS.values())
    database.execute(*TYPES, f"CREATE TABLE t (id int PRIMARY KEY, {columns})", TABLE[1], f"INSERT INTO t SELECT 0, {values}")
    given = [col(name, kind) for name, (kind, *_) in SCALARS.items()]
    source = follow(database, replace(relation(col("id", "INTEGER", null=False), *given), primary_key=("id",)))
    [first] = rows(read_first(source))
    assert {name: first[name] for name in SCALARS} == {name: value for name, (*_, value) in SCALARS.items()}
    for count in (3, 300):
        database.execute(f"INSERT INTO t SELECT i, {values} FROM generate_series(1, {count}) AS i")
        found = rows(*read_rows(source, count))
        assert found == [{**first, "id": number} for number in range(1, count + 1)]
        database.execute("DELETE FROM t WHERE id > 0")
        assert [(row["__op"], row["id"]) for row in rows(*read_rows(source, count))] == [(-1, n) for n in range(1, count + 1)]
    source.close()


@pytest.mark.core
def test_one_malformed_change_among_many(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, name text, flag bool)", TABLE[1], FULL)
    schema = relation(col("id", "TINYINT", null=False), col("name", "VARCHAR", null=False), col("flag", "BOOLEAN"))
    source = follow(database, replace(schema, primary_key=("id",)))
    read_first(source)
    database.transaction(
        "INSERT INTO t SELECT i, 'n' || i, i % 2 = 0 FROM generate_series(1, 200) AS i",
        "INSERT INTO t VALUES (-1, NULL, true)",
        "UPDATE t SET name = NULL WHERE id = 100",
        "DELETE FROM t WHERE id <= 100",
    )
    chunks = read_until(source, lambda chunks: sum(chunk.records + chunk.num_parse_errors for chunk in chunks) >= 302)
    found = rows(*chunks)
    # A row that cannot be taken goes, in case that it was there before.
    assert [(row["__op"], row["id"]) for row in found] == [
        *((1, number) for number in range(1, 128)),
        *((-1, number) for number in (-1, 100, *range(1, 100), -1, 100)),
    ]
    assert [row["flag"] for row in found[:3]] == [False, True, False]
    assert sum(chunk.num_parse_errors for chunk in chunks) == 75
    assert "id = \"100\": column 'name' is NOT NULL, but the value is null" in errors(*chunks)[-1]
    source.close()


LARGE = "string_agg(md5(i::text), '')"


@pytest.mark.core
def test_large_values_that_an_update_leaves_alone(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name text, large text)",
        "ALTER TABLE t ALTER COLUMN large SET STORAGE EXTERNAL",
        TABLE[1],
        f"INSERT INTO t SELECT 1, 'a', {LARGE} FROM generate_series(1, 500) AS i",
    )
    schema = replace(KEYED, columns=(*KEYED.columns, col("large", "VARCHAR")))
    source = follow(database, schema)
    [before] = rows(read_first(source))
    assert len(before["large"]) == 16_000
    database.execute("UPDATE t SET name = 'b'")
    [update] = rows(*read_rows(source, 1))
    assert (update["__op"], update["name"], update[GIVEN]) == (2, "b", ["id", "name"])
    # A key that changes would take the value along, which nobody has sent.
    database.execute("UPDATE t SET id = 2")
    chunks = read_until(source, lambda chunks: any(chunk.num_parse_errors for chunk in chunks))
    assert "id = \"2\": an update changed the key of a row and not its large column 'large'" in errors(*chunks)[0]
    assert "ALTER TABLE public.t REPLICA IDENTITY FULL" in errors(*chunks)[0]
    assert [(row["__op"], row["id"]) for row in rows(*chunks)] == [(-1, 1)]
    database.execute(FULL, "UPDATE t SET id = 3")
    old, new = rows(*read_rows(source, 2))
    assert (old["__op"], old["id"], new["id"], new["large"]) == (-1, 2, 3, before["large"])
    source.close()


@pytest.mark.core
def test_transactions_come_as_a_whole(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("INSERT INTO t VALUES (-1, 'x')", "INSERT INTO t VALUES (-2, 'x')", "INSERT INTO t VALUES (-3, 'x')")
    database.execute("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 25) AS i", "DELETE FROM t WHERE id = -1")
    time.sleep(0.5)
    chunks = read_rows(source, 29, max_records=10)
    assert [(chunk.records, chunk.transaction) for chunk in chunks if chunk.transaction is not None] == [
        (10, ChunkInTransaction.MORE),
        (10, ChunkInTransaction.MORE),
        (5, ChunkInTransaction.LAST),
    ]
    assert [identity for _, identity, _ in plain(*chunks)] == [-1, -2, -3, *range(1, 26), -1]
    source.close()


@pytest.mark.core
def test_the_rows_of_a_large_table_are_one_transaction(database: Database) -> None:
    database.execute(*TABLE, "INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 25) AS i")
    source = follow(database)
    chunks = read_rows(source, 25, max_records=10)
    kinds = [chunk.transaction for chunk in chunks]
    assert kinds == [ChunkInTransaction.MORE, ChunkInTransaction.MORE, ChunkInTransaction.LAST]
    assert sorted(identity for _, identity, _ in plain(*chunks)) == list(range(1, 26))
    with pytest.raises(ConnectorFailure, match="stopped within the first rows"):
        follow(database, position=chunks[0].position)
    source.close()


def test_reading_goes_on_from_every_position(database: Database) -> None:
    database.execute(*TABLE, "INSERT INTO t VALUES (0, 'first')")
    source = follow(database)
    first = read_first(source)
    for number in range(1, 4):
        database.execute(f"INSERT INTO t SELECT i, 'x' FROM generate_series({number * 10}, {number * 10 + 6}) AS i")
    chunks = [first, *read_rows(source, 21, max_records=4)]
    source.close()
    identities = [identity for _, identity, _ in plain(*chunks)]
    assert identities == [0, *range(10, 17), *range(20, 27), *range(30, 37)]
    for number, chunk in enumerate(chunks):
        read = sum(before.records for before in chunks[: number + 1])
        source = follow(database, position=chunk.position)
        if read < len(identities):
            rest = read_rows(source, len(identities) - read, max_records=3)
            assert [identity for _, identity, _ in plain(*rest)] == identities[read:]
        # A transaction may end with nothing more than its end.
        assert all(end is None or end.records == 0 for end in (source.read(1000, 0.1) for _ in range(3)))
        source.close()


def confirmed(database: Database) -> str:
    [[place]] = database.rows("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()")
    return str(place)


@pytest.mark.core
def test_the_server_forgets_only_what_is_durable(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    begin = read_first(source)
    assert isinstance(source, Committing)
    assert isinstance(source, Lagging)
    database.execute("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')")
    one, *_ = chunks = read_rows(source, 2)
    read_nothing(source)
    assert confirmed(database) == begin.position["lsn"]
    source.commit(one.position)
    read_nothing(source)
    assert confirmed(database) == one.position["lsn"]
    source.commit(begin.position)
    # A lost connection is no reason to forget what has been read and is not durable yet.
    source.close()
    again = follow(database, position=chunks[-1].position)
    read_nothing(again)
    assert confirmed(database) == one.position["lsn"]
    again.close()
    source = follow(database, position=chunks[-1].position)
    assert isinstance(source, Committing)
    database.execute("INSERT INTO t VALUES (3, 'c')")
    last = read_rows(source, 1)[-1]
    source.commit(last.position)
    # Nothing is read any more.
    source.close()
    deadline = time.monotonic() + 10
    while confirmed(database) != last.position["lsn"]:
        assert time.monotonic() < deadline
    with pytest.raises(ConnectorFailure, match=r"has been moved on to .*the changes between are gone"):
        follow(database, position=chunks[0].position if chunks[0] is not last else begin.position)


@pytest.mark.core
@pytest.mark.parametrize("is_published", [False, True])
def test_the_lag_is_the_log_that_the_server_keeps(database: Database, monkeypatch: pytest.MonkeyPatch, is_published: bool) -> None:
    monkeypatch.setattr("airflow_pipelines.connectors.transports.postgresql.watch._EVERY_S", 0.0)
    monkeypatch.setattr(cdc_input, "_MOVED_BYTES", 10_000)
    database.execute(*TABLE, "CREATE TABLE u (v text)")
    if is_published:
        database.execute("ALTER PUBLICATION p ADD TABLE u")
    source = follow(database)
    begin = read_first(source)
    assert isinstance(source, Committing)
    assert isinstance(source, Lagging)
    source.commit(begin.position)
    read_nothing(source)
    before = source.lag()
    assert before is not None
    assert before.bytes is not None
    database.execute("INSERT INTO u SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    # Changes of other tables move the position on, so that the server need not keep them.
    moved = read_until(source, lambda chunks: bool(chunks))[-1]
    assert moved.records == 0
    lag = source.lag()
    assert lag is not None
    assert lag.bytes is not None
    assert lag.bytes > before.bytes + 900_000
    source.commit(moved.position)
    read_nothing(source)
    lag = source.lag()
    assert lag is not None
    assert lag.bytes is not None
    assert lag.bytes < 100_000
    source.close()


@pytest.mark.core
def test_a_reader_that_rests_goes_on_where_it_was(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 10) AS i")
    chunks = read_rows(source, 4, max_records=4)
    assert isinstance(source, Resting)
    source.rest()
    # The server needs a moment to notice that its client has gone.
    deadline = time.monotonic() + 20
    while database.rows("SELECT active FROM pg_replication_slots WHERE database = current_database()") != [(False,)]:
        assert time.monotonic() < deadline, "the slot is not let go of"
        time.sleep(0.02)
    chunks += read_rows(source, 6, max_records=4)
    assert [identity for _, identity, _ in plain(*chunks)] == list(range(1, 11))
    assert chunks[-1].transaction is ChunkInTransaction.LAST
    source.close()


ODD = replace(
    relation(
        col("id", "BIGINT", null=False),
        col("f", "DOUBLE"),
        col("n", "DOUBLE"),
        col("r", "REAL"),
        col("d", "DATE"),
        col("ts", "TIMESTAMP"),
        col("t", "TIME"),
        col("i", "INTERVAL_DAY_TO_SECOND"),
        col("m", "DECIMAL", precision=10, scale=2),
    ),
    primary_key=("id",),
)
ODD_TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, f float8, n numeric, r float4, d date, ts timestamp, t time, i interval, m numeric)",
    TABLE[1],
    "INSERT INTO t SELECT g, 1.5, 1.5, 1.5, '2024-02-29', '2024-02-29', '01:00', '1 day', 1 FROM generate_series(1, 9) AS g",
)
INVALID = {
    "d": ("'infinity'", "'0044-03-15 BC'", "'12024-01-01'"),
    "ts": ("'-infinity'",),
    "t": ("'24:00:00'",),
    "i": ("'1 mon 2 days'",),
    "m": ("'NaN'",),
    "n": ("1e400",),
}


@pytest.mark.core
def test_nan_and_infinities_are_floating_point_numbers(database: Database) -> None:
    database.execute(*ODD_TABLE, "INSERT INTO t (id, f, n, r) VALUES (0, 'NaN', 'NaN', '-Infinity')")
    source = follow(database, ODD)
    [first] = [row for row in rows(read_first(source)) if row["id"] == 0]
    assert [str(first[name]) for name in "fnr"] == ["nan", "nan", "-inf"]
    for count in (1, 60):
        # Few rows are read one by one.
        change = f"INSERT INTO t (id, f, n, r) SELECT i, 'Infinity', 'NaN', 'NaN' FROM generate_series(101, {100 + count}) AS i"
        database.transaction("DELETE FROM t WHERE id > 100", change, "UPDATE t SET f = 'NaN' WHERE id = 1")
        chunks = read_until(source, lambda chunks: bool(rows(*chunks)) and rows(*chunks)[-1]["id"] == 1)
        assert errors(*chunks) == []
        found = [row for row in rows(*chunks) if row["__op"] == 1]
        assert [[str(row[name]) for name in "fnr"] for row in found] == [*[["inf", "nan", "nan"]] * count, ["nan", "1.5", "1.5"]]
    source.close()


@pytest.mark.core
def test_a_value_that_its_column_does_not_have_leaves_no_row_of_before(database: Database) -> None:
    database.execute(*ODD_TABLE)
    source = follow(database, ODD)
    assert read_first(source).records == 9
    changes = [(name, value) for name, values in INVALID.items() for value in values]
    for number, (name, value) in enumerate(changes, 1):
        database.execute(f"UPDATE t SET {name} = {value} WHERE id = {number}")
        chunks = read_until(source, lambda chunks: any(chunk.num_parse_errors for chunk in chunks))
        assert [(row["__op"], row["id"]) for row in rows(*chunks)] == [(-1, number)]
        [problem] = errors(*chunks)
        assert f': id = "{number}": column {name!r}' in problem
    source.close()


@pytest.mark.core
def test_a_value_that_its_column_does_not_have_may_be_null(database: Database) -> None:
    database.execute(*ODD_TABLE, "UPDATE t SET d = 'infinity' WHERE id = 9")
    source = follow(database, ODD, invalid_values="null")
    first = read_first(source)
    assert ([row["d"] for row in rows(first) if row["id"] == 9], first.num_parse_errors) == ([None], 0)
    for name, values in INVALID.items():
        for value in values:
            database.execute(f"UPDATE t SET {name} = {value} WHERE id = 1")
            [change] = rows(*read_rows(source, 1))
            assert (change["__op"], change["id"], change[name], change["r"]) == (1, 1, None, 1.5)
        database.execute(f"UPDATE t SET {name} = NULL WHERE id = 1")
        read_rows(source, 1)
    source.close()


@pytest.mark.core
def test_a_large_key_that_an_update_leaves_alone(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (name text PRIMARY KEY, id int)",
        "ALTER TABLE t ALTER COLUMN name SET STORAGE EXTERNAL",
        TABLE[1],
        f"INSERT INTO t SELECT {LARGE}, 1 FROM generate_series(1, 70) AS i",
    )
    schema = relation(col("name", "VARCHAR", null=False), col("id", "BIGINT"))
    source = follow(database, replace(schema, primary_key=("name",)))
    [before] = rows(read_first(source))
    assert len(before["name"]) == 2_240
    database.execute("UPDATE t SET id = 2")
    [after] = rows(*read_rows(source, 1))
    assert (after["__op"], after["name"], after["id"]) == (1, before["name"], 2)
    database.execute("UPDATE t SET name = 'x'")
    assert plain(*read_rows(source, 2)) == [(-1, None, before["name"]), (1, 2, "x")]
    source.close()


@pytest.mark.core
def test_generated_columns_are_left_to_views(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, name text, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        TABLE[1],
        "INSERT INTO t VALUES (1, 'a')",
    )
    with pytest.raises(ConnectorFailure, match=r"'twice' of public.t is generated.*compute it in a view"):
        follow(database, replace(KEYED, columns=(*KEYED.columns, col("TWICE", "INTEGER"))))
    source = follow(database)
    assert plain(read_first(source)) == [(1, 1, "a")]
    database.execute("UPDATE t SET name = 'b'")
    assert plain(*read_rows(source, 1)) == [(1, 1, "b")]
    source.close()


@pytest.mark.core
def test_a_column_that_is_generated_from_now_on_ends_the_input(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database, replace(KEYED, columns=(*KEYED.columns, col("twice", "INTEGER"))))
    read_first(source)
    database.execute("ALTER TABLE t ADD COLUMN twice int GENERATED ALWAYS AS (id * 2) STORED", "INSERT INTO t VALUES (1, 'a')")
    assert "'twice' of public.t is generated" in str(failure_of(source))


@pytest.mark.core
def test_columns_that_come_and_go(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("ALTER TABLE t ADD COLUMN more int", "INSERT INTO t VALUES (1, 'a', 5)", "ALTER TABLE t DROP COLUMN name")
    database.execute("INSERT INTO t VALUES (2, 6)")
    assert plain(*read_rows(source, 2)) == [(1, 1, "a"), (1, 2, None)]
    database.execute(
        "INSERT INTO t VALUES (3, 7)", "ALTER TABLE t ADD COLUMN name int4range", "INSERT INTO t VALUES (4, 8, '[1,2)')"
    )
    # What was committed before comes all the same.
    assert plain(*read_rows(source, 1)) == [(1, 3, None)]
    failure = failure_of(source)
    assert "table public.t, as it is now: column 'name': int4range cannot be read" in str(failure)


@pytest.mark.core
@pytest.mark.parametrize("most", [1, 1000])
def test_truncation(database: Database, most: int) -> None:
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("INSERT INTO t VALUES (1, 'a')")
    with psycopg.connect(database.url) as connection:
        connection.execute("INSERT INTO t VALUES (2, 'b')")
        connection.execute("TRUNCATE t")
        connection.execute("INSERT INTO t VALUES (3, 'c')")
    database.execute("TRUNCATE t", "INSERT INTO t VALUES (4, 'd'), (5, 'e')", "DELETE FROM t WHERE id = 4")
    left: dict[int, str] = {}

    def keep(chunk: InputChunk) -> None:
        if chunk.changes is not None and chunk.changes.truncates:
            left.clear()
        for op, number, name in plain(chunk):
            if op == Op.DELETE:
                del left[number]
            else:
                left[number] = name

    seen = 0
    while left != {5: "e"}:
        [chunk] = read_until(source, lambda chunks: len(chunks) == 1, most)
        keep(chunk)
        seen += 1
        assert seen < 30, left
        if seen == 2:
            # One is within a transaction.
            source.close()
            source = follow(database, position=chunk.position)
    source.close()


@pytest.mark.core
def test_a_table_or_publication_that_goes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.connectors.transports.postgresql.watch._EVERY_S", 0.1)
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("ALTER PUBLICATION p DROP TABLE t")
    assert "publication 'p' does not have table public.t. Add it: ALTER PUBLICATION" in str(failure_of(source))
    database.execute("DROP PUBLICATION p")
    with pytest.raises(ConnectorFailure, match=r"there is no publication 'p'. Make it: CREATE PUBLICATION"):
        follow(database)
    database.execute(TABLE[1])
    source = follow(database)
    begin = read_first(source)
    database.execute("DROP TABLE t")
    assert "there is no table public.t" in str(failure_of(source))
    database.execute(TABLE[0], "ALTER PUBLICATION p ADD TABLE t", "INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(ConnectorFailure, match="was dropped and made again"):
        follow(database, position=begin.position)


def test_a_slot_that_is_gone_or_taken(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    begin = read_first(source)
    read_nothing(source)
    with pytest.raises(TransientConnectorFailure, match=r"is used by somebody else .*for airflow-pipelines at 127.0.0.1"):
        follow(database, position=begin.position)
    source.close()
    deadline = time.monotonic() + 10
    while database.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database() AND active"):
        assert time.monotonic() < deadline
    database.execute(f"SELECT pg_drop_replication_slot('{slot_of(database)}')")
    with pytest.raises(ConnectorFailure, match=r"is gone, and with it the changes since .*Clear the pipeline"):
        follow(database, position=begin.position)


@pytest.mark.core
def test_a_slot_that_is_made_anew_while_the_input_rests(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database, slot="s")
    read_first(source)
    database.execute("INSERT INTO t VALUES (1, 'a')")
    assert plain(*read_rows(source, 1)) == [(1, 1, "a")]
    assert isinstance(source, Resting)
    source.rest()
    database.execute("SELECT pg_drop_replication_slot('s')", "INSERT INTO t VALUES (2, 'lost')")
    database.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')", "INSERT INTO t VALUES (3, 'c')")
    assert "slot s has been moved on to" in str(failure_of(source))


@pytest.mark.core
@pytest.mark.parametrize("lost", ["slot", "moved", "table", "rows"])
def test_rows_may_come_again_when_changes_were_lost(database: Database, lost: str) -> None:
    database.execute(*TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = follow(database)
    position = read_first(source).position
    slot = slot_of(database)
    source.close()
    while database.rows("SELECT 1 FROM pg_replication_slots WHERE active"):
        time.sleep(0.02)
    if lost == "slot":
        database.execute(f"SELECT pg_drop_replication_slot('{slot}')", "DELETE FROM t WHERE id = 1")
    elif lost == "moved":
        database.execute("DELETE FROM t WHERE id = 1")
        database.execute(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    elif lost == "table":
        database.execute("DROP TABLE t", TABLE[0], "ALTER PUBLICATION p ADD TABLE t", "INSERT INTO t VALUES (2, 'b')")
    else:
        database.execute(f"SELECT pg_drop_replication_slot('{slot}')", "DELETE FROM t")
    with pytest.raises(ConnectorFailure, match="Clear the pipeline and start it again"):
        follow(database, position=position)
    again = follow(database, position=position, snapshot_if_data_expires=True)
    chunk = read_first(again)
    assert chunk.changes is not None
    assert chunk.changes.truncates
    assert plain(chunk) == ([] if lost == "rows" else [(1, 2, "b")])
    if lost == "rows":
        again.close()
        return
    database.execute("INSERT INTO t VALUES (3, 'c')")
    [more] = read_rows(again, 1)
    assert plain(more) == [(1, 3, "c")]
    assert more.changes is not None
    assert not more.changes.truncates
    again.close()
    # What was read since is gone on from.
    later = follow(database, position=more.position, snapshot_if_data_expires=True)
    database.execute("DELETE FROM t")
    assert sorted(row[:2] for row in plain(*read_rows(later, 2))) == [(-1, 2), (-1, 3)]
    later.close()


@pytest.mark.core
def test_another_server_is_noticed(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    begin = read_first(source)
    source.close()
    elsewhere = follow(database, position={**begin.position, "system": "1"})
    assert "this is another server than the one whose changes were read before" in str(failure_of(elsewhere))


@pytest.mark.core
def test_named_slots(database: Database) -> None:
    database.execute(*TABLE, "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')", "INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(ConnectorFailure, match=r"slot mine is there already.*SELECT pg_drop_replication_slot\('mine'\)"):
        follow(database, slot="mine")
    source = follow(database, slot="mine", snapshot=False)
    assert plain(*read_rows(source, 1)) == [(1, 1, "a")]
    source.close()
    database.execute("SELECT pg_create_logical_replication_slot('other', 'test_decoding')")
    with pytest.raises(ConnectorFailure, match="slot other is not one of pgoutput"):
        follow(database, slot="other", snapshot=False)
    fresh = follow(database, slot="fresh", snapshot=False)
    database.execute("INSERT INTO t VALUES (2, 'b')")
    assert plain(*read_rows(fresh, 1)) == [(1, 2, "b")]
    fresh.close()


@pytest.mark.core
def test_a_start_that_was_lost_begins_again(database: Database) -> None:
    database.execute(*TABLE, "INSERT INTO t VALUES (1, 'a')")
    for _ in range(2):
        # Nothing of it is kept, as after a kill before the first checkpoint.
        source = follow(database)
        assert plain(read_first(source)) == [(1, 1, "a")]
        source.close()
        time.sleep(0.2)
    assert slot_of(database).startswith("airflow_pipelines_")
    unread = follow(database)
    unread.close()
    assert database.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database()") == []


@pytest.mark.core
def test_a_server_that_stops_and_starts(database: Database) -> None:
    database.execute(*TABLE)
    source = follow(database)
    read_first(source)
    database.execute("INSERT INTO t VALUES (1, 'a')")
    last = read_rows(source, 1)[-1]
    database.execute("INSERT INTO t VALUES (2, 'b')")
    database.server.stop("immediate")
    try:
        failure = failure_of(source)
        with pytest.raises(TransientConnectorFailure):
            follow(database, position=last.position)
    finally:
        database.server.start()
    assert isinstance(failure, TransientConnectorFailure)
    source = follow(database, position=last.position)
    assert plain(*read_rows(source, 1)) == [(1, 2, "b")]
    source.close()


@pytest.mark.core
def test_only_published_rows_and_columns(database: Database) -> None:
    database.execute(
        TABLE[0],
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        FULL,
        "CREATE PUBLICATION p FOR TABLE t WHERE (id > 1)",
    )
    source = follow(database)
    assert plain(read_first(source)) == [(1, 2, "b")]
    database.execute("INSERT INTO t VALUES (0, 'x'), (3, 'c')", "UPDATE t SET id = -2 WHERE id = 2")
    assert plain(*read_rows(source, 2)) == [(1, 3, "c"), (-1, 2, None)]
    source.close()


@pytest.mark.core
def test_published_columns_and_partitions(database: Database) -> None:
    database.execute(TABLE[0], "INSERT INTO t VALUES (1, 'a')", "CREATE PUBLICATION p FOR TABLE t (id)")
    source = follow(database)
    assert plain(read_first(source)) == [(1, 1, None)]
    database.execute("INSERT INTO t VALUES (2, 'b')")
    assert plain(*read_rows(source, 1)) == [(1, 2, None)]
    source.close()
    database.execute(
        "DROP PUBLICATION p",
        "DROP TABLE t",
        "CREATE TABLE t (id int PRIMARY KEY, name text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "INSERT INTO t VALUES (1, 'a'), (11, 'b')",
        "CREATE PUBLICATION p FOR ALL TABLES",
    )
    with pytest.raises(ConnectorFailure, match=r"a partitioned table also needs SET .publish_via_partition_root = true"):
        follow(database)
    database.execute("ALTER PUBLICATION p SET (publish_via_partition_root = true)")
    source = follow(database)
    assert sorted(plain(read_first(source))) == [(1, 1, "a"), (1, 11, "b")]
    database.execute("UPDATE t SET id = 12 WHERE id = 1", "DELETE FROM t WHERE id = 11")
    # A row that moves to another partition goes and comes.
    assert plain(*read_rows(source, 3)) == [(-1, 1, None), (1, 12, "a"), (-1, 11, None)]
    source.close()


@pytest.mark.core
def test_who_may_not_replicate_is_told(database: Database) -> None:
    role = f"reader_{database.name}"
    database.execute(*TABLE, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON t TO {role}")
    with pytest.raises(ConnectorFailure, match=r"replication role.*ALTER ROLE \.\.\. REPLICATION"):
        follow(database, uri=database.url.replace("pipelines@", f"{role}@"))
    database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.core
def test_who_has_another_password_is_told(database: Database, password_user: str) -> None:
    database.execute(*TABLE, f"ALTER ROLE {password_user} REPLICATION", f"GRANT SELECT ON t TO {password_user}")
    server = f"127.0.0.1:{database.server.port}/{database.name}"
    with pytest.raises(ConnectorFailure, match=r"password authentication failed.*Check user and password in 'uri'") as failure:
        follow(database, uri=f"postgresql://{password_user}:s3cret@{server}")
    assert not isinstance(failure.value, TransientConnectorFailure)
    assert "s3cret" not in str(failure.value) + repr(failure.value.__cause__)
    source = follow(database, uri=f"postgresql://{password_user}:{quote(PASSWORD)}@{server}")
    database.execute("INSERT INTO t VALUES (1, 'a')")
    assert plain(*read_rows(source, 1)) == [(int(Op.INSERT), 1, "a")]
    source.close()
