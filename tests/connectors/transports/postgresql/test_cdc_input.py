"""Following a table: its rows, then its changes, and transactions as a whole."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    ConnectorFailure,
)
from airflow_pipelines.rows.changes import GIVEN
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.following import (
    BAG,
    FULL,
    KEYED,
    LARGE,
    TABLE,
    failure_of,
    follow,
    plain,
    read_first,
    read_nothing,
    read_rows,
    read_until,
)
from tests.connectors.transports.postgresql.sources import errors, rows
from tests.connectors.transports.postgresql.test_query_input import SCALARS, TYPES
from tests.fixtures.postgresql import Database


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
