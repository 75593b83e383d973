"""Connectors see what they may see of the host's environment."""

from __future__ import annotations

import pytest

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.host.main import connector_environment


def test_only_named_variables_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_USER", "DATA_PASSWORD", "DATABASE_URL", "data_user"):
        monkeypatch.setenv(name, name)
    monkeypatch.setenv("AIRFLOW_PIPELINES_CONNECTOR_ENV", "DATA_*, OTHER")
    assert connector_environment(Settings.load().connector_env) == {"DATA_USER": "DATA_USER", "DATA_PASSWORD": "DATA_PASSWORD"}
    monkeypatch.delenv("AIRFLOW_PIPELINES_CONNECTOR_ENV")
    assert connector_environment(Settings.load().connector_env) == {}
