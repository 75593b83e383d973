"""A real host under spark-submit, killed between two steps and inside a checkpoint: nothing is lost or counted twice."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tools.chaos.process import HostProcess

pytestmark = pytest.mark.integration

LOADED = 60_000


class KillableHost:
    """A dedicated host, the output of its pipeline, and what both must hold."""

    def __init__(self, folder: Path) -> None:
        self._output = folder / "out.csv"
        fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": None}
        self.process = HostProcess(folder, {"fault_tolerance": fault_tolerance})

    @property
    def http(self) -> httpx.Client:
        return self.process.http

    def start(self) -> None:
        transport = {"name": "file_output", "config": {"path": str(self._output)}}
        connectors = json.dumps([{"transport": transport, "format": {"name": "csv"}}])
        self.process.start(
            "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v BIGINT);"
            "CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(v) AS total FROM t;"
            f"CREATE VIEW small WITH ('connectors' = '{connectors}') AS SELECT id FROM t WHERE id < {LOADED};"
        )

    def check(self, acknowledged: set[int], attempted: set[int], loaded: bool) -> set[int]:
        """Everything acknowledged is there once, nothing came from nowhere, views and output agree. Returns the small ids."""
        ids = Counter(row["id"] for row in self.process.query(f"SELECT id FROM t WHERE id < {LOADED}"))
        assert set(ids.values()) <= {1}
        assert acknowledged <= set(ids) <= attempted
        count, total = len(ids), sum(ids)
        if loaded:
            count += LOADED
            total += sum(range(LOADED, 2 * LOADED))
        assert self.process.query("SELECT * FROM totals") == [{"n": count, "total": total if count else None}]
        written = Counter(self._output.read_text().split())
        assert written == Counter(f"{number},1" for number in ids)
        return set(ids)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[KillableHost]:
    made = KillableHost(tmp_path)
    yield made
    made.process.kill()


def write_until_killed(host: KillableHost, first: int, acknowledged: set[int], attempted: set[int]) -> threading.Thread:
    """Insert rows one by one; each counts as acknowledged when the host has answered."""

    def write() -> None:
        for number in range(first, first + 10_000):
            attempted.add(number)
            try:
                answer = host.http.get("/query", params={"sql": f"INSERT INTO t VALUES ({number}, {number})"})
            except httpx.HTTPError:
                return
            if answer.status_code != 200:
                return
            acknowledged.add(number)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


@pytest.mark.timeout(600)
def test_kills_lose_nothing_and_repeat_nothing(host: KillableHost) -> None:
    dice = random.Random()
    acknowledged: set[int] = set()
    attempted: set[int] = set()

    host.start()
    writer = write_until_killed(host, 0, acknowledged, attempted)
    while len(acknowledged) < 3:
        time.sleep(0.02)
    # Any moment of a step may be the one of the kill.
    time.sleep(dice.random() * 0.5)
    host.process.kill()
    writer.join(30)

    host.start()
    host.check(acknowledged, attempted, loaded=False)
    body = "".join(f"{number},{number}\n" for number in range(LOADED, 2 * LOADED))
    token = host.http.post("/ingress/t", params={"format": "csv"}, content=body).json()["token"]
    while host.http.get("/completion_status", params={"token": token}).json()["status"] != "complete":
        time.sleep(0.05)
    writer = write_until_killed(host, 20_000, acknowledged, attempted)
    while not acknowledged & set(range(20_000, 30_000)):
        time.sleep(0.02)
    checkpoint = threading.Thread(target=lambda: host.http.post("/checkpoint"), daemon=True)
    checkpoint.start()
    time.sleep(dice.random() * 0.3)
    host.process.kill()
    writer.join(30)

    host.start()
    present = host.check(acknowledged, attempted, loaded=True)
    host.http.get("/query", params={"sql": "INSERT INTO t VALUES (1000, 1)"})
    assert host.process.query("SELECT n FROM totals") == [{"n": len(present | {1000}) + LOADED}]
