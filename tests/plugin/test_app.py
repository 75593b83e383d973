"""The page in Airflow: who gets what, and through which connections."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.plugin.forwarding import OF_PIPELINE
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.deployers.shared import SharedDeployer
from tests.fixtures.airflow import ScriptedService
from tests.plugin.conftest import Client
from tests.service import records as given
from tests.service.waiting import until

HTML = {"Accept": "text/html,application/xhtml+xml"}
Connect = Callable[..., None]


def routes() -> list[str]:
    """The paths of all routes of the plugin."""
    from airflow_pipelines.plugin.app import create_app

    return [str(getattr(route, "path", "")) for route in create_app().routes]


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_code"]


def test_every_route_asks_who_is_there_and_whether_they_may(client: Client, connect: Connect, behind: ScriptedService) -> None:
    connect("team", host="http://pipelines:8080")
    nobody, stranger, forged = client(None), client(""), client(None)
    forged.cookies.set("_token", "eyJhbGciOiJIUzUxMiJ9.eyJzdWIiOiJhZG1pbiIsInJvbGUiOiJBRE1JTiJ9.c2lnbmVk")
    paths = [re.sub(r"\{[^}]*\}", "team", path).lstrip("/") for path in routes()]
    assert {"context", "reviews", "task", "connections/team/v0/overview", "connections/team/v0/pipelines/team"} <= set(paths)
    for path in [*paths, "", "js/app.js"]:
        query = f"{path}?dag_id=d&task_id=t&run_id=r"
        assert code(nobody.get(query)) == (401, "Unauthorized"), path
        assert code(stranger.get(query)) == (403, "Forbidden"), path
        assert forged.get(query).status_code in (401, 403), path
    assert behind.calls == []
    # It describes itself to nobody.
    for path in ("docs", "redoc", "openapi.json"):
        assert code(client("VIEWER").get(path)) == (404, "UnknownEndpoint")


def test_who_is_not_logged_in_is_led_to_airflows_login(client: Client) -> None:
    answer = client(None).get("", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (
        307,
        "/api/v2/auth/login?next=http%3A%2F%2Ftestserver%2Fairflow_pipelines%2F",
    )
    assert client(None).get("context", headers=HTML).status_code == 401


def test_the_page_is_shown_in_airflows_frame_only(client: Client) -> None:
    viewer = client("VIEWER")
    page = viewer.get("")
    assert (page.status_code, page.text) == (200, "<p>page</p>")
    assert page.headers["content-security-policy"].endswith("frame-ancestors 'self'")
    assert viewer.get("js/app.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert code(viewer.get("js/none.js")) == (404, "UnknownEndpoint")


def test_the_context_names_the_connections_of_the_type_and_no_key(
    client: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path / "never used"))
    connect("team", host="http://pipelines:8080", password="s3cret-key")
    connect("odd", host="http://pipelines:8080", extra={"deployer": "shared"})
    connect("fresh", extra={"home": str(tmp_path / "fresh")})
    connect("database", conn_type="postgres", host="db")
    answer = client("VIEWER").get("context")
    context = answer.json()
    assert {key: context[key] for key in ("face", "needs_key", "airflow")} == {
        "face": "airflow",
        "needs_key": False,
        "airflow": {"api": "/api/v2/", "ui": "/"},
    }
    shown = {each["id"]: each for each in context["connections"]}
    assert list(shown) == ["fresh", "odd", "team"]
    assert shown["team"] == {"id": "team", "label": "team", "api": "connections/team/v0/", "problem": None}
    assert "deployer" in shown["odd"]["problem"]
    assert "there is no store" in shown["fresh"]["problem"]
    assert "s3cret-key" not in answer.text
    # To look makes nothing.
    assert not (tmp_path / "fresh").exists()
    assert not (tmp_path / "never used").exists()


def test_connections_of_airflows_database_and_of_a_secrets_backend_are_named(
    client: Client, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    monkeypatch.setenv("AIRFLOW__AIRFLOW_PIPELINES__PAGE_CONNECTIONS", "in_a_vault, ")
    with create_session() as session:
        stored = Connection(conn_id="stored", conn_type="airflow_pipelines", host="http://pipelines")
        session.add(stored)
    try:
        shown = {each["id"]: each["problem"] for each in client("VIEWER").get("context").json()["connections"]}
    finally:
        with create_session() as session:
            session.delete(session.merge(stored))
    assert shown["stored"] is None
    assert "There is no connection 'in_a_vault'" in shown["in_a_vault"]


def test_questions_go_to_the_service_behind_the_connection(client: Client, connect: Connect, behind: ScriptedService) -> None:
    connect("team", host="http://pipelines:8080")
    behind.up(name="shop")
    behind.answers["GET", "activity"] = {"t": [1]}
    viewer = client("VIEWER")
    assert viewer.get("connections/team/v0/pipelines/shop?selector=status").json()["name"] == "shop"
    assert viewer.get("connections/team/v0/pipelines/shop/activity?since=5").json() == {"t": [1]}
    assert behind.calls == [
        ("GET", "", {"selector": "status"}, None),
        ("GET", "activity", {"since": "5"}, None),
    ]
    assert code(viewer.get("connections/team/v0/pipelines/none")) == (404, "UnknownPipelineName")


def test_nothing_but_looking_goes_through(client: Client, connect: Connect, behind: ScriptedService) -> None:
    connect("team", host="http://pipelines:8080")
    connect("database", conn_type="postgres", host="db")
    behind.up(name="shop")
    admin = client("ADMIN")
    base = "connections/team/v0/"
    # Compiling may start a host, queries may change tables, and a log that is followed never ends.
    for tail in (
        "dataflow_graph",
        "query?sql=select%201",
        "logs",
        "udf_python",
        "support_bundle",
        "changes/t",
        "time_series_stream",
    ):
        assert code(admin.get(f"{base}pipelines/shop/{tail}")) == (404, "UnknownEndpoint"), tail
    for path in ("pipelines", "secrets", "api_keys", "config", "metrics", "pipelines/shop/../../api_keys"):
        assert admin.get(f"{base}{path}").status_code == 404, path
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for tail in OF_PIPELINE:
            assert admin.request(method, f"{base}pipelines/shop/{tail}".rstrip("/")).status_code == 405
    for name in ("%2e%2e", "..%2fapi_keys", "shop%2fquery"):
        assert admin.get(f"{base}pipelines/{name}").status_code == 404
    # Where a connection leads is Airflow's to say.
    for conn_id in ("database", "none", "http:%2f%2fevil", "http://evil"):
        assert admin.get(f"connections/{conn_id}/v0/overview").status_code == 404, conn_id
    assert all(method == "GET" and tail in OF_PIPELINE for method, tail, _, _ in behind.calls)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, (502, "ConnectionRefused")), (403, (502, "ConnectionRefused")), (503, (503, "PipelineUnavailable"))],
)
def test_what_the_service_refuses_is_not_taken_for_the_persons_session(
    client: Client, connect: Connect, behind: ScriptedService, status: int, expected: tuple[int, str]
) -> None:
    connect("team", host="http://pipelines:8080")
    behind.up(name="shop")
    behind.answers["GET", "stats"] = (status, {"error_code": "PipelineUnavailable", "message": "not now", "details": {}})
    assert code(client("VIEWER").get("connections/team/v0/pipelines/shop/stats")) == expected


def test_a_service_that_is_away_is_named(client: Client, connect: Connect) -> None:
    connect("team", host="http://127.0.0.1:9", password="s3cret-key")
    answer = client("VIEWER").get("connections/team/v0/overview")
    assert code(answer) == (502, "ServiceUnreachable")
    assert "team" in answer.json()["message"]
    assert "s3cret-key" not in answer.text


def test_an_embedded_store_is_looked_at_without_carrying_anything_forward(
    client: Client, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[str] = []
    monkeypatch.setattr(SharedDeployer, "host", lambda _: wanted.append("a host"))
    home = tmp_path / "home"
    control_plane = ControlPlane(Settings.load(home))
    # It waits for a compiler, which whoever else reads it would start.
    control_plane.store.create(given.pending("waits"))
    control_plane.store.create(given.starting())
    connect("here", extra={"home": str(home)})
    viewer: TestClient = client("VIEWER")
    for _ in range(3):
        shown = viewer.get("connections/here/v0/overview").json()["pipelines"]
        assert {each["name"]: each["program_status"] for each in shown} == {"waits": "Pending", "p": "Success"}
        assert viewer.get("connections/here/v0/pipelines/waits").json()["program_status"] == "Pending"
    assert (wanted, control_plane.registry.live_hosts()) == ([], [])
    # It would have: the same question to who carries forward wants a host.
    control_plane.pipeline("waits")
    until(lambda: wanted)
    control_plane.close()


def test_a_connection_that_is_changed_leads_elsewhere(
    client: Client, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_pipelines.plugin import connections

    monkeypatch.setattr(connections, "FRESH_S", 0.0)
    viewer = client("VIEWER")
    for name in ("one", "other"):
        control_plane = ControlPlane(Settings.load(tmp_path / name))
        control_plane.store.create(given.pending(name))
        connect("here", extra={"home": str(tmp_path / name)})
        assert [each["name"] for each in viewer.get("connections/here/v0/overview").json()["pipelines"]] == [name]
        control_plane.close()


def test_the_client_of_a_former_address_is_closed(
    client: Client, connect: Connect, behind: ScriptedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_pipelines.plugin import connections
    from airflow_pipelines.sdk.client import AsyncPipelineClient

    closed: list[AsyncPipelineClient] = []

    async def close(self: AsyncPipelineClient) -> None:
        closed.append(self)

    monkeypatch.setattr(AsyncPipelineClient, "close", close)
    monkeypatch.setattr(connections, "FRESH_S", 0.0)
    monkeypatch.setattr(connections, "LAST_ANSWER_S", 0.0)
    behind.up(name="shop")
    viewer = client("VIEWER")
    for host in ("http://one", "http://one", "http://other"):
        connect("team", host=host)
        assert viewer.get("connections/team/v0/pipelines/shop").status_code == 200
    assert viewer.get("connections/team/v0/pipelines/shop").status_code == 200
    assert len(closed) == 1


def test_a_service_that_the_environment_names_is_behind_connections_without_a_host(
    client: Client, connect: Connect, behind: ScriptedService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("AIRFLOW_PIPELINES_URL", "http://pipelines:8080")
    behind.up(name="shop")
    viewer = client("VIEWER")
    assert [each["id"] for each in viewer.get("context").json()["connections"]] == ["airflow_pipelines_default"]
    assert viewer.get("connections/airflow_pipelines_default/v0/pipelines/shop").json()["name"] == "shop"
    # One with a home of its own is the embedded service all the same.
    connect("here", extra={"home": str(tmp_path / "here")})
    assert code(viewer.get("connections/here/v0/overview")) == (404, "NoStore")
