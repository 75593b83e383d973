"""Runtime calls to hosts that die in the middle of them. The hosts are processes that answer half and then hang."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from airflow_pipelines.host.registry import HostRecord
from airflow_pipelines.service import processes
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control import Control
from airflow_pipelines.settings import Settings
from tests.service import records as given

HALF_A_HOST = r"""
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
def serve(connection):
    request = connection.recv(65536)
    if b"/stats" not in request:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"6\r\n{}\r\n\r\n" + b"\r\n")
    time.sleep(60)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
"""


@pytest.fixture
def host() -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen([sys.executable, "-c", HALF_A_HOST], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


@pytest.fixture
def api(tmp_path: Path, host: tuple[subprocess.Popen[str], int]) -> Iterator[TestClient]:
    app = create_app(Settings.load(tmp_path))
    control: Control = app.state.control
    control.store.create(replace(given.running(), deployer="dedicated"))
    (tmp_path / "host.log").write_text("OutOfMemoryError: Java heap space\n")
    control.registry.submit(
        HostRecord(
            host_id=given.HOST,
            kind="dedicated",
            deployment_id=given.DEPLOYMENT,
            deployment=None,
            url=f"http://127.0.0.1:{host[1]}",
            token="s3cret",
            pid=host[0].pid,
            machine=processes.this_machine(),
            log_path=str(tmp_path / "host.log"),
            submitted_at=datetime.now(UTC),
            heartbeat=time.time(),
            ended_at=None,
        )
    )
    yield TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
    control.close()


def kill_soon(process: subprocess.Popen[str]) -> None:
    threading.Timer(0.5, process.kill).start()


@pytest.mark.timeout(60)
def test_a_call_that_the_host_breaks_off_says_why(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_soon(host[0])
    answer = api.get("/v0/pipelines/p/stats")
    assert (answer.status_code, answer.json()["error_code"]) == (503, "PipelineInteractionUnreachable")
    assert "OutOfMemoryError" in answer.json()["message"]
    assert "s3cret" not in answer.text


@pytest.mark.timeout(60)
def test_a_listener_of_a_dead_host_comes_to_its_end(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_soon(host[0])
    answer = api.post("/v0/pipelines/p/egress/w?format=json")
    assert (answer.status_code, answer.content) == (200, b"{}\r\n\r\n")


@pytest.mark.timeout(60)
def test_half_an_answer_to_a_query_ends_with_the_error(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_soon(host[0])
    answer = api.get("/v0/pipelines/p/query?sql=select&format=json")
    assert '{"error": "The host of pipeline' in answer.text
