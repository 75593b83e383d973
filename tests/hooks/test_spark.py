from __future__ import annotations

import json
import os
import signal
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from airflow.sdk import Connection

from airflow_pipelines.hooks.spark import HostSubmitHook, SparkConnectionSubmitter, dedicated_hosts
from airflow_pipelines.service.deployers.base import SubmitError, SubmitRequest

pytestmark = pytest.mark.core


def connection(host: str, conn_id: str = "spark", **extra: Any) -> Connection:
    return Connection(conn_id=conn_id, conn_type="spark", host=host, extra=json.dumps(extra))


@pytest.fixture
def request_(tmp_path: Path) -> SubmitRequest:
    return SubmitRequest(
        host_id=UUID(int=7),
        kind="dedicated",
        app_name="airflow-pipelines p",
        script=tmp_path / "host.py",
        arguments=("--host-id", "7"),
        master=None,
        conf={"spark.driver.memory": "1g"},
        environment={"AIRFLOW_PIPELINES_DATABASE_URL": "postgresql://u:secret-word@db/x"},
        log_path=tmp_path / "logs" / "host.log",
    )


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spark-submit that tells what it was called with; the only one on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "spark3-submit"
    told = (
        'echo "arguments: $@"; echo "url: $AIRFLOW_PIPELINES_DATABASE_URL"; echo "session: $(ps -o sid= -p $$) pid: $$"; sleep 30'
    )
    program.write_text(f"#!/bin/sh\n{told}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return program


def text_of(path: Path, lines: int) -> str:
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        text = path.read_text() if path.exists() else ""
        if text.count("\n") >= lines:
            return text
        time.sleep(0.02)
    raise AssertionError(f"not {lines} lines in {path}: {text!r}")


@pytest.mark.processes
def test_the_connections_master_queue_and_binary_are_honoured(request_: SubmitRequest, spark_submit: Path) -> None:
    spark = connection("spark://master:7077", **{"queue": "q1", "deploy-mode": "client", "spark-binary": "spark3-submit"})
    process = SparkConnectionSubmitter(spark).submit(request_)
    assert process.pid is not None
    try:
        text = text_of(request_.log_path, 3)
        assert "--master spark://master:7077" in text
        assert "--conf spark.driver.memory=1g" in text
        assert "--queue q1 --deploy-mode client" in text
        assert "--name airflow-pipelines p" in text
        assert text.splitlines()[0].endswith(f"{request_.script} --host-id 7")
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.processes
def test_the_host_has_a_session_of_its_own_and_its_secrets_are_not_on_its_command_line(
    request_: SubmitRequest, spark_submit: Path
) -> None:
    spark = connection("local[1]", **{"spark-binary": "spark3-submit"})
    process = SparkConnectionSubmitter(spark).submit(request_)
    assert process.pid is not None
    try:
        arguments, url, session = text_of(request_.log_path, 3).splitlines()
        assert "secret-word" not in arguments
        assert "secret-word" in url
        assert session.split() == ["session:", str(process.pid), "pid:", str(process.pid)]
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_this_environments_spark_submit_comes_first(spark_submit: Path) -> None:
    import sys

    command = HostSubmitHook(connection("local[2]")).command("x.py")
    assert Path(command[0]).parent == Path(sys.executable).parent
    assert command[1:3] == ["--master", "local[2]"]


def test_a_binary_that_is_not_there_is_named(request_: SubmitRequest) -> None:
    spark = connection("local[1]", **{"spark-binary": "spark2-submit"})
    with pytest.raises(SubmitError, match="'spark' wants 'spark2-submit', which is not on the path"):
        SparkConnectionSubmitter(spark).submit(request_)


def test_a_cluster_that_runs_no_python_drivers_is_refused(request_: SubmitRequest) -> None:
    spark = connection("spark://master:7077", **{"deploy-mode": "cluster"})
    with pytest.raises(SubmitError, match="runs no Python driver in cluster mode: use deploy mode client"):
        SparkConnectionSubmitter(spark).submit(request_)


def test_a_yarn_cluster_gets_the_environment_in_a_private_file(request_: SubmitRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[Any] = []

    def submit(hook: HostSubmitHook, application: str = "") -> None:
        path = Path(hook._properties_file)
        command = hook._build_spark_submit_command(application)
        submitted.append((command, path.read_text(), stat.S_IMODE(path.stat().st_mode), hook._yarn_track_via_rm_api))

    monkeypatch.setattr(HostSubmitHook, "submit", submit)
    process = SparkConnectionSubmitter(connection("yarn", **{"deploy-mode": "cluster"})).submit(request_)
    ((command, text, mode, tracked),) = submitted
    assert text == "spark.yarn.appMasterEnv.AIRFLOW_PIPELINES_DATABASE_URL=postgresql://u:secret-word@db/x\n"
    assert mode == 0o600
    assert tracked
    # Without this spark-submit would stay for the life of the driver.
    assert "spark.yarn.submit.waitAppCompletion=false" in command
    assert "secret-word" not in " ".join(command)
    assert process.pid is None


def test_the_same_connection_is_the_same_way_to_submit() -> None:
    one = dedicated_hosts(connection("local[1]", conn_id="one"))
    assert one.name == "dedicated:one"
    assert dedicated_hosts(connection("local[1]", conn_id="one")) is one
    assert dedicated_hosts(connection("local[2]", conn_id="one")) is not one


@pytest.mark.processes
def test_a_connection_says_what_all_its_pipelines_get_and_a_pipeline_what_it_gets(
    request_: SubmitRequest, spark_submit: Path
) -> None:
    extras = {
        "conf": {"spark.executor.cores": 2, "spark.dynamicAllocation.enabled": True},
        "packages": ["g:a:1", "g:b:2"],
        "image": "spark:4.2",
        "driver_memory": "3g",
        "executor_memory": "5g",
        "cores_max": 12,
        "spark-binary": "spark3-submit",
    }
    request = replace(
        request_,
        conf={"spark.executor.memory": "7g"},
        defaults={"spark.driver.memory": "1g", "spark.cores.max": "8"},
    )
    process = SparkConnectionSubmitter(connection("local[2]", **extras)).submit(request)
    try:
        told = text_of(request.log_path, 3)
    finally:
        assert process.pid is not None
        os.killpg(process.pid, signal.SIGKILL)
    for expected in (
        "spark.executor.cores=2",
        "spark.dynamicAllocation.enabled=true",
        "spark.jars.packages=g:a:1,g:b:2",
        "spark.kubernetes.container.image=spark:4.2",
        "spark.driver.memory=3g",
        "spark.executor.memory=7g",
        "spark.cores.max=12",
        "--name airflow-pipelines p",
    ):
        assert expected in told


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        ({"conf": ["spark.a"]}, "its extra 'conf' has to be an object of Spark properties"),
        ({"conf": {"executor.memory": "1g"}}, "its extra 'conf' has to be an object of Spark properties"),
        ({"image": {"name": "x"}}, "its extras have no text for spark.kubernetes.container.image"),
    ],
)
def test_extras_that_mean_nothing_are_refused(request_: SubmitRequest, extras: dict[str, Any], message: str) -> None:
    with pytest.raises(SubmitError, match=message):
        SparkConnectionSubmitter(connection("local[2]", **extras)).submit(request_)
