"""A file with DAGs costs nothing but its import: nothing is asked, made or started."""

from __future__ import annotations

import socket
import subprocess
from typing import Any

import croniter  # noqa: F401  Airflow imports it for the first DAG, and it starts a program then
import pytest
from airflow.sdk import DAG, BaseHook

from airflow_pipelines import operators, sensors
from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient
from tests.operators.test_operators import OPERATORS
from tests.sensors.test_base import SENSORS


def test_making_all_operators_and_sensors_asks_and_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("this must wait until the task runs")

    for owner, name in (
        (BaseHook, "get_connection"),
        (PipelineClient, "__init__"),
        (AsyncPipelineClient, "__init__"),
        (socket.socket, "connect"),
        (subprocess.Popen, "__init__"),
    ):
        monkeypatch.setattr(owner, name, refused)
    with DAG("parsed", schedule=None) as dag:
        for number, (kind, given) in enumerate([*OPERATORS, *SENSORS]):
            kind(task_id=f"t{number}", pipeline_name="p", pipeline_conn_id="there is none", **given)
    assert {*operators.__all__, *sensors.__all__} <= {type(task).__name__ for task in dag.tasks}
