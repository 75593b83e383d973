"""From a Delta table through an aggregate to other Delta tables, while the host is killed: at the end they agree."""

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
from deltalake.exceptions import CommitFailedError

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
    source = {"transport": {"name": "delta_table_input", "config": {"uri": str(folder / "orders"), "mode": "snapshot_and_follow"}}}

    def target(name: str, index: str | None, **options: Any) -> dict[str, Any]:
        named = {"name": name} if index is None else {"name": name, "index": index}
        config = {"uri": str(folder / name), **options}
        return {**named, "transport": {"name": "delta_table_output", "config": config}}

    targets = [
        target("merged", "by_customer", write="merged", mode="truncate"),
        target("rows", None, write="merged", mode="error_if_exists"),
        target("log", None),
    ]
    return f"""
        CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DECIMAL(10, 2))
            WITH ('connectors' = '{json.dumps([{"name": "source", **source}])}');
        CREATE MATERIALIZED VIEW totals WITH ('connectors' = '{json.dumps(targets)}')
            AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer;
        CREATE INDEX by_customer ON totals(customer);
    """


def expected(folder: Path) -> Counter[tuple[Any, ...]]:
    """The view, computed anew from the source."""
    found: dict[str, list[Any]] = {}
    for row in DeltaTable(str(folder / "orders")).to_pyarrow_table().to_pylist():
        sums = found.setdefault(row["customer"], [0, Decimal(0)])
        sums[0] += 1
        sums[1] += row["amount"]
    return Counter((customer, *sums) for customer, sums in found.items())


def contents(folder: Path, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a target."""
    try:
        rows = DeltaTable(str(folder / name)).to_pyarrow_table().to_pylist()
    except Exception as error:  # noqa: BLE001  it may not be there yet
        return Counter({(str(error),): 1})
    if name != "log":
        return Counter(tuple(row.values()) for row in rows)
    found: Counter[tuple[Any, ...]] = Counter()
    for *row, op, _ in sorted((tuple(row.values()) for row in rows), key=lambda each: each[-1]):
        found[tuple(row)] += 1 if op == "i" else -1
        assert found[tuple(row)] in {0, 1}, "a change is in the log twice, or in another order"
    return +found


def wait_until_equal(folder: Path, host: HostProcess) -> None:
    deadline = time.monotonic() + WAIT_S
    wanted = expected(folder)
    for name in ("merged", "rows", "log"):
        while (found := contents(folder, name)) != wanted:
            if time.monotonic() > deadline:
                stats = host.http.get("/stats", params={"include_connector_errors": True}).json()
                raise AssertionError(f"{name}\n{found}\n{wanted}\n{json.dumps(stats['inputs'])}\n{json.dumps(stats['outputs'])}")
            time.sleep(0.2)


def wait_for_work(writer: Writer, folder: Path) -> None:
    """Let the pipeline deliver something, and the writer go on meanwhile."""
    before, commits, deadline = contents(folder, "merged"), writer.commits, time.monotonic() + WAIT_S
    # To read a table takes much longer than to look at a number.
    while writer.commits < commits + 15 or contents(folder, "merged") == before:
        assert time.monotonic() < deadline, "nothing is delivered"
        time.sleep(0.2)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", ["exactly_once", "at_least_once"])
def test_the_targets_equal_the_view_after_kills(tmp_path: Path, model: str) -> None:
    host = HostProcess(tmp_path, {"fault_tolerance": {"model": model, "checkpoint_interval_secs": 2}})
    writer = Writer(tmp_path / "orders")
    dice = random.Random()
    host.start(program(tmp_path))
    try:
        wait_until_equal(tmp_path, host)
        writer.start()
        for _ in range(3):
            wait_for_work(writer, tmp_path)
            time.sleep(2 * dice.random())
            host.kill()
            host.start(program(tmp_path))
        wait_for_work(writer, tmp_path)
        writer.stop()
        wait_until_equal(tmp_path, host)
        stats = host.http.get("/stats").json()
        assert [each["fatal_error"] for each in (*stats["inputs"], *stats["outputs"])] == [None] * 4
        assert stats["inputs"][0]["metrics"]["num_parse_errors"] == 0
    finally:
        host.kill()
    if model == "exactly_once":
        steps = [entry["airflow_pipelines.step"] for entry in DeltaTable(str(tmp_path / "log")).history() if _has_rows(entry)]
        assert len(steps) == len(set(steps)), "a step was written twice"


def _has_rows(entry: dict[str, Any]) -> bool:
    return bool(entry.get("operationMetrics", {}).get("num_added_rows"))
