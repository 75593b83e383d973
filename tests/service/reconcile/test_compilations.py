"""Programs are compiled in the background, again when a compiler was lost or nobody came back to one."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from uuid6 import uuid7

from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service import hosts
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostTimeout, HostUnreachable
from airflow_pipelines.service.reconcile import compilations
from tests.service import records as given
from tests.service.hosted import host_row, reconciled, wait_system_error
from tests.service.waiting import until


@pytest.mark.parametrize(
    ("failure", "attempts"), [(HostUnreachable("its JVM is gone"), 3), (HostTimeout("no answer within 3 h"), 1)]
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


def test_a_compiler_that_is_busy_is_waited_for_as_long_as_it_lives(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_S", 0.02)
    monkeypatch.setattr(compilations, "RENEW_S", 0.1)
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    renewed: set[object] = set()

    def call(*_: object, timeout_s: float, **__: object) -> httpx.Response:
        assert timeout_s > 3600
        until(lambda: renewed.add(control_plane.store.require("p").compile_claimed_at) or len(renewed) > 3)
        return httpx.Response(200, json={"program_info": {"schema": {"inputs": [], "outputs": []}}, "messages": []})

    monkeypatch.setattr(control_plane.compiler, "host", lambda: host)
    monkeypatch.setattr(control_plane.hosts, "call", call)
    control_plane.create({"name": "p", "program_code": "create table t (a int);"})
    until(lambda: control_plane.pipeline("p").program_status is CompilationStatus.SUCCESS)


def test_a_compiler_that_is_lost_is_not_waited_for(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "LOOK_S", 0.02)
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    given_up = threading.Event()
    monkeypatch.setattr(control_plane.hosts, "call", lambda *_, **__: given_up.wait(30))
    control_plane.registry.end(host.host_id, "its JVM is gone")
    with pytest.raises(HostUnreachable, match="its JVM is gone"):
        control_plane.hosts.call_while_alive(host, "POST", "/compile", timeout_s=3600)
    given_up.set()


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


def test_storage_is_cleared_while_a_compiler_comes_up(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    control_plane.store.create(replace(given.stopped(), storage_status=StorageStatus.INUSE))
    assert control_plane.patch("p", {"program_code": "create table t (a int);"}).program_status is CompilationStatus.PENDING
    control_plane.clear("p")
    until(lambda: control_plane.pipeline("p").storage_status is StorageStatus.CLEARED)
    assert control_plane.pipeline("p").program_status is CompilationStatus.PENDING


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
    assert control_plane.patch("p", {"program_code": ""}).program_status is CompilationStatus.PENDING


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


def test_a_pipeline_that_is_deleted_while_it_compiles_is_no_error(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    compiled: list[str] = []

    def call(_: HostRecord, _method: str, path: str, **__: object) -> httpx.Response:
        control_plane.delete("p")
        compiled.append(path)
        return httpx.Response(200, json={"program_info": {}, "messages": []})

    monkeypatch.setattr(control_plane.compiler, "host", lambda: host)
    monkeypatch.setattr(control_plane.hosts, "call", call)
    control_plane.create({"name": "p", "program_code": "create table t (a int);"})
    until(lambda: compiled and not any(thread.name.startswith("pipeline-") for thread in threading.enumerate()))
    assert control_plane.store.all() == []
    assert [record.getMessage() for record in caplog.records if record.levelname in {"WARNING", "ERROR"}] == []
