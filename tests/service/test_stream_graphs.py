"""The graph of a pipeline's stream program, as JSON and as a picture."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.service.control_plane import ControlPlane
from tests.service import records as given

PLAN = {"nodes": [{"id": 1, "type": "Source: <x>", "pact": "Data Source", "contents": "Source: <x>", "parallelism": 1}]}
STREAMS: dict[str, Any] = {
    "name": "fraud",
    "operators": [{"uid": "source"}],
    "sources": [],
    "inputs": [],
    "outputs": [],
    "execution_plan": json.dumps(PLAN),
    "dependencies": {},
}


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    return TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)


def have(app: FastAPI, **fields: Any) -> None:
    control_plane: ControlPlane = app.state.control_plane
    control_plane.store.create(replace(given.stopped(), **fields))


def test_the_graph_and_its_picture(app: FastAPI, api: TestClient) -> None:
    have(app, stream_files=(SourceFile("fraud.py", "x"),), program_info={"schema": {}, "streams": STREAMS})
    graph = api.get("/v0/pipelines/p/stream_graph").json()
    assert graph["execution_plan"] == PLAN
    assert graph["operators"] == [{"uid": "source"}]
    picture = api.get("/v0/pipelines/p/stream_graph", params={"format": "svg"})
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in picture.headers["content-security-policy"]
    assert "Source: &lt;x&gt;" in picture.text
    assert api.get("/v0/pipelines/p/stream_graph", params={"format": "png"}).status_code == 400


def test_pipelines_without_a_graph_say_why(app: FastAPI, api: TestClient) -> None:
    have(app)
    answer = api.get("/v0/pipelines/p/stream_graph")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "InvalidParam")
    assert "has no stream program, only SQL" in answer.json()["message"]
    have(app, name="q", id=given.HOST, stream_files=(SourceFile("fraud.py", "x"),))
    answer = api.get("/v0/pipelines/q/stream_graph")
    assert answer.json()["error_code"] == "ProgramNotCompiled"
