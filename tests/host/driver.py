"""Drives a host over HTTP as the service does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from airflow_pipelines.contract.deployment import Deployment, RuntimeTransition
from airflow_pipelines.program.sources import ProgramSource, SourceFile
from tests.inprocess_host import InProcessHost

PROGRAM = """
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT, name VARCHAR);
CREATE MATERIALIZED VIEW totals AS SELECT name, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY name;
CREATE VIEW large AS SELECT id, v FROM t WHERE v > 10;
"""
MORE = PROGRAM.replace("v > 10", "v > 20") + "CREATE MATERIALIZED VIEW most AS SELECT MAX(v) AS v FROM t;"
ROWS = ({"id": 1, "v": 5, "name": "a"}, {"id": 2, "v": 15, "name": "a"}, {"id": 3, "v": 25, "name": "b"})
TOTALS = [{"name": "a", "total": 20, "n": 2}, {"name": "b", "total": 25, "n": 1}]


class Pipeline:
    """One pipeline on a host: its storage and log stay the same over its incarnations."""

    def __init__(self, host: InProcessHost, folder: Path, program: str = PROGRAM, **runtime_config: Any) -> None:
        self.host = host
        self.folder = folder
        self.program = program
        self.stream_files: tuple[SourceFile, ...] = ()
        self.runtime_config = runtime_config
        self.pipeline_id = uuid4()
        self.deployment_id: UUID | None = None
        self._earlier: list[UUID] = []
        self.http = httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {host.token}"}, timeout=60, trust_env=False)

    @property
    def log(self) -> str:
        return (self.folder / "pipeline.log").read_text()

    def start(self, wait_for: str = "Running", udf_python: str = "", **options: Any) -> RuntimeTransition:
        if self.deployment_id is not None:
            self._earlier.append(self.deployment_id)
        self.deployment_id = uuid4()
        deployment = Deployment(
            deployment_id=self.deployment_id,
            pipeline_id=self.pipeline_id,
            pipeline_name="tested",
            source=ProgramSource(self.program, udf_python, self.stream_files),
            runtime_config=self.runtime_config,
            storage=str(self.folder / "storage"),
            log_path=str(self.folder / "pipeline.log"),
            **options,
        )
        answer = self.http.post("/deployments", json=deployment.model_dump(mode="json"))
        assert answer.status_code == 202, answer.text
        return self.wait_for(wait_for)

    def kill(self) -> None:
        """End the incarnation without a checkpoint."""
        assert self.deployment_id is not None
        self._take_down(self.deployment_id)

    def suspend(self) -> RuntimeTransition:
        assert self.post("suspend").status_code == 202
        last = self.wait_for("Suspended")
        self.kill()
        return last

    def transitions(self) -> list[RuntimeTransition]:
        assert self.deployment_id is not None
        return self.host.registry.transitions(self.deployment_id, 0)

    def statuses(self) -> list[str]:
        return [transition.status.value for transition in self.transitions()]

    def wait_for(self, status: str, timeout_s: float = 60) -> RuntimeTransition:
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.transitions()
            if found and found[-1].status.value == status:
                return found[-1]
            ended = found and found[-1].status.value in ("Stopped", "Suspended")
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{status} was not reached: {[(t.status.value, t.error) for t in found]}\n{self.log}")
            time.sleep(0.02)

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.http.get(f"/deployments/{self.deployment_id}/{path}", params=params)

    def post(self, path: str, content: bytes | str | None = None, **params: Any) -> httpx.Response:
        return self.http.post(f"/deployments/{self.deployment_id}/{path}", params=params, content=content)

    def ingest(self, table: str, *changes: dict[str, Any], force: bool = False) -> str:
        """Push changes in insert_delete form and wait until they are processed; returns the token."""
        token = self.push(table, *changes, force=force)
        self.await_token(token)
        return token

    def push(self, table: str, *changes: dict[str, Any], force: bool = False) -> str:
        """Push changes in insert_delete form; returns the token."""
        body = "\n".join(json.dumps(change) for change in changes)
        answer = self.post(f"ingress/{table}", body, format="json", force=force)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token

    def insert(self, table: str, *rows: dict[str, Any]) -> str:
        return self.ingest(table, *({"insert": row} for row in rows))

    def await_token(self, token: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while (answer := self.get("completion_status", token=token)).json().get("status") != "complete":
            assert answer.status_code == 202, f"{answer.text}\n{self.log}"
            assert time.monotonic() < deadline, "the token did not complete"
            time.sleep(0.02)

    def await_failed(self, token: str, timeout_s: float = 60) -> dict[str, Any]:
        """The error of a token that an output cannot deliver any more."""
        deadline = time.monotonic() + timeout_s
        while (answer := self.get("completion_status", token=token)).status_code == 202:
            assert time.monotonic() < deadline, f"the token neither failed nor completed\n{self.log}"
            time.sleep(0.02)
        error: dict[str, Any] = answer.json()
        assert (answer.status_code, error.get("error_code")) == (410, "OutputFailed"), f"{answer.text}\n{self.log}"
        return error

    def await_complete(self, timeout_s: float = 60) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        while True:
            stats: dict[str, Any] = self.get("stats").json()
            if stats["global_metrics"]["pipeline_complete"]:
                return stats
            assert time.monotonic() < deadline, stats
            time.sleep(0.02)

    def query(self, sql: str) -> list[dict[str, Any]]:
        answer = self.get("query", sql=sql, format="json")
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def checkpoint(self) -> int:
        """Make a checkpoint and wait for it; returns its number."""
        answer = self.post("checkpoint")
        assert answer.status_code == 200, answer.text
        number: int = answer.json()["checkpoint_sequence_number"]
        deadline = time.monotonic() + 60
        while (status := self.get("checkpoint_status").json())["success"] != number:
            assert status["failure"] is None, status
            assert time.monotonic() < deadline, status
            time.sleep(0.02)
        return number

    def stats(self, **params: Any) -> dict[str, Any]:
        answer = self.get("stats", **params)
        assert answer.status_code == 200, answer.text
        stats: dict[str, Any] = answer.json()
        return stats

    @contextmanager
    def listen(self, view: str, body: Any = None, **params: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The chunks of an egress stream, the first of which has been sent already when this begins."""
        with self.http.stream("POST", f"/deployments/{self.deployment_id}/egress/{view}", params=params, json=body) as answer:
            assert answer.status_code == 200, answer.read()
            yield (json.loads(line) for line in answer.iter_lines() if line)

    def close(self) -> None:
        # An incarnation that ended by itself stays with the host until it is taken down.
        for deployment_id in (*self._earlier, *([] if self.deployment_id is None else [self.deployment_id])):
            self._take_down(deployment_id)
        self.http.close()

    def _take_down(self, deployment_id: UUID) -> None:
        assert self.http.delete(f"/deployments/{deployment_id}").status_code == 200


Make = Callable[..., Pipeline]


def totals(pipeline: Pipeline) -> list[dict[str, object]]:
    return pipeline.query("SELECT * FROM totals ORDER BY name")
