"""The page beside the REST API."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.app import create_app, create_embedded_app
from airflow_pipelines.serving import page_files

FOLLOWED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    page = tmp_path / "page"
    (page / "js").mkdir(parents=True)
    (page / "index.html").write_text("<p>page</p>")
    (page / "js" / "app.js").write_text("1")
    monkeypatch.setattr(page_files, "FOLDER", page)
    return Settings.load(tmp_path / "home", api_keys=("s3cret-key",))


@pytest.fixture
def rest(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="http://localhost")


def test_the_page_needs_no_key_and_the_api_does(rest: TestClient) -> None:
    page = rest.get("/")
    assert (page.status_code, page.text) == (200, "<p>page</p>")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers
    assert rest.get("/js/app.js").text == "1"
    assert rest.get("/context").json() == {
        "face": "service",
        "version": None,
        "needs_key": True,
        "connections": [{"id": None, "label": "this service", "api": "v0/", "problem": None}],
        "airflow": None,
    }
    assert rest.get("/v0/overview").status_code == 401
    # A key opens nothing as a cookie: what browsers send by themselves is worth nothing.
    assert rest.get("/v0/overview", cookies={"Authorization": "Bearer s3cret-key"}).status_code == 401
    assert rest.get("/v0/overview", headers={"Authorization": "Bearer s3cret-key"}).json()["pipelines"] == []


def test_a_service_without_keys_says_so(tmp_path: Path) -> None:
    app = create_app(Settings.load(tmp_path, api_keys=()))
    assert TestClient(app, base_url="http://localhost").get("/context").json()["needs_key"] is False
    app.state.control_plane.close()


def test_what_is_no_file_of_the_page_is_answered_as_before(rest: TestClient) -> None:
    for path in ("/js/none.js", "/js/", "/page", "/index.html/x"):
        assert rest.get(path).json()["error_code"] == "UnknownEndpoint"
    assert rest.post("/v1/pipelines").status_code == 404


def test_a_link_of_another_site_opens_the_page_and_nothing_else(rest: TestClient) -> None:
    assert rest.get("/", headers=FOLLOWED).status_code == 200
    for path, headers in (
        ("/js/app.js", FOLLOWED),
        ("/v0/config", FOLLOWED | {"Authorization": "Bearer s3cret-key"}),
        ("/", FOLLOWED | {"Sec-Fetch-Dest": "iframe"}),
        ("/", FOLLOWED | {"Sec-Fetch-Mode": "no-cors"}),
        ("/", {"Sec-Fetch-Site": "cross-site"}),
    ):
        refused = rest.get(path, headers=headers)
        assert (refused.status_code, refused.json()["error_code"]) == (403, "OriginNotAllowed"), (path, headers)


def test_a_name_that_somebody_pointed_here_opens_not_even_the_page(tmp_path: Path) -> None:
    app = create_app(Settings.load(tmp_path, api_keys=()))
    refused = TestClient(app, base_url="http://evil.example").get("/", headers=FOLLOWED)
    assert (refused.status_code, refused.json()["error_code"]) == (403, "HostNotAllowed")
    app.state.control_plane.close()


def test_the_embedded_service_has_no_page(tmp_path: Path) -> None:
    app = create_embedded_app(Settings.load(tmp_path))
    assert TestClient(app).get("/").status_code == 404
    app.state.control_plane.close()
