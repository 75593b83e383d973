from __future__ import annotations

import threading
from itertools import count
from typing import Any

import pytest

from airflow_pipelines.datastream import SourceFunction, StreamExecutionEnvironment
from airflow_pipelines.datastream.common import JobStatus, RestartStrategies
from airflow_pipelines.datastream.common.job_client import JobClient
from airflow_pipelines.datastream.functions import SourceContext


def _wait_for(client: JobClient, status: JobStatus) -> None:
    pause = threading.Event()
    for _ in range(500):
        if client.get_job_status().result() is status:
            return
        pause.wait(0.01)
    pytest.fail(f"the program is {client.get_job_status().result()}, not {status}")


class _Endless(SourceFunction):
    def run(self, ctx: SourceContext) -> Any:
        yield from count()


def test_a_program_that_waits_to_be_started_again_can_be_cancelled() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 600_000))
    environment.from_collection([0]).map(lambda number: 1 // number).print()
    client = environment.execute_async()
    _wait_for(client, JobStatus.RESTARTING)
    client.cancel().result(timeout=10)
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_a_program_that_is_stopped_with_a_savepoint_has_finished(tmp_path: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment().set_default_savepoint_directory(str(tmp_path))
    environment.add_source(_Endless()).filter(lambda number: number < 0).print()
    client = environment.execute_async()
    _wait_for(client, JobStatus.RUNNING)
    assert client.stop_with_savepoint(False).result(timeout=10).startswith(str(tmp_path))
    client.get_job_execution_result().result(timeout=10)
    assert client.get_job_status().result() is JobStatus.FINISHED
