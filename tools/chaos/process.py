"""A real host of one pipeline under spark-submit, in a process group of its own, over a storage folder that outlives it."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
from uuid6 import uuid7

from airflow_pipelines.common.database import open_database
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import Base, HostRecord, Registry
from airflow_pipelines.host import submit
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.deployers.base import SubmitRequest
from airflow_pipelines.service.deployers.submit import LocalSubmitter
from airflow_pipelines.service.processes import is_alive
from tools.chaos import host
from tools.chaos.points import VARIABLE, Point

START_S = 180.0
KILL_S = 30.0
FAILURE_S = 60.0
TOKEN = "chaos"  # noqa: S105  the host listens on loopback and lives for seconds


class HostDied(Exception):
    """The error for a host that was killed during a wait for it."""


class HostProcess:
    """The hosts of one pipeline, one after the other, which are started, called and killed here."""

    def __init__(self, folder: Path, runtime_config: dict[str, Any]) -> None:
        self.folder = folder
        self._database = f"sqlite:///{folder / 'store.sqlite'}"
        engine = open_database(self._database)
        Base.metadata.create_all(engine)
        self._registry = Registry(engine)
        self._pipeline_id = uuid4()
        self._deployment_id = uuid4()
        self.runtime_config = runtime_config
        """The configuration of the pipeline from its next start on."""
        self._pid: int | None = None
        self.http = httpx.Client()
        """The client of the pipeline that was started last."""

    @property
    def alive(self) -> bool:
        """True if the host that was started last still runs."""
        return self._pid is not None and is_alive(self._pid)

    def start(self, program: str | ProgramSource, point: Point | None = None, call: int = 1) -> None:
        """Start a host and wait until its pipeline runs.

        :param program: the pipeline's program, or its SQL
        :param point: the point at which the host is killed; None for no kill
        :param call: the number of the call of the point
        :raises HostDied: when the host is killed before that
        """
        self._deployment_id = uuid4()
        record = self._submitted(program)
        environment = {"AIRFLOW_PIPELINES_DATABASE_URL": self._database, "AIRFLOW_PIPELINES_HOME": str(self.folder)}
        if point is not None:
            environment[VARIABLE] = f"{call} {point}"
        request = SubmitRequest(
            host_id=record.host_id,
            kind=record.kind,
            app_name="chaos",
            script=Path(submit.__file__ if point is None else host.__file__),
            arguments=("--host-id", str(record.host_id)),
            master="local[2]",
            conf={"spark.driver.memory": "1g"},
            environment=environment,
            log_path=Path(record.log_path),
        )
        self._pid = LocalSubmitter().submit(request).pid
        self.wait_for("Running")
        known = self._registry.get(record.host_id)
        if known is None or known.url is None:
            raise AssertionError("a host without an address has no running pipeline")
        if known.pid in {None, self._pid}:
            raise AssertionError(f"the host registered process {known.pid}, which is not its own")
        self.http.close()
        self.http = httpx.Client(
            base_url=f"{known.url}/deployments/{self._deployment_id}",
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=120,
            trust_env=False,
        )

    def wait_for(self, status: str) -> None:
        """Wait until the pipeline has a status.

        :raises HostDied: when it is killed before
        """
        deadline = time.monotonic() + START_S
        while True:
            found = self._registry.transitions(self._deployment_id, 0)
            if found and found[-1].error is not None:
                raise AssertionError(f"the pipeline failed: {found[-1].error}")
            if found and found[-1].status.value == status:
                return
            if not self.alive:
                raise HostDied
            if time.monotonic() > deadline:
                raise AssertionError(f"the pipeline was not {status} within {START_S:.0f} s; see {self.folder / 'host.log'}")
            time.sleep(0.05)

    def wait_for_failure(self) -> str:
        """Wait until the pipeline fails.

        :returns: the error
        :raises HostDied: when there is none before the host ends
        """
        deadline = time.monotonic() + FAILURE_S
        while True:
            alive = self.alive
            found = self._registry.transitions(self._deployment_id, 0)
            if found and found[-1].error is not None:
                return str(found[-1].error)
            if not alive:
                raise HostDied
            if time.monotonic() > deadline:
                raise AssertionError(f"the pipeline has not failed within {FAILURE_S:.0f} s; see {self.folder / 'host.log'}")
            time.sleep(0.05)

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request to the host.

        :raises HostDied: when there is no answer
        """
        try:
            return self.http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise HostDied from error

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of an ad-hoc query.

        :raises HostDied: when there is no answer
        """
        answer = self.call("GET", "/query", params={"sql": sql, "format": "json"})
        if answer.status_code != 200:
            raise AssertionError(answer.text)
        return [json.loads(line) for line in answer.text.splitlines()]

    def kill(self) -> None:
        """Kill the JVM and its Python at once, if they still run."""
        if self._pid is None or not self.alive:
            return
        os.killpg(self._pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_S
        while self.alive:
            if time.monotonic() > deadline:
                raise AssertionError(f"process {self._pid} still runs {KILL_S:.0f} s after it was killed")
            time.sleep(0.02)

    def _submitted(self, program: str | ProgramSource) -> HostRecord:
        deployment = Deployment(
            deployment_id=self._deployment_id,
            pipeline_id=self._pipeline_id,
            pipeline_name="chaos",
            source=ProgramSource(program) if isinstance(program, str) else program,
            runtime_config=self.runtime_config,
            storage=str(self.folder / "storage"),
            log_path=str(self.folder / "pipeline.log"),
            bootstrap_policy="allow",
        )
        record = HostRecord(
            host_id=UUID(int=uuid7().int), kind="dedicated", deployment_id=self._deployment_id,
            deployment=deployment.model_dump(mode="json"), url=None, token=TOKEN, pid=None, machine=None,
            log_path=str(self.folder / "host.log"), submitted_at=datetime.now(UTC), heartbeat=None, ended_at=None,
        )  # fmt: skip
        self._registry.submit(record)
        return record
