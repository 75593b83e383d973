"""What every operator must keep to."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines import operators
from airflow_pipelines.operators.base import PipelineOperator, airflow_errors
from airflow_pipelines.provider_info import get_provider_info
from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelineConnectionError,
    PipelineFailedError,
    PipelineTimeoutError,
    ProgramCompilationError,
)
from tests.fixtures.airflow import ScriptedService

UUID = "01900000-0000-7000-8000-00000000000c"
STARTED = {"transaction_id": 1, "incarnation": UUID}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "CheckPipelineOperator": {"view": "v", "condition": "a > 0"},
    "CollectSupportBundleOperator": {"path": "bundle.zip"},
    "CommitTransactionOperator": {"transaction": STARTED},
    "CompletionTokenOperator": {"table": "t", "connector": "c"},
    "DeployPipelineOperator": {"sql": "create table t (a int);"},
    "GatedModifyOperator": {"sql": "create table t (a int);"},
    "IngestFileOperator": {"table": "t", "path": "rows.csv"},
    "IngestOperator": {"table": "t", "rows": []},
    "ModifyPipelineOperator": {"sql": "create table t (a int);"},
    "PlanPipelineOperator": {"sql": "create table t (a int);"},
    "QueryPipelineOperator": {"query": "select 1"},
    "ReviewPlanOperator": {"plan": {"pipeline": "p"}},
    "UndoTransactionOperator": {"transaction": STARTED},
}
OPERATORS: list[tuple[Any, dict[str, Any]]] = [(getattr(operators, name), ARGUMENTS.get(name, {})) for name in operators.__all__]


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS, ids=lambda value: getattr(value, "__name__", ""))
def test_template_fields_are_attributes_taken_as_they_come(operator: Any, arguments: dict[str, Any]) -> None:
    templates = {name: f"{{{{ params.{name} }}}}" for name in operator.template_fields if name in {*arguments, "pipeline_name"}}
    made = operator(task_id="x", **arguments | {"pipeline_name": "p"} | templates)
    assert set(made.template_fields) <= set(vars(made))
    for name, template in templates.items():
        assert getattr(made, name) == template


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS, ids=lambda value: getattr(value, "__name__", ""))
def test_killing_a_task_leaves_the_pipeline_alone(scripted: ScriptedService, operator: Any, arguments: dict[str, Any]) -> None:
    scripted.up()
    operator(task_id="x", pipeline_name="p", **arguments).on_kill()
    assert scripted.calls == []


def test_making_an_operator_connects_to_nothing(scripted: ScriptedService) -> None:
    PipelineOperator(task_id="x", pipeline_name="p", pipeline_conn_id="there is none")
    assert scripted.calls == []


@pytest.mark.parametrize(
    "error",
    [
        ProgramCompilationError("1:1: no", {}),
        PipelineFailedError("went down"),
        PipelineAPIError(400, "UpdateRestrictedToStopped", "stop it first"),
        PipelineAPIError(404, "UnknownPipelineName", "none"),
        ValueError("no such thing"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_trying_again_cannot_help_fails_the_task_for_good(error: Exception) -> None:
    with pytest.raises(AirflowFailException) as raised, airflow_errors():
        raise error
    assert str(raised.value) == str(error)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [
        PipelineConnectionError("refused"),
        PipelineTimeoutError("slow"),
        PipelineAPIError(502, "", "bad gateway"),
        PipelineAPIError(429, "ApiConnectionLimit", "too many"),
    ],
    ids=str,
)
def test_what_may_pass_is_left_to_the_tasks_retries(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, airflow_errors():
        raise error
    assert raised.value is error


def test_every_operator_can_be_imported_from_the_package_and_is_in_the_providers_list() -> None:
    found = {
        name
        for path in Path(operators.__file__).parent.glob("*.py")
        for name, value in vars(importlib.import_module(f"airflow_pipelines.operators.{path.stem}")).items()
        if name.endswith("Operator") and isinstance(value, type) and value.__module__ == f"airflow_pipelines.operators.{path.stem}"
    }
    bases = {"CheckpointRequestOperator", "IngestingOperator", "PipelineOperator", "QueryingOperator", "WaitingPipelineOperator"}
    assert found - bases == set(operators.__all__)
    assert set(operators.__all__) <= set(dir(operators))
    listed = {module for entry in get_provider_info()["operators"] for module in entry["python-modules"]}
    assert {getattr(operators, name).__module__ for name in operators.__all__} == listed
    with pytest.raises(AttributeError, match="no attribute 'StartOperator'"):
        _ = operators.StartOperator


@pytest.mark.core
@pytest.mark.processes
def test_importing_the_package_of_operators_loads_none_of_them() -> None:
    code = "import sys, airflow_pipelines.operators; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"airflow", "airflow_pipelines.operators.base"} & set(loaded)


@pytest.mark.parametrize(("operator", "arguments"), OPERATORS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_it_is_about_may_not_be_lost(scripted: ScriptedService, operator: Any, arguments: dict[str, Any]) -> None:
    scripted.up()
    with pytest.raises(AirflowFailException, match="pipeline_name is empty"):
        operator(task_id="x", pipeline_name="None", **arguments).execute({})
    assert scripted.calls == []
