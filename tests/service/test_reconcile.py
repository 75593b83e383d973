"""Reconciling: what hosts record, hosts that die, and work taken up after a kill. Hosts here are rows and plain processes."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from uuid6 import uuid7

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import ProgramStatus, RuntimeStatus
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service import hang_watch, processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostTimeout, HostUnreachable
from airflow_pipelines.service.lifecycle.requests import StartRequest
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.settings import Settings
from tests.service import records as given
from tests.service.records import transition
from tests.service.waiting import until


@pytest.fixture
def control_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    # What a test patches stays patched until the background work has ended; else that could start a real host.
    control_plane = ControlPlane(Settings.load(tmp_path, heartbeat_timeout_s=1.0))
    yield control_plane
    control_plane.close()


@pytest.fixture
def process(processes: None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a host on this machine."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def host_row(control_plane: ControlPlane, tmp_path: Path, **fields: object) -> HostRecord:
    log = tmp_path / "host.log"
    log.write_text("first line\nOutOfMemoryError: Java heap space\n")
    values: dict[str, object] = {
        "host_id": given.HOST, "kind": "dedicated", "deployment_id": given.DEPLOYMENT, "deployment": None,
        "url": "http://127.0.0.1:9", "token": "s3cret", "pid": os.getpid(), "machine": processes.this_machine(),
        # Nobody beats here, and a test may be slow: the last beat is one that will be new until the test has ended.
        "log_path": str(log), "submitted_at": datetime.now(UTC), "heartbeat": time.time() + 300, "ended_at": None,
    }  # fmt: skip
    host = HostRecord(**{**values, **fields})  # type: ignore[arg-type]
    control_plane.registry.submit(host)
    return host


def put(control_plane: ControlPlane, record: PipelineRecord) -> PipelineRecord:
    """A pipeline in a given state, deployed on a dedicated host."""
    record = replace(
        record, deployer="dedicated", consumed_sequence=0, provisioning_since=record.provisioning_since and datetime.now(UTC)
    )
    control_plane.store.create(record)
    return record


def wait_system_error(control_plane: ControlPlane) -> PipelineRecord:
    deadline = time.monotonic() + 10
    while (record := control_plane.pipeline("p")).program_status is not ProgramStatus.SYSTEM_ERROR:
        assert time.monotonic() < deadline, record
        time.sleep(0.02)
    return record


def wait_stopped(control_plane: ControlPlane, limit_s: float = 10.0) -> PipelineRecord:
    deadline = time.monotonic() + limit_s
    while (record := control_plane.pipeline("p")).deployment_status != "Stopped":
        assert time.monotonic() < deadline, record
        time.sleep(0.01)
    return record


def reconciled(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, rounds: int = 3) -> None:
    """Wait until the background has seen to the pipeline some times, or has nothing more to do for it."""
    background, pipeline_id, found = control_plane.background, control_plane.store.require("p").id, []
    look = background._look

    def counted(each: UUID) -> PipelineRecord | None:
        found.append(each)
        return look(each)

    with monkeypatch.context() as patched:
        patched.setattr(background, "_look", counted)
        background.wake(pipeline_id)
        until(lambda: len(found) >= rounds or pipeline_id not in background._wakes)
    assert found


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


@pytest.mark.parametrize("answer", [None, Problem(ErrorCode.TERMINATING, "The host is shutting down.")])
def test_a_start_on_a_host_that_ends_goes_on_with_another(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Problem | None
) -> None:
    """The host is killed, or nobody used it for long, between the look at it and the call."""
    first = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    asked: list[UUID] = []

    def call(host: HostRecord, _method: str, _path: str, **__: object) -> httpx.Response:
        asked.append(host.host_id)
        if host.host_id != first.host_id:
            return httpx.Response(202, json={})
        control_plane.registry.end(first.host_id)
        host_row(control_plane, tmp_path, kind="shared", deployment_id=None, host_id=UUID(int=77))
        if answer is None:
            raise HostUnreachable("connection refused")
        return httpx.Response(http_status(answer.code), json=answer.body())

    monkeypatch.setattr(control_plane.hosts, "call", call)
    monkeypatch.setattr(control_plane.compiler, "_launcher", None)
    record = replace(given.provisioning(), deployer="shared", host_id=first.host_id, consumed_sequence=0)
    control_plane.store.create(replace(record, provisioning_since=datetime.now(UTC)))
    deadline = time.monotonic() + 10
    while asked != [first.host_id, UUID(int=77)]:
        assert time.monotonic() < deadline, asked
        record = control_plane.pipeline("p")
        assert record.deployment_error is None
        time.sleep(0.01)
    assert control_plane.pipeline("p").host_id == UUID(int=77)


@pytest.mark.parametrize(
    ("failure", "attempts"), [(HostUnreachable("its JVM is gone"), 3), (HostTimeout("no answer within 110 s"), 1)]
)
def test_a_program_whose_compiler_died_is_compiled_by_another(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, attempts: int
) -> None:
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    asked: list[str] = []

    def call(_: HostRecord, _method: str, path: str, **__: object) -> httpx.Response:
        asked.append(path)
        raise failure

    monkeypatch.setattr(control_plane.compiler, "host", lambda: host)
    monkeypatch.setattr(control_plane.hosts, "call", call)
    control_plane.create({"name": "p", "program_code": "create table t (a int);"})
    record = wait_system_error(control_plane)
    assert asked == ["/compile"] * attempts
    assert str(failure) in (record.program_error or {})["system_error"]


def test_whoever_only_compiles_waits_for_a_host_within_a_limit(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_pipelines.service.compiling.HOST_START_WAIT_S", 0.3)
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    with pytest.raises(Problem, match=r"did not come up within 0\.3 s") as refused:
        control_plane.programs.compile(ProgramSource("create table t (a int);"))
    assert (http_status(refused.value.code), refused.value.code) == (503, "CompilerUnavailable")


@pytest.mark.processes
def test_calls_survive_a_connection_that_the_host_has_closed(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A connection in the pool may be closed by the host at the moment of the next call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        answers = 0

        def serve() -> None:
            nonlocal answers
            for number in range(3):
                connection, _ = server.accept()
                with connection:
                    assert connection.recv(65536)
                    if number == 2:
                        answers += 1
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        host = host_row(control_plane, tmp_path, url=f"http://127.0.0.1:{server.getsockname()[1]}")
        assert control_plane.hosts.call(host, "POST", "/suspend").status_code == 200
        thread.join(10)
    assert answers == 1
    with pytest.raises(HostUnreachable, match="refused"):
        control_plane.hosts.call(host, "GET", "/health")


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


def test_the_service_never_kills_what_is_not_its_host(
    control_plane: ControlPlane, tmp_path: Path, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_row(control_plane, tmp_path, pid=process.pid)
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *arguments: killed.append(arguments))
    monkeypatch.setattr(os, "killpg", lambda *arguments: killed.append(arguments))
    control_plane.hosts.end(host)
    monkeypatch.undo()
    assert [call for call in killed if call[1] != 0] == []
    assert process.poll() is None


def test_an_incarnation_of_an_unknown_deployer_is_left_alone(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    control_plane.store.create(replace(given.starting(), deployer="dedicated:somewhere"))
    reconciled(control_plane, monkeypatch)
    assert control_plane.pipeline("p").deployment_status == "Stopped"
    assert control_plane.pipeline("p").deployment_desired_status == "Running"


def test_an_abandoned_compilation_is_taken_up_again(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[UUID] = []
    monkeypatch.setattr(control_plane.compiler, "host", lambda: asked.append(uuid7()))
    control_plane.store.create(replace(given.compiling(), compile_claimed_at=datetime.now(UTC)))
    reconciled(control_plane, monkeypatch)
    assert not asked
    record = control_plane.store.require("p")
    control_plane.store.commit(record, [replace(record, compile_claimed_at=datetime.now(UTC) - timedelta(minutes=5))])
    control_plane.pipeline("p")
    deadline = time.monotonic() + 5
    while not asked:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_java_is_an_error_of_the_compiler_and_can_be_retried(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    control_plane.create({"name": "p", "program_code": ""})
    record = wait_system_error(control_plane)
    assert record.program_error is not None
    assert "JAVA_HOME" in record.program_error["system_error"]
    assert control_plane.registry.live_hosts() == []
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    assert control_plane.patch("p", {"program_code": ""}).program_status is ProgramStatus.PENDING


def test_a_fault_of_the_compiler_is_told_and_the_program_is_not_compiled_again(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    asked: list[str] = []

    def call(_: HostRecord, method: str, path: str, **__: object) -> httpx.Response:
        asked.append(f"{method} {path}")
        return httpx.Response(
            422, json=Problem(ErrorCode.COMPILER_FAILED, "The compiler failed on this program (KeyError).").body()
        )

    monkeypatch.setattr(control_plane.compiler, "host", lambda: host)
    monkeypatch.setattr(control_plane.hosts, "call", call)
    control_plane.create({"name": "p", "program_code": "create table t (a int);"})
    record = wait_system_error(control_plane)
    reconciled(control_plane, monkeypatch)
    assert asked.count("POST /compile") == 1
    assert record.program_error is not None
    assert record.program_error["system_error"] == "CompilerFailed: The compiler failed on this program (KeyError)."


def test_storage_is_cleared_and_a_stuck_one_says_why(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    record = given.stopped_with_storage()
    control_plane.store.create(record)
    folder = control_plane.files.storage(record)
    (folder / "batches").mkdir(parents=True)
    (folder / "batches" / "one").write_text("x")

    def refuse(_: PipelineRecord) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(control_plane.files, "clear", refuse)
        control_plane.clear("p")
        deadline = time.monotonic() + 5
        while control_plane.pipeline("p").deployment_error is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        stuck = control_plane.pipeline("p")
        assert stuck.storage_status.value == "Clearing"
        assert str(folder) in (stuck.deployment_error or {})["message"]
    deadline = time.monotonic() + 5
    while (done := control_plane.pipeline("p")).storage_status.value != "Cleared":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert done.deployment_error is None
    assert not folder.exists()


def test_starts_are_remembered_with_their_deployer(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    control_plane.create({"name": "p", "program_code": ""})
    assert control_plane.start("p", StartRequest(deployer=control_plane.deployers.default)).deployer == "shared"


@pytest.mark.parametrize("kind", ["shared", "dedicated"])
def test_only_a_host_of_its_own_is_ended_for_a_pipeline_that_does_not_stop(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    host_row(control_plane, tmp_path, kind=kind, deployment_id=None if kind == "shared" else given.DEPLOYMENT)
    refused = Problem(ErrorCode.PIPELINE_UNAVAILABLE, "The deployment is still ending its last step; ask again.")
    asked: list[str] = []

    def call(_: HostRecord, method: str, path: str, **__: object) -> httpx.Response:
        asked.append(f"{method} {path}")
        return httpx.Response(http_status(refused.code), json=refused.body())

    monkeypatch.setattr(control_plane.hosts, "call", call)
    record = given.stopping()
    since = datetime.now(UTC) - timedelta(minutes=2)
    control_plane.store.create(replace(record, deployer=kind, consumed_sequence=0, deployment_resources_status_since=since))
    control_plane.pipeline("p")
    deadline = time.monotonic() + 10
    while len(asked) < 3 and control_plane.registry.live_hosts("shared" if kind == "shared" else None):
        assert time.monotonic() < deadline, asked
        time.sleep(0.01)
    live = [host.host_id for host in control_plane.registry.live_hosts()]
    assert live == ([given.HOST] if kind == "shared" else [])
    assert control_plane.pipeline("p").deployment_status == "Stopping"
    log = control_plane.files.log(record)
    assert (log.read_text().count("other pipelines run on the same host") if log.exists() else 0) == (kind == "shared")
