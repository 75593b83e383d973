"""Requests that a browser sends for a page of another site, over real HTTP."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from tests.fixtures.serving import serving

pytestmark = pytest.mark.core

PIPELINE = b'{"name": "p", "program_code": "", "udf_python": "import os"}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(tmp_path, allowed_hosts=("pipelines.example.com",))


def names(app: FastAPI) -> list[str]:
    control_plane: ControlPlane = app.state.control_plane
    return [record.name for record in control_plane.store.all()]


def test_a_page_cannot_create_or_start_a_pipeline(app: FastAPI, url: str) -> None:
    from_page = {"Content-Type": "text/plain;charset=UTF-8", "Host": "evil.example", "Origin": "https://evil.example"}
    answer = httpx.post(f"{url}/v0/pipelines", content=PIPELINE, headers=from_page)
    assert (answer.status_code, answer.json()["error_code"]) == (403, "HostNotAllowed")
    assert "--allow-host" in answer.json()["message"]
    # Each of the three alone is enough, as a page may get around one.
    port = urlsplit(url).port
    for headers, status, code in (
        (JSON | {"Host": f"evil.example:{port}"}, 403, "HostNotAllowed"),
        (JSON | {"Host": ""}, 403, "HostNotAllowed"),
        (JSON | {"Host": "127.0.0.1.evil.example"}, 403, "HostNotAllowed"),
        (JSON | {"Host": "[::1"}, 403, "HostNotAllowed"),
        (JSON | {"Origin": "https://evil.example"}, 403, "OriginNotAllowed"),
        (JSON | {"Origin": "null"}, 403, "OriginNotAllowed"),
        (JSON | {"Origin": "http://127.0.0.1:1"}, 403, "OriginNotAllowed"),
        (JSON | {"Origin": f"file://127.0.0.1:{port}"}, 403, "OriginNotAllowed"),
        (JSON | {"Origin": f"https://127.0.0.1:{port}"}, 403, "OriginNotAllowed"),
        (JSON | {"Sec-Fetch-Site": "cross-site"}, 403, "OriginNotAllowed"),
        (JSON | {"Sec-Fetch-Site": "same-site"}, 403, "OriginNotAllowed"),
        ({"Content-Type": "text/plain"}, 415, "UnsupportedMediaType"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "UnsupportedMediaType"),
        ({}, 415, "UnsupportedMediaType"),
    ):
        answer = httpx.post(f"{url}/v0/pipelines", content=PIPELINE, headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (status, code), headers
    assert names(app) == []

    assert httpx.post(f"{url}/v0/pipelines", content=PIPELINE, headers=JSON).status_code == 201
    started = httpx.post(f"{url}/v0/pipelines/p/start", headers={"Origin": "https://evil.example"})
    assert started.status_code == 403
    # A link or an image asks with GET and without an origin.
    query = httpx.get(f"{url}/v0/pipelines/p/query?sql=delete", headers={"Sec-Fetch-Site": "cross-site"})
    assert query.status_code == 403
    assert app.state.control_plane.store.require("p").fully_stopped


def test_a_request_without_a_host_is_refused(url: str) -> None:
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), 5) as connection:
        connection.sendall(b"GET /v0/pipelines HTTP/1.0\r\n\r\n")
        assert b" 403 " in connection.recv(4096).splitlines()[0]


@pytest.mark.rest
def test_the_service_knows_its_names(app: FastAPI, url: str) -> None:
    port = urlsplit(url).port
    for headers in (
        {},
        {"Host": f"localhost:{port}"},
        {"Host": f"[::1]:{port}"},
        {"Host": f"LOCALHOST:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"},
        {"Host": "pipelines.example.com"},
        {"Origin": "https://pipelines.example.com"},
        {"Sec-Fetch-Site": "none"},
    ):
        answer = httpx.post(
            f"{url}/v0/pipelines", content=PIPELINE, headers={"Content-Type": "application/json; charset=utf-8"} | headers
        )
        assert answer.status_code in {201, 409}, headers
    assert names(app) == ["p"]


@pytest.mark.parametrize(
    ("path", "status"),
    [("query", 415), ("clock/advance", 415), ("egress/t", 415), ("ingress/t", 503)],
)
def test_bodies_that_are_passed_on_are_json_where_the_contract_has_json(url: str, path: str, status: int) -> None:
    httpx.post(f"{url}/v0/pipelines", content=PIPELINE, headers=JSON)
    text = httpx.post(f"{url}/v0/pipelines/p/{path}", content=b"{}", headers={"Content-Type": "text/plain"})
    assert text.status_code == status
    for json in (httpx.post(f"{url}/v0/pipelines/p/{path}", json={}), httpx.post(f"{url}/v0/pipelines/p/{path}")):
        assert (json.status_code, json.json()["error_code"]) == (503, "PipelineInteractionNotDeployed")


@pytest.mark.processes
def test_with_a_key_any_host_name_will_do_unless_names_are_given(tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer k3y", "Host": "anything.example"}
    for names, status in ((), 200), (("pipelines.example.com",), 403):
        app = create_app(Settings.load(tmp_path, api_keys=("k3y",), allowed_hosts=names))
        with serving(app) as url:
            assert httpx.get(f"{url}/v0/pipelines", headers=headers).status_code == status
            assert httpx.get(f"{url}/v0/pipelines", headers={**headers, "Origin": "http://evil.example"}).status_code == 403
