"""A real host under spark-submit, killed between two steps and inside a checkpoint: nothing is lost or counted twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from uuid6 import uuid7

from airflow_pipelines.database import open_database
from airflow_pipelines.host import submit
from airflow_pipelines.host.deployment import Deployment
from airflow_pipelines.host.registry import Base, HostRecord, Registry
from airflow_pipelines.service.deployers.submit import PACKAGE_ROOT, spark_home

pytestmark = pytest.mark.integration

START_S = 180
LOADED = 60_000


class KillableHost:
    """A dedicated host in a process group of its own, over a storage folder that outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = f"sqlite:///{folder / 'store.sqlite'}"
        engine = open_database(self.database)
        Base.metadata.create_all(engine)
        self.registry = Registry(engine)
        self.output = folder / "out.csv"
        self.pipeline_id = uuid4()
        self.process: subprocess.Popen[bytes] | None = None
        self.deployment_id = uuid4()
        self.http = httpx.Client()

    @property
    def program(self) -> str:
        transport = {"name": "file_output", "config": {"path": str(self.output)}}
        connectors = json.dumps([{"transport": transport, "format": {"name": "csv"}}])
        return (
            "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v BIGINT);"
            "CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS n, SUM(v) AS total FROM t;"
            f"CREATE VIEW small WITH ('connectors' = '{connectors}') AS SELECT id FROM t WHERE id < {LOADED};"
        )

    def start(self) -> None:
        self.deployment_id = uuid4()
        deployment = Deployment(
            deployment_id=self.deployment_id,
            pipeline_id=self.pipeline_id,
            pipeline_name="killed",
            program_code=self.program,
            runtime_config={"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": None}},
            storage=str(self.folder / "storage"),
            log_path=str(self.folder / "pipeline.log"),
        )
        host_id = UUID(int=uuid7().int)
        log_path = self.folder / "host.log"
        self.registry.submit(
            HostRecord(
                host_id=host_id,
                kind="dedicated",
                deployment_id=self.deployment_id,
                deployment=deployment.model_dump(mode="json"),
                url=None,
                token="kill-test-token",
                pid=None,
                machine=None,
                log_path=str(log_path),
                submitted_at=datetime.now(UTC),
                heartbeat=None,
                ended_at=None,
            )
        )
        home = spark_home()
        environment = {
            **os.environ,
            "AIRFLOW_PIPELINES_DATABASE_URL": self.database,
            "AIRFLOW_PIPELINES_HOME": str(self.folder),
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": str(PACKAGE_ROOT),
        }
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--conf", "spark.driver.memory=1g"]
        command += [str(submit.__file__), "--host-id", str(host_id)]
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + START_S
        while not self._running():
            assert self.process.poll() is None, log_path.read_text()[-5000:]
            assert time.monotonic() < deadline, log_path.read_text()[-5000:]
            time.sleep(0.1)
        record = self.registry.get(host_id)
        assert record is not None
        assert record.pid != self.process.pid
        self.http = httpx.Client(
            base_url=f"{record.url}/deployments/{self.deployment_id}",
            headers={"Authorization": "Bearer kill-test-token"},
            timeout=60,
            trust_env=False,
        )

    def _running(self) -> bool:
        found = self.registry.transitions(self.deployment_id, 0)
        assert not found or found[-1].error is None, found[-1].error
        return bool(found) and found[-1].status.value == "Running"

    def kill(self) -> None:
        """End the JVM and its Python at one instant."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def query(self, sql: str) -> list[dict[str, Any]]:
        answer = self.http.get("/query", params={"sql": sql, "format": "json"})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def check(self, acknowledged: set[int], attempted: set[int], loaded: bool) -> set[int]:
        """Everything acknowledged is there once, nothing came from nowhere, views and output agree. Returns the small ids."""
        ids = Counter(row["id"] for row in self.query(f"SELECT id FROM t WHERE id < {LOADED}"))
        assert set(ids.values()) <= {1}
        assert acknowledged <= set(ids) <= attempted
        count, total = len(ids), sum(ids)
        if loaded:
            count += LOADED
            total += sum(range(LOADED, 2 * LOADED))
        assert self.query("SELECT * FROM totals") == [{"n": count, "total": total if count else None}]
        written = Counter(self.output.read_text().split())
        assert written == Counter(f"{number},1" for number in ids)
        return set(ids)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[KillableHost]:
    made = KillableHost(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


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
    time.sleep(dice.random() * 0.5)
    host.kill()
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
    host.kill()
    writer.join(30)

    host.start()
    present = host.check(acknowledged, attempted, loaded=True)
    host.http.get("/query", params={"sql": "INSERT INTO t VALUES (1000, 1)"})
    assert host.query("SELECT n FROM totals") == [{"n": len(present | {1000}) + LOADED}]
