"""Clients that send too much, too slowly, or no HTTP at all, over real sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.process.server import DataPlane
from airflow_pipelines.serving import bounds, http_server
from airflow_pipelines.serving.bounds import BoundedRequests

pytestmark = pytest.mark.core

QUICK_S = 0.3


async def size(request: Request) -> Response:
    return JSONResponse(len(await request.body()))


async def count(request: Request) -> Response:
    largest = 0
    async for chunk in request.stream():
        largest = max(largest, len(chunk))
    return JSONResponse(largest)


async def problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return JSONResponse(error.body(), http_status(error.code))


@pytest.fixture
def plane(processes: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataPlane]:
    """A server with a limit of 1,000,000 bytes and of little patience."""
    monkeypatch.setattr(http_server, "HEAD_PATIENCE_S", QUICK_S)
    monkeypatch.setattr(http_server, "LINGER_S", QUICK_S)
    monkeypatch.setattr(bounds, "BODY_PATIENCE_S", QUICK_S)
    routes = [Route("/", size, methods=["GET", "POST"]), Route("/count", count, methods=["POST"])]
    app = Starlette(routes=routes, exception_handlers={Problem: problem})
    app.add_middleware(BoundedRequests, limit_of=lambda _: 1_000_000)
    plane = DataPlane(app)  # type: ignore[arg-type]
    plane.start()
    yield plane
    plane.stop()


@contextmanager
def connected(plane: DataPlane) -> Iterator[socket.socket]:
    url = httpx.URL(plane.url)
    with socket.create_connection((url.host, url.port or 0), 10) as connection:
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def status_and_code(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error_code"]


@pytest.mark.parametrize(
    "parts",
    [[], [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le"], [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HT"]],
    ids=["nothing", "half a head", "half of the second head"],
)
def test_half_a_head_is_dropped(plane: DataPlane, parts: list[bytes]) -> None:
    with connected(plane) as connection:
        for number, part in enumerate(parts):
            if number:
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            connection.sendall(part)
        began = time.monotonic()
        assert b"HTTP" not in rest_of(connection)
        assert time.monotonic() - began < 4


def test_bytes_that_come_one_by_one_do_not_count_as_patience(plane: DataPlane) -> None:
    with connected(plane) as connection:
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 5:
                connection.sendall(b"G")
                time.sleep(QUICK_S / 3)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("head", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_half_a_body_is_dropped(plane: DataPlane, head: bytes) -> None:
    with connected(plane) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n5\r\nhalf")
        assert status_and_code(rest_of(connection)) == (408, "RequestTimeout")


def test_a_body_that_is_too_large_is_refused_and_the_server_goes_on(plane: DataPlane) -> None:
    assert httpx.post(plane.url, content=b"x" * 1_000_000).json() == 1_000_000
    declared = httpx.post(plane.url, content=b"x" * 5_000_000)
    assert (declared.status_code, declared.json()["error_code"]) == (413, "PayloadTooLarge")
    undeclared = httpx.post(plane.url, content=(b"x" * 100_000 for _ in range(20)))
    assert (undeclared.status_code, undeclared.json()["details"]) == (413, {"limit": 1_000_000})
    with connected(plane) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n")
        assert status_and_code(rest_of(connection)) == (413, "PayloadTooLarge")
    assert httpx.get(plane.url).json() == 0


def test_a_body_streams(plane: DataPlane) -> None:
    assert 0 < httpx.post(f"{plane.url}/count", content=b"x" * 900_000).json() <= 400_000


def test_a_head_that_is_too_large_or_none_is_refused(plane: DataPlane) -> None:
    limit = bounds.MAX_HEAD_BYTES
    large = httpx.get(plane.url, params={"sql": "x" * (limit - 1000)}, headers={"X": "x" * 2000})
    assert (large.status_code, large.json()["error_code"]) == (431, "RequestHeaderTooLarge")
    with connected(plane) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 10 * limit)
        assert status_and_code(rest_of(connection)) == (431, "RequestHeaderTooLarge")
    assert httpx.get(plane.url, params={"sql": "x" * (limit - 1000)}).status_code == 200
    for nonsense in (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
        with connected(plane) as connection:
            connection.sendall(nonsense)
            assert status_and_code(rest_of(connection)) == (400, "InvalidRequest")


@pytest.mark.rest
def test_a_client_that_takes_its_time_is_served(plane: DataPlane) -> None:
    with httpx.Client() as client:
        for _ in range(3):
            assert client.post(plane.url, content=(b"x" * 100_000 for _ in range(3))).json() == 300_000
            # The server's own limit has to pass; it shows nothing while it waits for a client's next request.
            time.sleep(QUICK_S * 1.5)
