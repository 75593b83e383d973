"""Values of followed tables that their columns do not have, and columns that come and go."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from airflow_pipelines.connectors.base import (
    ConnectorFailure,
    InputChunk,
)
from airflow_pipelines.rows.changes import Op
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.following import (
    INVALID,
    KEYED,
    LARGE,
    ODD,
    ODD_TABLE,
    TABLE,
    failure_of,
    follow,
    plain,
    read_first,
    read_rows,
    read_until,
)
from tests.connectors.transports.postgresql.sources import errors, rows
from tests.fixtures.postgresql import Database


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
