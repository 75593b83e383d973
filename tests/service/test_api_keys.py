"""API keys and their scopes, over real HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from feldera import FelderaClient

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.service.api_keys import ApiKeys, KeyScope

pytestmark = pytest.mark.core


def test_from_the_first_key_on_keys_are_asked_for(app: FastAPI, url: str, tmp_path: Path) -> None:
    owner = app.state.control_plane.api_keys.create("owner", KeyScope.WRITE)[1]
    # As the foreign client makes others.
    made = FelderaClient(url, api_key=owner).create_api_key("first")
    assert httpx.delete(f"{url}/v0/api_keys/owner", headers={"Authorization": f"Bearer {owner}"}).status_code == 200
    key, headers = made["api_key"], {"Authorization": f"Bearer {made['api_key']}"}
    assert httpx.get(f"{url}/v0/pipelines").status_code == 401
    assert httpx.get(f"{url}/v0/nothing", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert FelderaClient(url, api_key=key).pipelines() == []
    shown = {"id": made["id"], "name": "first", "role": "write", "scopes": ["Read", "Write"]}
    assert httpx.get(f"{url}/v0/api_keys", headers=headers).json() == [shown]
    assert httpx.get(f"{url}/v0/api_keys/first", headers=headers).json() == shown
    for file in tmp_path.glob("store.sqlite*"):
        assert key.encode() not in file.read_bytes()
    # Another process of the same store knows them too; the embedded service is the store's owner and asks nobody.
    assert ApiKeys(app.state.control_plane.store.engine).scope_of(key) is KeyScope.WRITE
    assert PipelineClient(home=tmp_path).get("/v0/pipelines") == []
    assert httpx.delete(f"{url}/v0/api_keys/first", headers=headers).status_code == 200
    assert httpx.get(f"{url}/v0/pipelines", headers=headers).status_code == 401


@pytest.mark.core("/v0/api_keys", "/v0/api_keys/")
@pytest.mark.parametrize("path", ["/v0/api_keys", "/v0/api_keys/", "/v0//api_keys", "/v0/%61pi_keys"])
def test_nobody_makes_the_first_key_from_elsewhere(app: FastAPI, url: str, path: str, tmp_path: Path) -> None:
    answer = httpx.post(f"{url}{path}", json={"name": "mine"}, follow_redirects=True)
    assert answer.status_code in ((401,) if "//" not in path[1:] else (401, 404))
    if answer.status_code == 401:
        assert "airflow-pipelines keys create NAME" in answer.json()["message"]
    assert app.state.control_plane.api_keys.all() == []
    assert httpx.get(f"{url}/v0/pipelines").status_code == 200, "nobody was locked out"
    # The owner of the store makes it, and its holder makes others.
    key = PipelineClient(home=tmp_path).create_api_key("owner")
    assert httpx.get(f"{url}/v0/pipelines").status_code == 401
    headers = {"Authorization": f"Bearer {key}"}
    assert httpx.post(f"{url}/v0/api_keys", json={"name": "other"}, headers=headers).status_code == 201


def test_a_key_for_reading_changes_nothing(app: FastAPI, url: str) -> None:
    keys: ApiKeys = app.state.control_plane.api_keys
    with httpx.Client(base_url=url) as writer, httpx.Client(base_url=url) as reader:
        writer.headers["Authorization"] = f"Bearer {keys.create('w', KeyScope.WRITE)[1]}"
        reader.headers["Authorization"] = f"Bearer {keys.create('r', KeyScope.READ)[1]}"
        assert writer.post("/v0/pipelines", json={"name": "p", "program_code": ""}).status_code == 201
        before = app.state.control_plane.store.require("p")
        for path in ("", "/p", "/p/events", "/p/udf_python"):
            assert reader.get(f"/v0/pipelines{path}").status_code == 200
        for method, path in (
            ("POST", "/pipelines"),
            ("PUT", "/pipelines/p"),
            ("PATCH", "/pipelines/p"),
            ("DELETE", "/pipelines/p"),
            ("POST", "/pipelines/p/start"),
            ("POST", "/pipelines/p/ingress/t"),
            ("POST", "/pipelines/p/checkpoint"),
            ("POST", "/pipelines/p/query/x"),
            ("POST", "/validate_program"),
            ("POST", "/api_keys"),
            ("DELETE", "/api_keys/w"),
        ):
            answer = reader.request(method, f"/v0{path}", json={"name": "q", "program_code": ""})
            assert (answer.status_code, answer.json()["error_code"]) == (403, "ScopeExceeded"), path
        # These read although they are posts; nothing runs, so that they get no further.
        for path in ("query", "egress/t"):
            assert reader.post(f"/v0/pipelines/p/{path}", json={"sql": "select 1"}).status_code == 503
        assert app.state.control_plane.store.require("p").version == before.version
        assert [key.name for key in keys.all()] == ["w", "r"]
