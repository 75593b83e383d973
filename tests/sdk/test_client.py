"""Clients: where they go, what they show of themselves, and what importing them costs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_pipelines
from airflow_pipelines import AsyncPipelineClient, PipelineAPIError, PipelineClient
from tests.scripted import Scripted, problem


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "API_KEY", "HOME"):
        monkeypatch.delenv(f"AIRFLOW_PIPELINES_{name}", raising=False)


def test_without_a_url_the_service_is_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path))
    client = PipelineClient()
    assert client.is_embedded
    assert client.url is None
    assert repr(client) == f"PipelineClient(home={str(tmp_path)!r})"
    assert not list(tmp_path.iterdir()), "nothing is made before the first call"


def test_the_environment_names_a_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_URL", "http://pipelines:8080/")
    monkeypatch.setenv("AIRFLOW_PIPELINES_API_KEY", "hush")
    assert PipelineClient().url == "http://pipelines:8080"
    assert PipelineClient("http://other/v0").url == "http://other"
    assert PipelineClient(home=tmp_path).is_embedded, "an argument wins over the environment"


def test_a_url_and_a_home_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="either a url or a home"):
        PipelineClient("http://x", home=tmp_path)


@pytest.mark.parametrize("kind", [PipelineClient, AsyncPipelineClient])
def test_the_key_is_never_shown(kind: type[PipelineClient]) -> None:
    client = kind("http://x", "hush")
    assert repr(client) == f"{kind.__name__}(url='http://x')"
    assert "hush" not in str(client)


@pytest.mark.parametrize("kind", [PipelineClient, AsyncPipelineClient])
def test_a_client_is_not_pickled_with_its_key(kind: type[PipelineClient]) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(kind("http://x", "hush"))


def test_version_and_health() -> None:
    service = Scripted().on("GET config", {"version": "0.1.0", "edition": "Enterprise"}).on("GET /healthz", {"status": "healthy"})
    assert service.client.version() == "0.1.0"
    assert service.client.is_healthy()
    service.on("GET /healthz", problem(503, "X", "no")).on("GET cluster_healthz", {"all_healthy": True})
    assert not service.client.is_healthy()
    assert service.client.cluster_health() == {"all_healthy": True}
    service.on("GET cluster_healthz", (503, {"all_healthy": False, "compiler": {"healthy": False}}))
    assert service.client.cluster_health()["compiler"] == {"healthy": False}


def test_what_is_asked_of_the_service(tmp_path: Path) -> None:
    with PipelineClient(home=tmp_path) as client:
        newest = client.get_cluster_events()[0]
        assert client.get_cluster_event("latest") == newest
        assert "api_self_info" in client.get_cluster_event(newest["id"], selector="all")
        key = client.create_api_key("dashboard", role="read")
        assert [(each["name"], each["role"]) for each in client.api_keys()] == [("dashboard", "read")]
        assert key not in repr(client.api_keys())
        client.delete_api_key("dashboard")
        assert client.api_keys() == []
        with pytest.raises(PipelineAPIError) as refused:
            client.validate_program("create table t (x int);", runtime_version="0.0.1")
        assert refused.value.error_code == "InvalidRuntimeVersion"


def test_the_embedded_service_answers(tmp_path: Path) -> None:
    client = PipelineClient(home=tmp_path)
    assert client.get_config()["edition"] == "Enterprise"
    assert client.is_healthy()
    assert client.get("/v0/pipelines") == []
    assert (tmp_path / "store.sqlite").exists()


def test_the_embedded_service_wants_no_key_of_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_API_KEYS", "hush")
    assert PipelineClient(home=tmp_path).get("/v0/pipelines") == []


@pytest.mark.core
@pytest.mark.processes
def test_importing_the_sdk_imports_nothing_heavy() -> None:
    code = (
        "import sys, airflow_pipelines\n"
        "assert 'airflow_pipelines.sdk.client' not in sys.modules\n"
        "for name in airflow_pipelines.__all__: getattr(airflow_pipelines, name)\n"
        "heavy = {'pyspark', 'airflow', 'pandas', 'pyarrow', 'fastapi', 'sqlalchemy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_listed() -> None:
    assert set(airflow_pipelines.__all__) <= set(dir(airflow_pipelines))
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        airflow_pipelines.Nothing  # noqa: B018
