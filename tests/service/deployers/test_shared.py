"""Finding the shared host among rows of hosts that start, hang or are gone."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.exc import IntegrityError
from uuid6 import uuid7

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service import processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.deployers.base import SubmitError, SubmitRequest, SubmittedProcess
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.service.deployers.submit import LocalSubmitter

pytestmark = pytest.mark.core


def row(control_plane: ControlPlane, tmp_path: Path, **fields: Any) -> UUID:
    (tmp_path / "host.log").write_text("the last word\n")
    values: dict[str, Any] = {
        "host_id": uuid7(), "kind": "shared", "deployment_id": None, "deployment": None, "url": "http://127.0.0.1:9", "token": "t",
        "pid": os.getpid(), "machine": processes.this_machine(), "log_path": str(tmp_path / "host.log"),
        "submitted_at": datetime.now(UTC), "heartbeat": time.time(), "ended_at": None,
    }  # fmt: skip
    control_plane.registry.submit(HostRecord(**{**values, **fields}))
    return UUID(str({**values, **fields}["host_id"]))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the hosts that were launched, none of which is."""
    kinds: list[str] = []
    monkeypatch.setattr(Launcher, "launch", lambda _self, kind, **_: kinds.append(kind))
    return kinds


def test_a_live_host_is_used_and_a_starting_one_waited_for(tmp_path: Path, launched: list[str]) -> None:
    control_plane = ControlPlane(Settings.load(tmp_path))
    host_id = row(control_plane, tmp_path, heartbeat=None, url=None)
    assert control_plane.compiler.host() is None
    control_plane.registry.update(host_id, heartbeat=time.time(), url="http://127.0.0.1:9")
    assert control_plane.compiler.place() == host_id
    assert launched == []
    control_plane.close()


def test_threads_and_processes_that_ask_at_once_get_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted: list[UUID] = []

    def submit(_: LocalSubmitter, request: SubmitRequest) -> SubmittedProcess:
        submitted.append(request.host_id)
        return SubmittedProcess(os.getpid(), processes.this_machine())

    monkeypatch.setattr(LocalSubmitter, "submit", submit)
    for attempt in range(5):
        home = tmp_path / str(attempt)
        services = [ControlPlane(Settings.load(home)) for _ in range(2)]
        together = threading.Barrier(8)

        def ask(number: int, services: list[ControlPlane] = services, together: threading.Barrier = together) -> None:
            together.wait(10)
            services[number % 2].compiler.host()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8)))
        assert len(submitted) == attempt + 1
        (host,) = services[0].registry.live_hosts()
        services[0].registry.end(host.host_id)
        assert row(services[0], tmp_path) != host.host_id, "the place of an ended host is free"
        for control_plane in services:
            control_plane.close()


def test_a_store_of_an_earlier_release_gets_room_for_one_host(tmp_path: Path) -> None:
    control_plane = ControlPlane(Settings.load(tmp_path))
    hosts = [row(control_plane, tmp_path, host_id=UUID(int=1))]
    control_plane.close()
    with sqlite3.connect(tmp_path / "store.sqlite") as connection:
        # Earlier releases might have started several.
        connection.execute("DROP INDEX hosts_slot")
        connection.execute("ALTER TABLE hosts DROP COLUMN slot")
        connection.execute("CREATE TABLE copy AS SELECT * FROM hosts")
        connection.execute("UPDATE copy SET host_id = ?", (UUID(int=2).hex,))
        connection.execute("INSERT INTO hosts SELECT * FROM copy")
    control_plane = ControlPlane(Settings.load(tmp_path))
    assert len(control_plane.registry.live_hosts("shared")) == 2
    assert control_plane.compiler.place() in (hosts[0], UUID(int=2))
    row(control_plane, tmp_path)
    with pytest.raises(IntegrityError):
        row(control_plane, tmp_path)
    control_plane.close()


@pytest.mark.processes
def test_without_a_host_one_is_launched(tmp_path: Path, launched: list[str]) -> None:
    control_plane = ControlPlane(Settings.load(tmp_path))
    row(control_plane, tmp_path, pid=2**22 + 1)
    assert control_plane.compiler.host() is None
    assert launched == ["shared"]
    assert control_plane.registry.live_hosts() == []
    control_plane.close()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"pid": 2**22 + 1}, "is gone"), ({"submitted_at": datetime.now(UTC) - timedelta(hours=1)}, "not up after 300 s")],
)
def test_a_host_that_does_not_come_up_is_reported_once(
    tmp_path: Path, launched: list[str], fields: dict[str, Any], reason: str
) -> None:
    control_plane = ControlPlane(Settings.load(tmp_path))
    row(control_plane, tmp_path, heartbeat=None, url=None, **fields)
    with pytest.raises(SubmitError, match=reason) as failure:
        control_plane.compiler.host()
    assert "the last word" in str(failure.value)
    assert launched == []
    assert control_plane.compiler.host() is None
    assert launched == ["shared"]
    control_plane.close()
