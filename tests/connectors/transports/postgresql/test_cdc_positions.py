"""Following a table from every position: what the server keeps, how far it is ahead, and readers that rest."""

from __future__ import annotations

import time

import pytest

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    Committing,
    ConnectorFailure,
    Lagging,
    Resting,
)
from airflow_pipelines.connectors.transports.postgresql import cdc_input
from tests.connectors.transports.postgresql.following import (
    TABLE,
    confirmed,
    follow,
    plain,
    read_first,
    read_nothing,
    read_rows,
    read_until,
)
from tests.fixtures.postgresql import Database


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
