"""Pipelines between tables of PostgreSQL: the programs of the connectors' page, stops, checkpoints and what is shown."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.transports.postgresql import cdc_input
from tests.fixtures.postgresql import Database
from tests.host.driver import Pipeline

PAGE = Path(__file__).parents[2] / "docs" / "postgresql.md"
PROGRAM, TABLES, QUERY = (found[1] for found in list(re.finditer(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))[:3])
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": 1}
Make = Callable[..., Pipeline]


def wait_until(holds: Callable[[], bool], pipeline: Pipeline, what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"{what}\n{pipeline.stats(include_connector_errors=True)}\n{pipeline.log}"
        time.sleep(0.05)


def input_of(pipeline: Pipeline, endpoint: str) -> dict[str, Any]:
    return next(source for source in pipeline.stats()["inputs"] if source["endpoint_name"] == endpoint)


def totals(database: Database) -> list[tuple[Any, ...]]:
    return database.rows("SELECT customer, orders, total::text FROM totals ORDER BY customer")


def test_the_program_of_the_page_keeps_a_table_equal_to_its_view(make: Make, database: Database) -> None:
    database.execute(TABLES, "INSERT INTO orders VALUES (1, 'a', 1.50), (2, 'b', 2), (3, 'a', 3)")
    pipeline = make(PROGRAM, env={"SHOP": database.url}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    wait_until(lambda: totals(database) == [("a", 2, "4.50"), ("b", 1, "2.00")], pipeline, "the rows of the table come first")
    database.transaction(
        "INSERT INTO orders VALUES (4, 'c', 4)", "UPDATE orders SET customer = 'b' WHERE id = 1", "DELETE FROM orders WHERE id = 2"
    )
    wait_until(lambda: totals(database) == [("a", 1, "3.00"), ("b", 1, "1.50"), ("c", 1, "4.00")], pipeline, "changes come")
    # Stopped by force.
    pipeline.kill()
    database.execute("DELETE FROM orders WHERE id = 4", "INSERT INTO orders VALUES (5, 'd', 5)")
    pipeline.start()
    wait_until(lambda: totals(database) == [("a", 1, "3.00"), ("b", 1, "1.50"), ("d", 1, "5.00")], pipeline, "what came meanwhile")
    # Stopped with a checkpoint.
    pipeline.suspend()
    assert database.rows("SELECT active FROM pg_replication_slots WHERE database = current_database()") == [(False,)]
    database.execute("TRUNCATE totals", "INSERT INTO totals SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer")
    database.execute("UPDATE orders SET amount = 50 WHERE id = 5")
    pipeline.start()
    wait_until(lambda: totals(database)[-1] == ("d", 1, "50.00"), pipeline, "it goes on")
    [source], [target] = pipeline.stats()["inputs"], pipeline.stats()["outputs"]
    assert source["health"]["status"] == target["health"]["status"] == "Healthy"
    assert source["metrics"]["total_records"] == 9


def test_the_query_of_the_page_is_read_once(make: Make, database: Database) -> None:
    database.execute(
        "CREATE TABLE products (id int, name text, tags text[])", "INSERT INTO products VALUES (1, 'x', '{a,b}'), (1000, 'y', NULL)"
    )
    pipeline = make(QUERY.replace("WITH (", "WITH ('materialized' = 'true', "), env={"SHOP": database.url})
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.query("SELECT * FROM products") == [{"id": 1, "name": "x", "tags": ["a", "b"]}]
    pipeline.suspend()
    database.execute("DROP TABLE products")
    pipeline.start()
    stats = pipeline.await_complete()
    assert stats["inputs"][0]["fatal_error"] is None
    assert pipeline.query("SELECT COUNT(*) AS n FROM products") == [{"n": 1}]


def test_a_large_transaction_and_a_large_table_come_as_one_step(make: Make, database: Database) -> None:
    database.execute(TABLES, "INSERT INTO orders SELECT i, 'c', 1 FROM generate_series(1, 2500) AS i")
    program = PROGRAM.replace('"name": "orders",', '"name": "orders", "max_batch_size": 1000,')
    pipeline = make(program, env={"SHOP": database.url})
    seen: set[int] = set()
    pipeline.start()

    def counted(wanted: int) -> bool:
        found = totals(database)
        seen.update(orders for _, orders, _ in found)
        return bool(found) and found[0][1] == wanted

    wait_until(lambda: counted(2500), pipeline, "the rows of the table")
    database.execute("INSERT INTO orders SELECT i, 'c', 1 FROM generate_series(5001, 8000) AS i")
    wait_until(lambda: counted(5500), pipeline, "the transaction")
    assert seen == {2500, 5500}


def in_transaction(pipeline: Pipeline) -> bool:
    return bool(pipeline.stats()["global_metrics"]["transaction_records"])


def test_a_stop_by_force_within_large_transactions(make: Make, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdc_input, "_IDLE_LIMIT_S", 0.5)
    database.execute(TABLES, "INSERT INTO orders SELECT i, 'c', 1 FROM generate_series(1, 40000) AS i")
    program = PROGRAM.replace('"name": "orders",', '"name": "orders", "max_batch_size": 200, "max_queued_records": 400,')
    pipeline = make(program, env={"SHOP": database.url}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    wait_until(lambda: in_transaction(pipeline), pipeline, "the rows of the table begin to come")
    pipeline.kill()
    assert totals(database) == []
    pipeline.start()
    wait_until(lambda: totals(database) == [("c", 40_000, "40000.00")], pipeline, "they come once")
    database.execute("UPDATE orders SET amount = 2")
    wait_until(lambda: in_transaction(pipeline), pipeline, "the changes begin to come")
    pipeline.kill()
    pipeline.start()
    wait_until(lambda: totals(database) == [("c", 40_000, "80000.00")], pipeline, "they come as a whole")
    # Paused within a transaction, for longer than the server is to wait.
    database.execute("DELETE FROM orders WHERE id > 20000")
    wait_until(lambda: in_transaction(pipeline), pipeline, "the changes begin to come")
    assert pipeline.post("tables/orders/connectors/orders/pause").status_code == 200
    active = "SELECT active FROM pg_replication_slots WHERE database = current_database()"
    wait_until(lambda: database.rows(active) == [(False,)], pipeline, "the reader lets go of the server")
    assert pipeline.post("tables/orders/connectors/orders/start").status_code == 200
    wait_until(lambda: totals(database) == [("c", 20_000, "40000.00")], pipeline, "the rest comes")


@pytest.mark.core
def test_what_is_wrong_is_shown_and_the_rest_goes_on(make: Make, database: Database) -> None:
    database.execute(TABLES, "ALTER TABLE totals DROP COLUMN total", "INSERT INTO orders VALUES (1, 'a', 1)")
    guarded = database.url.replace("pipelines@", "nobody:s3cret@")
    declared = json.dumps(
        [{"name": "q", "transport": {"name": "postgres_input", "config": {"uri": "${env:OTHER}", "query": "SELECT 1 AS x"}}}]
    )
    more = f"CREATE TABLE other (x INT) WITH ('connectors' = '{declared}');"
    materialized = PROGRAM.replace("WITH (", "WITH ('materialized' = 'true', ", 1)
    pipeline = make(materialized + more, env={"SHOP": database.url, "OTHER": guarded})
    pipeline.start()
    wait_until(lambda: pipeline.query("SELECT id FROM orders") == [{"id": 1}], pipeline, "the table is followed")
    wait_until(lambda: pipeline.stats()["outputs"][0]["fatal_error"] is not None, pipeline, "the output ends")
    stats = pipeline.stats(include_connector_errors=True)
    assert "table public.totals has no column 'total'" in stats["outputs"][0]["fatal_error"]
    wait_until(lambda: input_of(pipeline, "other.q")["fatal_error"] is not None, pipeline, "the query is refused")
    assert input_of(pipeline, "orders.orders")["health"]["status"] == "Healthy"
    shown = json.dumps(pipeline.stats(include_connector_errors=True)) + pipeline.log
    assert 'role "nobody" does not exist' in shown.replace('\\"', '"')
    assert "s3cret" not in shown


def test_no_checkpoint_while_a_query_is_being_read(make: Make, database: Database) -> None:
    slow = "CASE WHEN i = 50001 THEN i + length(pg_sleep(60)::text) ELSE i END"
    query = f"SELECT {slow} AS x, repeat(i::text, 200) AS wide FROM generate_series(1, 60000) AS i"
    config = {"uri": "${env:SHOP}", "query": query}
    declared = json.dumps([{"name": "q", "transport": {"name": "postgres_input", "config": config}}])
    pipeline = make(
        f"CREATE TABLE t (x INT, wide VARCHAR) WITH ('materialized' = 'true', 'connectors' = '{declared}');",
        env={"SHOP": database.url},
    )
    pipeline.start()
    wait_until(lambda: pipeline.stats()["global_metrics"]["total_processed_records"] > 0, pipeline, "rows come")
    answer = pipeline.stats()
    assert "UnsupportedInputEndpoint" in json.dumps(answer["suspend_error"])


@pytest.mark.parametrize("model", ["at_least_once", "exactly_once"])
def test_a_stop_by_force_in_the_middle_of_changes(make: Make, database: Database, model: str) -> None:
    database.execute(TABLES)
    program = PROGRAM.replace("WITH (", "WITH ('materialized' = 'true', ", 1)
    pipeline = make(program, env={"SHOP": database.url}, fault_tolerance={"model": model, "checkpoint_interval_secs": 1})
    for round_ in range(2):
        pipeline.start()
        for number in range(round_ * 1000, round_ * 1000 + 40):
            database.execute(
                f"INSERT INTO orders VALUES ({number}, 'c{number % 7}', 1)", f"DELETE FROM orders WHERE id = {number - 3}"
            )
        pipeline.kill()
    pipeline.start()
    wanted = [row[0] for row in database.rows("SELECT id FROM orders ORDER BY id")]
    wait_until(
        lambda: [row["id"] for row in pipeline.query("SELECT id FROM orders ORDER BY id")] == wanted, pipeline, "the table is equal"
    )


@pytest.mark.core("at_least_once")
@pytest.mark.parametrize("model", ["at_least_once", "exactly_once"])
def test_the_server_forgets_no_change_that_a_restart_reads_again(make: Make, database: Database, model: str) -> None:
    database.execute(TABLES, "INSERT INTO orders VALUES (1, 'a', 1)")
    program = PROGRAM.replace("WITH (", "WITH ('materialized' = 'true', ", 1)
    pipeline = make(program, env={"SHOP": database.url}, fault_tolerance={"model": model, "checkpoint_interval_secs": None})
    pipeline.start()
    wait_until(lambda: pipeline.query("SELECT id FROM orders") == [{"id": 1}], pipeline, "the rows of the table")
    pipeline.checkpoint()
    # Transactions after which nothing is other than before are no steps, and in no journal.
    for _ in range(3):
        database.transaction("INSERT INTO orders VALUES (2, 'a', 1)", "DELETE FROM orders WHERE id = 2")
    wait_until(lambda: input_of(pipeline, "orders.orders")["metrics"]["total_records"] >= 7, pipeline, "changes come")
    time.sleep(0.6)
    pipeline.kill()
    pipeline.start()
    database.execute("INSERT INTO orders VALUES (3, 'a', 1)")
    wait_until(lambda: len(pipeline.query("SELECT id FROM orders")) == 2, pipeline, "it goes on")
    assert input_of(pipeline, "orders.orders")["fatal_error"] is None


@pytest.mark.core
def test_the_server_keeps_no_log_of_other_tables(make: Make, database: Database) -> None:
    database.execute(TABLES, "CREATE TABLE other (v text)")
    pipeline = make(PROGRAM, env={"SHOP": database.url}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    kept = "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    wait_until(lambda: bool(database.rows(kept)), pipeline, "the slot is made")
    database.execute("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
    assert database.rows(kept)[0][0] > 4_000_000
    wait_until(lambda: database.rows(kept)[0][0] < 1_100_000, pipeline, "the position moves on")
    lag = input_of(pipeline, "orders.orders")["metrics"]["lag"]
    assert lag is not None
    assert lag["bytes"] is not None
    pipeline.kill()
    pipeline.start()
    database.execute("INSERT INTO orders VALUES (1, 'a', 1)")
    wait_until(lambda: totals(database) == [("a", 1, "1.00")], pipeline, "it goes on")
