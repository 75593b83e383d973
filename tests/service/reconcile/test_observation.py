"""What hosts record is taken in, and hosts that die are noticed."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service import hang_watch
from airflow_pipelines.service.control_plane import ControlPlane
from tests.service import records as given
from tests.service.hosted import host_row, put, wait_stopped
from tests.service.records import transition

pytestmark = pytest.mark.core


def test_transitions_are_consumed_in_order_one_event_each(control_plane: ControlPlane, tmp_path: Path) -> None:
    host_row(control_plane, tmp_path)
    put(control_plane, given.provisioning())
    for status in (RuntimeStatus.INITIALIZING, RuntimeStatus.BOOTSTRAPPING, RuntimeStatus.RUNNING):
        control_plane.registry.record(transition(status))
    assert control_plane.pipeline("p").deployment_status == "Running"
    seen = [event.deployment_runtime_status for event in reversed(control_plane.events("p"))]
    assert seen == [None, "Initializing", "Bootstrapping", "Running"]


def test_a_killed_host_is_noticed_at_once_and_its_log_is_quoted(
    control_plane: ControlPlane, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    host_row(control_plane, tmp_path, pid=process.pid)
    put(control_plane, given.running())
    assert control_plane.pipeline("p").deployment_status == "Running"
    # Nobody has waited for the killed process yet, so it is still in the process table.
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert control_plane.pipeline("p").deployment_desired_status == "Stopped"
    record = wait_stopped(control_plane, 2.0)
    assert record.deployment_error is not None
    assert record.deployment_error["error_code"] == "RuntimeError.HostLost"
    assert f"its process {process.pid}" in record.deployment_error["message"]
    assert record.deployment_error["message"].endswith("OutOfMemoryError: Java heap space")
    assert "s3cret" not in str(record.deployment_error)


def test_of_a_shared_hosts_log_a_pipeline_sees_nothing(
    control_plane: ControlPlane, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    host_row(control_plane, tmp_path, kind="shared", deployment_id=None, pid=process.pid)
    record = put(control_plane, replace(given.running(), deployer="shared"))
    control_plane.files.note(record, "a word of its own")
    process.kill()
    process.wait(10)
    error = wait_stopped(control_plane).deployment_error
    assert error is not None
    assert "a word of its own" in error["message"]
    assert "OutOfMemoryError" not in str(error)
    assert control_plane.files.log(record).read_text().count("a word of its own") == 1


def test_what_a_host_recorded_before_it_died_counts(
    control_plane: ControlPlane, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    host_row(control_plane, tmp_path, pid=process.pid)
    put(control_plane, given.running())
    error = {"message": "division by zero", "error_code": "RuntimeError.WorkerPanic", "details": {}}
    control_plane.registry.record(transition(RuntimeStatus.STOPPED, error=error))
    process.kill()
    assert wait_stopped(control_plane).deployment_error == error


def test_a_silent_host_on_another_machine_is_lost(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang_watch, "ASK_S", 0.1)
    monkeypatch.setattr(hang_watch, "SILENT_S", 0.2)
    host_row(control_plane, tmp_path, machine="elsewhere", pid=1, heartbeat=time.time() - 60)
    put(control_plane, given.running())
    record = wait_stopped(control_plane)
    assert record.deployment_error is not None
    assert "it sent no heartbeat for" in record.deployment_error["message"]
    # Should it live, it finds out and ends, too.
    assert control_plane.registry.live_hosts() == []


def test_a_host_on_another_machine_that_beats_is_fine(control_plane: ControlPlane, tmp_path: Path) -> None:
    host_row(control_plane, tmp_path, machine="elsewhere", pid=1)
    put(control_plane, given.running())
    assert control_plane.pipeline("p").deployment_status == "Running"


def test_a_host_that_does_not_come_up_in_time(control_plane: ControlPlane, tmp_path: Path) -> None:
    host_row(control_plane, tmp_path, heartbeat=None, url=None)
    record = given.provisioning()
    config = {**record.runtime_config, "provisioning_timeout_secs": 5}
    control_plane.store.create(
        replace(record, deployer="dedicated", runtime_config=config, provisioning_since=datetime.now(UTC) - timedelta(seconds=6))
    )
    # Its process is this one, which must survive the clean-up.
    control_plane.registry.update(given.HOST, pid=None, machine="elsewhere")
    error = wait_stopped(control_plane).deployment_error
    assert error is not None
    assert error["error_code"] == "AutomatonProvisioningTimeout"
    assert "5 s" in error["message"]
