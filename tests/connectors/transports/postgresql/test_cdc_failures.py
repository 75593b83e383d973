"""Tables, publications, slots, servers and users that go, change or are refused while a table is followed."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest

from airflow_pipelines.connectors.base import (
    ConnectorFailure,
    Resting,
    TransientConnectorFailure,
)
from airflow_pipelines.rows.changes import Op
from tests.connectors.transports.postgresql.following import (
    FULL,
    TABLE,
    failure_of,
    follow,
    plain,
    read_first,
    read_nothing,
    read_rows,
    slot_of,
    wait_until_slots_are_free,
)
from tests.fixtures.postgresql import PASSWORD, Database


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
    wait_until_slots_are_free(database)
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
    wait_until_slots_are_free(database)
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
    wait_until_slots_are_free(database)
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
