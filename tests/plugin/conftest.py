"""Airflow's own database, users and dependencies, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from airflow_pipelines.serving import page_files
from tests.fixtures.airflow import ScriptedService

Client = Callable[[str | None], TestClient]


@pytest.fixture(scope="session")
def airflow_tables() -> None:
    """The tables of Airflow's database, which is a file of this process's own."""
    from airflow import settings
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from airflow.utils.db import resetdb  # noqa: F401  loads what registers the rest of the tables

    import_all_models()
    Base.metadata.create_all(settings.engine)


@pytest.fixture(scope="session")
def airflow_app(airflow_tables: None) -> FastAPI:
    """An application that knows who is there, as Airflow's own does."""
    from airflow.api_fastapi.app import init_auth_manager

    app = FastAPI()
    init_auth_manager(app)
    return app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of two files."""
    page = tmp_path / "page"
    (page / "js").mkdir(parents=True)
    (page / "index.html").write_text("<p>page</p>")
    (page / "js" / "app.js").write_text("1")
    monkeypatch.setattr(page_files, "FOLDER", page)
    return page


@pytest.fixture
def client(airflow_app: FastAPI, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Makes clients of the plugin as Airflow mounts it, logged in with a role of Airflow's simple users.

    None is nobody, and an empty text somebody without a role.
    """
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    from airflow_pipelines.plugin import AirflowPipelinesPlugin
    from airflow_pipelines.plugin.late_app import LateApp

    # Not the pipelines of whoever runs the tests.
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path / "default home"))
    monkeypatch.delenv("AIRFLOW_PIPELINES_URL", raising=False)
    # The API server says so of itself; only then is Airflow's database asked for connections.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    # A new one each time: it keeps a client for each connection.
    (mounted,) = AirflowPipelinesPlugin.fastapi_apps
    root = FastAPI()
    root.mount(mounted["url_prefix"], LateApp())
    made: list[TestClient] = []

    def client(role: str | None) -> TestClient:
        cookies = {}
        if role is not None:
            user = SimpleAuthManagerUser(username=f"a {role}", role=role or None)
            cookies = {"_token": get_auth_manager().generate_jwt(user)}
        made.append(
            TestClient(root, base_url=f"http://testserver{mounted['url_prefix']}/", cookies=cookies, follow_redirects=False)
        )
        # One loop for all of its requests, as a server has.
        made[-1].__enter__()
        return made[-1]

    yield client
    for one in made:
        one.__exit__(None, None, None)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds a connection to Airflow."""

    def connect(conn_id: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "airflow_pipelines"} | fields))

    return connect


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> ScriptedService:
    """The service behind every connection that has a host."""
    from airflow_pipelines.plugin import connections
    from airflow_pipelines.sdk.client import AsyncPipelineClient

    service = ScriptedService()
    monkeypatch.setattr(connections, "AsyncPipelineClient", lambda **_: AsyncPipelineClient(app=service))
    return service
