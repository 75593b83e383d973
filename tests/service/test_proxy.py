"""Runtime calls to hosts that die in the middle of them. The hosts are processes that answer half and then hang."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.problems import READ_ONLY_HEADER
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service import processes
from airflow_pipelines.service.api_keys import KeyScope
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from tests.fixtures.serving import serving
from tests.service import records as given

pytestmark = pytest.mark.core

HALF_A_HOST = r"""
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
def serve(connection):
    request = connection.recv(65536)
    if b"/stats" not in request:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"6\r\n{}\r\n\r\n" + b"\r\n")
    print("asked", flush=True)
    time.sleep(60)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
"""


@pytest.fixture
def host(processes: None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen([sys.executable, "-c", HALF_A_HOST], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


@pytest.fixture
def api(tmp_path: Path, host: tuple[subprocess.Popen[str], int]) -> Iterator[TestClient]:
    app = create_app(Settings.load(tmp_path))
    running_on(app, tmp_path, f"http://127.0.0.1:{host[1]}", host[0].pid)
    yield TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
    app.state.control_plane.close()


def running_on(app: FastAPI, tmp_path: Path, url: str, pid: int) -> None:
    """Make a pipeline ``p`` that runs on the host at ``url``."""
    control_plane: ControlPlane = app.state.control_plane
    control_plane.store.create(replace(given.running(), deployer="dedicated"))
    (tmp_path / "host.log").write_text("OutOfMemoryError: Java heap space\n")
    control_plane.registry.submit(
        HostRecord(
            host_id=given.HOST,
            kind="dedicated",
            deployment_id=given.DEPLOYMENT,
            deployment=None,
            url=url,
            token="s3cret",
            pid=pid,
            machine=processes.this_machine(),
            log_path=str(tmp_path / "host.log"),
            submitted_at=datetime.now(UTC),
            heartbeat=time.time(),
            ended_at=None,
        )
    )


def kill_when_asked(process: subprocess.Popen[str]) -> None:
    """Kill the host when it has begun to answer a request."""

    def kill() -> None:
        assert process.stdout is not None
        if process.stdout.readline():
            process.kill()

    threading.Thread(target=kill, daemon=True).start()


@pytest.mark.timeout(60)
def test_a_call_that_the_host_breaks_off_says_why(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_when_asked(host[0])
    answer = api.get("/v0/pipelines/p/stats")
    assert (answer.status_code, answer.json()["error_code"]) == (503, "PipelineInteractionUnreachable")
    assert "OutOfMemoryError" in answer.json()["message"]
    assert "s3cret" not in answer.text


@pytest.mark.timeout(60)
def test_a_listener_of_a_dead_host_comes_to_its_end(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_when_asked(host[0])
    answer = api.post("/v0/pipelines/p/egress/w?format=json")
    assert (answer.status_code, answer.content) == (200, b"{}\r\n\r\n")


@pytest.mark.timeout(60)
def test_half_an_answer_to_a_query_ends_with_the_error(api: TestClient, host: tuple[subprocess.Popen[str], int]) -> None:
    kill_when_asked(host[0])
    answer = api.get("/v0/pipelines/p/query?sql=select&format=json")
    assert '{"error": "The host of pipeline' in answer.text


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_calls_pass_to_the_host_as_they_come_within_bounds(tmp_path: Path) -> None:
    first_part_came = threading.Event()

    seen: list[Headers] = []

    async def ingress(request: Request) -> JSONResponse:
        seen.append(request.headers)
        received = b""
        async for chunk in request.stream():
            received += chunk
            first_part_came.set()
        return JSONResponse({"token": received.decode()})

    def parts() -> Iterator[bytes]:
        yield b"first,"
        # Were the service to wait for the whole body, the host would see nothing of it yet.
        assert first_part_came.wait(20)
        yield b"second"

    app = create_app(Settings.load(tmp_path, max_body_bytes=1000, max_ingress_bytes=2000))
    host = Starlette(routes=[Route("/deployments/{id}/{path:path}", ingress, methods=["GET", "POST"])])
    with serving(host) as host_url, serving(app) as url:  # type: ignore[arg-type]
        running_on(app, tmp_path, host_url, os.getpid())
        path = f"{url}/v0/pipelines/p"
        assert httpx.post(f"{path}/ingress/t", content=parts()).json() == {"token": "first,second"}
        assert httpx.post(f"{path}/ingress/t", content="x" * 2000).json() == {"token": "x" * 2000}
        assert httpx.post(f"{path}/query", json={"sql": "select 1"}).json() == {"token": '{"sql":"select 1"}'}
        assert httpx.get(f"{path}/stats").json() == {"token": ""}
        for answer in (
            httpx.post(f"{path}/ingress/t", content="x" * 2001),
            httpx.post(f"{path}/ingress/t", content=(b"x" * 100 for _ in range(30))),
            httpx.post(f"{path}/query", json={"sql": "x" * 1000}),
            httpx.put(path, content=(b"[" * 100 for _ in range(30)), headers={"Content-Type": "application/json"}),
        ):
            assert (answer.status_code, answer.json()["error_code"]) == (413, "PayloadTooLarge")
        assert httpx.post(f"{path}/ingress/t", content="still here").json() == {"token": "still here"}
        assert not any(READ_ONLY_HEADER in headers for headers in seen)
        headers = {"Authorization": f"Bearer {app.state.control_plane.api_keys.create('reports', KeyScope.READ)[1]}"}
        assert httpx.get(f"{path}/query?sql=delete", headers=headers).status_code == 200
        assert READ_ONLY_HEADER in seen[-1]
    app.state.control_plane.close()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_read_is_repeated_when_its_connection_was_closed_and_a_change_is_not(tmp_path: Path) -> None:
    asked: list[bytes] = []
    app = create_app(Settings.load(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        asked.append(connection.recv(65536).split(b" HTTP")[0])
                        if len(asked) == 3:
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        threading.Thread(target=serve, daemon=True).start()
        running_on(app, tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}", os.getpid())
        client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
        assert client.get("/v0/pipelines/p/stats").json() == {}
        assert len(asked) == 3
        for refused in (client.get("/v0/pipelines/p/query?sql=delete"), client.post("/v0/pipelines/p/ingress/t", content="{}")):
            assert refused.status_code == 503
        assert len(asked) == 5
        server.shutdown(socket.SHUT_RDWR)
    app.state.control_plane.close()


@pytest.mark.timeout(60)
def test_a_client_that_leaves_is_not_waited_for(api: TestClient) -> None:
    """Before the host has answered anything: it sees its connection closed, and cancels the query."""
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}])
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: dict[str, Any]) -> None:
        statuses.append(message.get("status", 0))

    path = "/v0/pipelines/p/query"
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": b"sql=/stats", "root_path": "", "headers": [(b"host", b"localhost")],
        "server": ("localhost", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    app: Any = api.app
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 20))
    assert statuses[0] == 499
