"""Ad-hoc queries over a WebSocket, against a host that answers at once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.problems import READ_ONLY_HEADER
from airflow_pipelines.service.api_keys import KeyScope
from airflow_pipelines.service.app import create_app
from airflow_pipelines.serving import bounds, http_server
from airflow_pipelines.serving.http_server import server_config
from tests.fixtures.serving import serving
from tests.service.test_proxy import running_on

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60), pytest.mark.core]


async def _query(request: Request) -> Response:
    sql = (await request.json())["sql"]
    if sql == "wrong":
        return JSONResponse({"message": "no", "error_code": "AdHocQueryError", "details": {}}, 400)

    async def parts() -> AsyncIterator[bytes]:
        # Half a letter at a time.
        for byte in f"{sql} ü {READ_ONLY_HEADER in request.headers} {request.query_params['format']}".encode():
            yield bytes([byte])

    return StreamingResponse(parts(), media_type="text/plain")


def asked(url: str, message: str | bytes, after_s: float = 0.0, **options: Any) -> tuple[list[str | bytes], int]:
    """The messages that answer one, and the code with which the service closes."""
    received: list[str | bytes] = []
    with connect(f"{url.replace('http', 'ws')}/v0/pipelines/p/query", proxy=None, **options) as socket:
        time.sleep(after_s)
        socket.send(message)
        try:
            while True:
                received.append(socket.recv(timeout=30))
        except ConnectionClosed as closed:
            return received, closed.rcvd.code if closed.rcvd is not None else 0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    app = create_app(Settings.load(tmp_path))
    host = Starlette(routes=[Route("/deployments/{id}/query", _query, methods=["POST"])])
    config = server_config(app, ws="websockets-sansio", timeout_graceful_shutdown=1)
    with serving(host) as host_url, serving(app, config=config) as url:  # type: ignore[arg-type]
        running_on(app, tmp_path, host_url, os.getpid())
        yield url
    app.state.control_plane.close()


def test_results_come_in_messages_of_their_kind(url: str) -> None:
    received, code = asked(url, '{"sql": "SELECT 1", "format": "json"}')
    assert ("".join(map(str, received)), code) == ("SELECT 1 ü False json", 1000)
    received, code = asked(url, b'{"sql": "SELECT 1", "format": "json"}')
    assert ("".join(map(str, received)), code) == ("SELECT 1 ü False json", 1000), "asked in a binary message"
    received, code = asked(url, '{"sql": "SELECT 1", "format": "arrow_ipc"}')
    assert (b"".join(part for part in received if isinstance(part, bytes)), code) == ("SELECT 1 ü False arrow_ipc".encode(), 1000)


@pytest.mark.core('{"sql": "wrong"}-AdHocQueryError', "{-InvalidRequest")
@pytest.mark.parametrize(
    ("message", "error_code"),
    [('{"sql": "wrong"}', "AdHocQueryError"), ("[]", "InvalidRequest"), ("{", "InvalidRequest"), ('{"sql": 1}', "InvalidRequest")],
)
def test_what_is_wrong_comes_as_over_http(url: str, message: str, error_code: str) -> None:
    received, code = asked(url, message)
    assert (json.loads("".join(map(str, received)))["error_code"], code) == (error_code, 1011)


@pytest.mark.rest
def test_a_socket_may_be_silent_for_longer_than_a_request(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_PATIENCE_S", 0.2)
    assert asked(url, '{"sql": "SELECT 1"}', after_s=0.5)[1] == 1000


def test_a_socket_on_which_nothing_is_asked_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_PATIENCE_S", 0.2)
    with connect(f"{url.replace('http', 'ws')}/v0/pipelines/p/query", proxy=None) as socket:
        problem = json.loads(socket.recv(timeout=30))
        assert problem["error_code"] == "RequestTimeout"
        assert "No query came in 0.2 s" in problem["message"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1011


def test_a_socket_needs_a_key_as_any_request(tmp_path: Path) -> None:
    app = create_app(Settings.load(tmp_path))
    host = Starlette(routes=[Route("/deployments/{id}/query", _query, methods=["POST"])])
    key = app.state.control_plane.api_keys.create("reports", KeyScope.READ)[1]
    with serving(host) as host_url, serving(app) as url:  # type: ignore[arg-type]
        running_on(app, tmp_path, host_url, os.getpid())
        with pytest.raises(InvalidStatus) as refused:
            asked(url, '{"sql": "SELECT 1"}')
        assert refused.value.response.status_code == 401
        received, _ = asked(url, '{"sql": "SELECT 1"}', additional_headers={"Authorization": f"Bearer {key}"})
        assert "".join(map(str, received)) == "SELECT 1 ü True text"
        with pytest.raises(InvalidStatus) as foreign:
            asked(url, "{}", additional_headers={"Authorization": f"Bearer {key}", "Origin": "http://elsewhere.example"})
        assert foreign.value.response.status_code == 403
    app.state.control_plane.close()
