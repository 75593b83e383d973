"""Real hosts, started with spark-submit: shared and dedicated, killed and stopped."""

from __future__ import annotations

import ipaddress
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
from typer.testing import CliRunner

from airflow_pipelines.cli.commands import cli
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service import processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.lifecycle.requests import StartRequest
from airflow_pipelines.service.records import PipelineRecord

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PROGRAM = "create table t(id bigint not null primary key) with ('materialized' = 'true');"
COLD_S = 150.0
"""Two cores may have to start two Spark applications while other tests run."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A service over a store of its own; its hosts end with the module."""
    control_plane = ControlPlane(Settings.load(tmp_path_factory.mktemp("deployers"), master="local[2]", driver_memory="1g"))
    yield control_plane
    for host in control_plane.registry.live_hosts():
        control_plane.hosts.end(host)
    control_plane.close()


def until(
    control_plane: ControlPlane, name: str, condition: Callable[[PipelineRecord], bool], limit_s: float = COLD_S
) -> PipelineRecord:
    deadline = time.monotonic() + limit_s
    while not condition(record := control_plane.pipeline(name)):
        assert time.monotonic() < deadline, f"{record.program_status} {record.deployment_status} {record.deployment_error}"
        time.sleep(0.05)
    return record


def start(control_plane: ControlPlane, name: str, deployer: str, **resources: Any) -> PipelineRecord:
    control_plane.create({"name": name, "program_code": PROGRAM, "runtime_config": {"resources": resources}})
    control_plane.start(name, StartRequest(deployer=deployer))
    return until(control_plane, name, lambda record: record.deployment_status == "Running" or record.deployment_error is not None)


def open_to_others(home: Path) -> list[str]:
    """What others may use of the home, though the host's JVM made it."""
    found = []
    for path in (home, *home.rglob("*")):
        with suppress(FileNotFoundError):  # there for a moment only
            if path.stat().st_mode & 0o077:
                found.append(str(path))
    return found


def listens_on(control_plane: ControlPlane, host_id: UUID | None) -> set[str]:
    """The addresses on which the processes of a host listen; Spark's driver takes calls of everybody who reaches it."""
    host = None if host_id is None else control_plane.registry.get(host_id)
    assert host is not None
    assert host.pid is not None
    jvm = psutil.Process(os.getpgid(host.pid))
    connections = [each for process in (jvm, *jvm.children(recursive=True)) for each in process.net_connections("inet")]
    return {each.laddr.ip.removeprefix("::ffff:") for each in connections if each.status == psutil.CONN_LISTEN}


def kill_jvm_and_see(control_plane: ControlPlane, name: str) -> None:
    """Kill the host's JVM, and find the pipeline stopped with the reason and the host's last words at once."""
    record = control_plane.pipeline(name)
    assert record.host_id is not None
    host = control_plane.registry.get(record.host_id)
    assert host is not None
    assert host.pid is not None
    os.kill(os.getpgid(host.pid), signal.SIGKILL)
    # A start that meets the dying host goes on with the next one.
    control_plane.start("second", StartRequest(deployer="shared"))
    record = until(control_plane, name, lambda record: record.deployment_status == "Stopped", 10)
    assert record.deployment_error is not None
    assert record.deployment_error["error_code"] == "RuntimeError.HostLost"
    assert "its JVM is gone" in record.deployment_error["message"]
    # Of the log of a host that others use a pipeline sees nothing.
    assert "now Running" in record.deployment_error["message"]
    assert "serving at http" not in str(record.deployment_error)
    assert host.token not in str(record.deployment_error)
    assert host.token not in Path(host.log_path).read_text()


def test_shared_host_from_cold_to_the_end(control_plane: ControlPlane) -> None:
    record = start(control_plane, "shared", "shared")
    assert record.deployment_error is None
    first = record.host_id
    assert [host.host_id for host in control_plane.registry.live_hosts("shared")] == [first]

    # A second pipeline finds it warm.
    began = time.monotonic()
    assert start(control_plane, "second", "shared").host_id == first
    assert time.monotonic() - began < 10
    control_plane.stop("second", force=False)
    record = until(control_plane, "second", lambda record: record.deployment_status == "Stopped", 30)
    assert record.deployment_error is None
    assert len((record.storage_status_details or {})["checkpoints"]) == 1

    assert open_to_others(control_plane.settings.home) == []
    assert {ipaddress.ip_address(address).is_loopback for address in listens_on(control_plane, first)} == {True}

    kill_jvm_and_see(control_plane, "shared")
    record = until(
        control_plane, "second", lambda record: record.deployment_status == "Running" or record.deployment_error is not None
    )
    assert record.deployment_error is None
    assert record.host_id != first
    assert [host.host_id for host in control_plane.registry.live_hosts("shared")] == [record.host_id]


def test_dedicated_host_has_its_resources_and_dies_alone(control_plane: ControlPlane) -> None:
    record = start(control_plane, "own", "dedicated", cpu_cores_max=1, memory_mb_max=900)
    assert record.deployment_error is None
    assert record.program_status is CompilationStatus.SUCCESS
    assert record.host_id is not None
    host = control_plane.registry.get(record.host_id)
    assert host is not None
    assert host.kind == "dedicated"
    assert host.pid is not None
    jvm = processes._command_line(os.getpgid(host.pid))
    assert "local[1]" in jvm
    assert "spark.driver.memory=900m" in jvm
    assert host.token not in jvm
    assert "store.sqlite" not in jvm

    control_plane.stop("own", force=True)
    group = os.getpgid(host.pid)
    assert until(control_plane, "own", lambda record: record.deployment_status == "Stopped", 15).deployment_error is None
    deadline = time.monotonic() + 10
    while processes.is_alive(group) or processes.is_alive(host.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    # What compiled it is the shared host, which the command line ends.
    runner = CliRunner()
    home = ["--home", str(control_plane.settings.home)]
    assert "shared" in runner.invoke(cli, ["hosts", "list", *home]).output
    stopped = runner.invoke(cli, ["hosts", "stop", *home])
    assert stopped.exit_code == 0, stopped.output
    assert control_plane.registry.live_hosts() == []
