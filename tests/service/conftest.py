"""Fixtures of the service's tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.app import create_app
from airflow_pipelines.service.control_plane import ControlPlane
from tests.fixtures.serving import serving
from tests.service.waiting import until

if TYPE_CHECKING:
    from fastapi import FastAPI


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of :func:`app`; a file with needs of its own overrides them."""
    return Settings.load(tmp_path)


@pytest.fixture
def app(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """A service that never starts a host."""
    app = create_app(settings)
    monkeypatch.setattr(app.state.control_plane.compiler, "host", lambda: None)
    yield app
    app.state.control_plane.close()


@pytest.fixture
def url(processes: None, app: FastAPI) -> Iterator[str]:
    """Where :func:`app` is served."""
    with serving(app) as url:
        yield url


@pytest.fixture
def name(request: pytest.FixtureRequest, service_app: FastAPI) -> Iterator[str]:
    """A pipeline of this test's own name, gone afterwards."""
    name = request.node.name.replace("_", "-")[:60]
    yield name
    control_plane: ControlPlane = service_app.state.control_plane
    if control_plane.store.find(name) is None:
        return
    control_plane.stop(name, force=True)
    until(lambda: control_plane.pipeline(name).fully_stopped)
    control_plane.clear(name)
    until(lambda: control_plane.pipeline(name).storage_status.value == "Cleared")
    control_plane.delete(name)


@pytest.fixture
def control_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    """A control plane without HTTP; a file with needs of its own has another."""
    # What a test patches stays patched until the background work has ended; else that could start a real host.
    control_plane = ControlPlane(Settings.load(tmp_path, heartbeat_timeout_s=1.0))
    yield control_plane
    control_plane.close()


@pytest.fixture
def process(processes: None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a host on this machine."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()
