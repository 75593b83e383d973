"""How hosts are, as the service sees them."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.common.database import open_database
from airflow_pipelines.contract.registry import MAX_REASON, Base, HostRecord, Registry
from airflow_pipelines.service import processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostHealth, Hosts, HostState, HostUnreachable
from tests.service.hosted import host_row

pytestmark = pytest.mark.core

GONE = 2**22 + 1
"""No process has this id: Linux gives none above 2^22."""


def test_a_host_that_said_why_it_ends_is_believed_also_when_its_process_is_gone_first(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    Base.metadata.create_all(engine)
    registry = Registry(engine)
    host = HostRecord(
        host_id=UUID(int=1), kind="shared", deployment_id=None, deployment=None, url="http://127.0.0.1:1", token="t", pid=GONE,
        machine=processes.this_machine(), log_path="l", submitted_at=datetime.now(UTC), heartbeat=1.0, ended_at=None,
    )  # fmt: skip
    registry.submit(host)
    hosts = Hosts(registry, 15.0)
    assert hosts.health(host) == HostHealth(HostState.LOST, f"its process {GONE} on {host.machine} is gone")
    registry.end(host.host_id, "its JVM is gone")
    assert hosts.health(host) == HostHealth(HostState.LOST, "its JVM is gone")
    hosts.close()
    engine.dispose()


def test_a_long_reason_for_the_end_of_a_host_is_cut(control_plane: ControlPlane, tmp_path: Path) -> None:
    """PostgreSQL takes no longer text than its column, and the host has to be ended whatever the reason is."""
    host = host_row(control_plane, tmp_path)
    control_plane.registry.end(host.host_id, "spark-submit: " + "x" * 5000)
    ended = control_plane.registry.get(host.host_id)
    assert ended is not None
    assert ended.ended_at is not None
    assert ended.end_reason is not None
    assert (len(ended.end_reason), ended.end_reason[:14]) == (MAX_REASON, "spark-submit: ")


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
