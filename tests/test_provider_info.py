from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import airflow
import jsonschema
import pytest

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.provider_info import get_provider_info


def test_it_is_what_airflow_expects() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


@pytest.mark.core
@pytest.mark.processes
def test_it_loads_nothing() -> None:
    code = "import sys, airflow_pipelines.provider_info as p; p.get_provider_info(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"airflow", "pyspark", "fastapi", "sqlalchemy", "httpx", "pandas", "airflow_pipelines.hooks.pipeline"}
    assert not heavy & set(loaded)


def test_every_module_it_names_can_be_imported() -> None:
    info = get_provider_info()
    for room in ("hooks", "operators", "sensors", "triggers"):
        for entry in info[room]:
            for module in entry["python-modules"]:
                importlib.import_module(module)


def test_every_class_and_function_it_names_is_there() -> None:
    info = get_provider_info()
    named = [*info["notifications"], *(decorator["class-name"] for decorator in info["task-decorators"])]
    assert named
    for path in named:
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_the_connection_type_is_the_hooks() -> None:
    (connection_type,) = get_provider_info()["connection-types"]
    assert connection_type["connection-type"] == PipelineHook.conn_type
    assert connection_type["hook-class-name"] == f"{PipelineHook.__module__}.{PipelineHook.__qualname__}"
    assert connection_type["hook-name"] == PipelineHook.hook_name


def test_airflow_finds_the_package_and_its_connection_type() -> None:
    from airflow.providers_manager import ProvidersManager
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime

    assert "airflow-pipelines" in ProvidersManager().providers
    hook = ProvidersManagerTaskRuntime().hooks[PipelineHook.conn_type]
    assert hook is not None
    assert hook.connection_id_attribute_name == PipelineHook.conn_name_attr
