"""What is asked of pipelines, without HTTP."""

from __future__ import annotations

import pytest

from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.lifecycle.requests import StartRequest


def test_starts_are_remembered_with_their_deployer(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane.compiler, "host", lambda: None)
    control_plane.create({"name": "p", "program_code": ""})
    assert control_plane.start("p", StartRequest(deployer=control_plane.deployers.default)).deployer == "shared"
