"""From a table of PostgreSQL through an aggregate to another table, while the host and the server are killed: at the end they "
"agree."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.postgresql import Database
from tools.chaos.process import HostProcess

pytestmark = pytest.mark.integration

SOURCE = "SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer ORDER BY customer"
TARGET = "SELECT customer, n, total FROM totals ORDER BY customer"


class Writer:
    """Changes the source in transactions of some rows, from a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dice = random.Random(7)
        self._ended = threading.Event()
        self.transactions = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with psycopg.connect(self._database.url) as connection:
                    while not self._ended.wait(0.005):
                        self._change(connection)
                        connection.commit()
                        self.transactions += 1
            except psycopg.OperationalError:
                # The server is down.
                self._ended.wait(0.1)

    def _change(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        for _ in range(self._dice.randint(1, 20)):
            number, customer, amount = self._dice.randrange(500), f"c{self._dice.randrange(20)}", self._dice.randrange(10_000) / 100
            match self._dice.randrange(4):
                case 0:
                    connection.execute("DELETE FROM orders WHERE id = %s", [number])
                case 1:
                    connection.execute("UPDATE orders SET amount = %s WHERE id = %s", [amount, number])
                case _:
                    insert = "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET customer = EXCLUDED.customer"
                    connection.execute(insert, [number, customer, amount])


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    made = HostProcess(tmp_path, {"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 1}})
    yield made
    made.kill()


def program(url: str) -> str:
    source = {"transport": {"name": "postgres_cdc_input", "config": {"uri": url, "publication": "p", "source_table": "orders"}}}
    target = {"index": "by_customer", "transport": {"name": "postgres_output", "config": {"uri": url, "table": "totals"}}}
    return f"""
        CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR, amount DECIMAL(10, 2))
            WITH ('connectors' = '{json.dumps([{"name": "source", **source}])}');
        CREATE MATERIALIZED VIEW totals WITH ('connectors' = '{json.dumps([{"name": "target", **target}])}')
            AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer;
        CREATE INDEX by_customer ON totals(customer);
    """


def wait_until_equal(database: Database, host: HostProcess) -> None:
    deadline = time.monotonic() + 90
    while (wanted := database.rows(SOURCE)) != (found := database.rows(TARGET)):
        if time.monotonic() > deadline:
            stats = host.http.get("/stats", params={"include_connector_errors": True}).json()
            raise AssertionError(f"{found}\n{wanted}\n{json.dumps(stats['inputs'])}\n{json.dumps(stats['outputs'])}")
        time.sleep(0.2)


def wait_for_work(writer: Writer, database: Database) -> None:
    """Let the pipeline deliver something, and the writer go on meanwhile."""
    before, deadline = (writer.transactions, database.rows(TARGET)), time.monotonic() + 60
    while writer.transactions < before[0] + 30 or database.rows(TARGET) == before[1]:
        assert time.monotonic() < deadline, "nothing is delivered"
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_the_target_equals_the_view_after_kills_and_stops(host: HostProcess, database: Database) -> None:
    database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2))",
        "INSERT INTO orders SELECT i, 'c' || i % 20, i FROM generate_series(1, 300) AS i",
        "CREATE PUBLICATION p FOR TABLE orders",
        "CREATE TABLE totals (customer text PRIMARY KEY, n bigint, total numeric)",
    )
    dice = random.Random()
    writer = Writer(database)
    host.start(program(database.url))
    wait_until_equal(database, host)
    writer.start()
    try:
        wait_for_work(writer, database)
        time.sleep(dice.random())
        host.kill()
        host.start(program(database.url))
        wait_for_work(writer, database)
        # The server crashes under the pipeline, which shows it and goes on by itself.
        database.server.stop("immediate")
        try:
            wait_for_health(host, "Unhealthy")
        finally:
            database.server.start()
        wait_for_work(writer, database)
        wait_for_health(host, "Healthy")
        time.sleep(dice.random())
        host.kill()
        host.start(program(database.url))
        wait_for_work(writer, database)
    finally:
        writer.stop()
    wait_until_equal(database, host)
    [source] = host.http.get("/stats").json()["inputs"]
    assert source["fatal_error"] is None
    assert source["metrics"]["num_parse_errors"] == 0
    # Every change but those of the first rows came by the log, of which the server keeps no more than is needed.
    assert host.http.post("/checkpoint").status_code == 200
    deadline = time.monotonic() + 60
    kept = "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()"
    while (size := database.rows(kept)[0][0]) > 100_000:
        assert time.monotonic() < deadline, size
        time.sleep(0.2)


def wait_for_health(host: HostProcess, status: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        # An output with nothing to write does not notice that its target is gone.
        [source] = host.http.get("/stats").json()["inputs"]
        found = source["health"]["status"]
        if found == status:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
