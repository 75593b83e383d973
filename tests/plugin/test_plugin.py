"""The plugin as Airflow loads it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_pipelines.plugin import paths


def test_the_entry_point_leads_to_the_plugin(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["airflow.plugins"]["airflow_pipelines"].partition(":")
    plugin = getattr(importlib.import_module(module), name)
    plugin.validate()
    assert plugin.name == "airflow_pipelines"
    views = {view["destination"]: view for view in plugin.external_views}
    assert views["nav"]["href"] == "/airflow_pipelines/"
    assert views["task_instance"]["href"] == (
        "/airflow_pipelines/?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"
    )
    # In Airflow's addresses each has a name of its own.
    assert len({view["url_route"] for view in views.values()}) == len(plugin.external_views) == 2


@pytest.mark.parametrize(
    ("base_url", "path"),
    [("http://localhost:8080", ""), ("https://a.example.com/team/one/", "/team/one"), ("/", ""), ("https://a.example.com/", "")],
)
def test_addresses_begin_with_the_path_of_the_base_url(monkeypatch: pytest.MonkeyPatch, base_url: str, path: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    task_instance = SimpleNamespace(dag_id="a/b", run_id="r?", task_id="t", map_index=2)
    assert paths.airflow_path() == path
    assert paths.request_page(task_instance) == f"{path}/dags/a%2Fb/runs/r%3F/tasks/t/mapped/2/required_actions"
    assert paths.request_answer(task_instance) == f"{path}/api/v2/dags/a%2Fb/dagRuns/r%3F/taskInstances/t/2/hitlDetails"


@pytest.mark.processes
def test_a_process_that_serves_no_pages_loads_nothing_of_the_application() -> None:
    code = (
        "import sys, airflow.sdk.plugins_manager, airflow.configuration\n"
        "before = set(sys.modules)\n"
        "import airflow_pipelines.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "airflow_pipelines.plugin" in loaded
    ours = {"airflow_pipelines", "airflow_pipelines.links", "airflow_pipelines.links.page_links"}
    assert [name for name in loaded if not name.startswith("airflow_pipelines.plugin") and name not in ours] == []
    assert "airflow_pipelines.plugin.app" not in loaded
