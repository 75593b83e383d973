"""Incarnations are placed on hosts, taken down, and their storages cleared."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from uuid import UUID

import httpx
import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostUnreachable
from airflow_pipelines.service.leases import Leases
from airflow_pipelines.service.records import PipelineRecord
from tests.service import records as given
from tests.service.hosted import host_row, reconciled


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


def test_an_incarnation_of_an_unknown_deployer_is_left_alone(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    control_plane.store.create(replace(given.starting(), deployer="dedicated:somewhere"))
    reconciled(control_plane, monkeypatch)
    assert control_plane.pipeline("p").deployment_status == "Stopped"
    assert control_plane.pipeline("p").deployment_desired_status == "Running"


def test_a_process_without_the_deployer_leaves_the_lease_to_one_that_has_it(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = replace(given.starting(), deployer="dedicated:somewhere")
    control_plane.store.create(record)
    others = Leases(control_plane.store.engine)
    name = f"pipeline {record.id}"
    looked = Event()
    observe = control_plane.reconciler.observe

    def observed(record: PipelineRecord) -> PipelineRecord:
        looked.set()
        return observe(record)

    monkeypatch.setattr(control_plane.reconciler, "observe", observed)
    for _ in range(20):
        looked.clear()
        control_plane.background.wake(record.id)
        assert looked.wait(10)
        assert others.acquire(name)
        others.release(name)


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


@pytest.mark.rest
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
