"""Deferred waits of a real Airflow, while its triggerer dies, the pipelines' service is away, and people mark tasks."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from airflow_pipelines import Pipeline, PipelineBuilder, PipelineClient
from airflow_pipelines.enums import PipelineStatus
from tests.integration.airflow_live import LiveAirflow, free_ports

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

NAMES = "create table names (name varchar) with ('materialized' = 'true');"


@pytest.fixture
def names(airflow: LiveAirflow) -> Iterator[Pipeline]:
    """A pipeline that runs, whose table has no rows."""
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        pipeline = PipelineBuilder(client, "waits", NAMES).create_or_replace()
        pipeline.start()
        yield pipeline
        pipeline.stop(force=True)


class Service:
    """``airflow-pipelines serve`` on a port of its own, which can be killed and started again."""

    def __init__(self, airflow: LiveAirflow, folder: Path) -> None:
        self._airflow = airflow
        (self.port,) = free_ports(1)
        self._log = folder / "service.log"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve, and die without a word."""
        command = [sys.executable, "-m", "airflow_pipelines.cli", "serve", "--port", str(self.port)]
        environment = self._airflow.environment | {"AIRFLOW_PIPELINES_API_KEY": "team-key"}
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/context", trust_env=False).is_success
        except httpx.TransportError:
            return False


def test_waits_outlive_a_killed_triggerer_and_a_service_that_is_away(airflow: LiveAirflow, names: Pipeline, tmp_path: Path) -> None:
    service = Service(airflow, tmp_path)
    extra = {"conn_type": "airflow_pipelines", "host": "http://127.0.0.1", "port": service.port, "password": "team-key"}
    airflow.send("POST", "/connections", {"connection_id": "team", **extra})
    with service.running():
        airflow.until("the service answers", service.answers, 60)
        here, there, marked = (
            airflow.trigger("waits", {"row": row, "connection": connection})
            for row, connection in (("Ada", "airflow_pipelines_default"), ("Ada", "team"), ("Bob", "airflow_pipelines_default"))
        )
        for run in (here, there, marked):
            run.wait_for_task("wait", "deferred", 120)
        airflow.kill("triggerer")
    # Nobody looks now, and there is nobody to ask.
    airflow.send("PATCH", f"{marked.path}/taskInstances/wait", {"new_state": "failed"})
    assert marked.wait_for_end(60) == "failed"
    assert names.status() is PipelineStatus.RUNNING
    airflow.start("triggerer")
    names.input_json("names", [{"name": "Ada"}, {"name": "Bob"}], wait=True)
    here.wait_for_success(timeout_s=120)
    # The triggerer looks in vain for a while, and the wait goes on.
    assert there.tasks() == {"wait": "deferred"}
    with service.running():
        there.wait_for_success(timeout_s=120)
    assert [run.xcom("wait") for run in (here, there)] == [{"row": {"name": "Ada"}}] * 2
