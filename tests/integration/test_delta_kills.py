"""From a Delta table to a log of a view's changes in another one, while the host is killed. No journal has what was delivered after
the newest checkpoint, so that the log is brought back before it comes again, maybe in other steps."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from tools.chaos.process import HostProcess

pytestmark = pytest.mark.integration

ORDERS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(10, 2))])
WAIT_S = 120.0


class Writer:
    """Changes the source, a commit at a time, from a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._dice = random.Random(11)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._number = 0
        self.commits = 0
        self._append(200)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _append(self, rows: int) -> None:
        numbers = range(self._number, self._number + rows)
        self._number += rows
        columns = [
            list(numbers),
            [f"c{self._dice.randrange(12)}" for _ in numbers],
            [Decimal(self._dice.randrange(10_000)) / 100 for _ in numbers],
        ]
        write_deltalake(
            self._path, pa.table([pa.array(c, f.type) for c, f in zip(columns, ORDERS, strict=True)], ORDERS), mode="append"
        )

    def _run(self) -> None:
        while not self._ended.wait(0.15):
            with suppress(CommitFailedError):
                self._change(self._dice.randrange(self._number))
                self.commits += 1

    def _change(self, number: int) -> None:
        match self._dice.randrange(6):
            case 0:
                DeltaTable(self._path).delete(f"id = {number}")
            case 1:
                DeltaTable(self._path).update(updates={"customer": "'c1'"}, predicate=f"id = {number}")
            case 2 if self.commits % 10 == 0:
                DeltaTable(self._path).optimize.compact()
            case _:
                self._append(self._dice.randint(1, 20))


def program(folder: Path) -> str:
    source = {"name": "delta_table_input", "config": {"uri": str(folder / "orders"), "mode": "snapshot_and_follow"}}
    target = {"name": "delta_table_output", "config": {"uri": str(folder / "log")}}
    return f"""
        CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DECIMAL(10, 2))
            WITH ('connectors' = '{json.dumps([{"name": "source", "transport": source}])}');
        CREATE MATERIALIZED VIEW totals WITH ('connectors' = '{json.dumps([{"name": "log", "transport": target}])}')
            AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer;
    """


def expected(folder: Path) -> Counter[tuple[Any, ...]]:
    """The view, computed anew from the source."""
    found: dict[str, list[Any]] = {}
    for row in DeltaTable(str(folder / "orders")).to_pyarrow_table().to_pylist():
        sums = found.setdefault(row["customer"], [0, Decimal(0)])
        sums[0] += 1
        sums[1] += row["amount"]
    return Counter((customer, *sums) for customer, sums in found.items())


def contents(folder: Path) -> Counter[tuple[Any, ...]]:
    """What the log adds up to."""
    try:
        rows = DeltaTable(str(folder / "log")).to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return Counter()
    found: Counter[tuple[Any, ...]] = Counter()
    for *row, op, _ in sorted((tuple(row.values()) for row in rows), key=lambda each: each[-1]):
        found[tuple(row)] += 1 if op == "i" else -1
        assert found[tuple(row)] in {0, 1}, "a change is in the log twice, or in another order"
    return +found


def wait_until_equal(folder: Path, host: HostProcess) -> None:
    deadline = time.monotonic() + WAIT_S
    wanted = expected(folder)
    while (found := contents(folder)) != wanted:
        if time.monotonic() > deadline:
            stats = host.http.get("/stats", params={"include_connector_errors": True}).json()
            raise AssertionError(f"{found}\n{wanted}\n{json.dumps(stats['inputs'])}\n{json.dumps(stats['outputs'])}")
        time.sleep(0.2)


def wait_for_work(writer: Writer, folder: Path) -> None:
    """Let the pipeline deliver something, and the writer go on meanwhile."""
    before, commits, deadline = contents(folder), writer.commits, time.monotonic() + WAIT_S
    # To read a table takes much longer than to look at a number.
    while writer.commits < commits + 15 or contents(folder) == before:
        assert time.monotonic() < deadline, "nothing is delivered"
        time.sleep(0.2)


@pytest.mark.timeout(600)
def test_the_log_of_changes_adds_up_to_the_view_after_kills(tmp_path: Path) -> None:
    host = HostProcess(tmp_path, {"fault_tolerance": {"model": "at_least_once", "checkpoint_interval_secs": 2}})
    writer = Writer(tmp_path / "orders")
    dice = random.Random()
    host.start(program(tmp_path))
    try:
        wait_until_equal(tmp_path, host)
        assert host.http.post("/checkpoint").status_code == 200
        writer.start()
        for _ in range(2):
            wait_for_work(writer, tmp_path)
            time.sleep(2 * dice.random())
            host.kill()
            host.start(program(tmp_path))
        wait_for_work(writer, tmp_path)
        writer.stop()
        wait_until_equal(tmp_path, host)
        stats = host.http.get("/stats").json()
        assert [each["fatal_error"] for each in (*stats["inputs"], *stats["outputs"])] == [None] * 2
        assert stats["inputs"][0]["metrics"]["num_parse_errors"] == 0
    finally:
        host.kill()
