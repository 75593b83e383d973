"""What every operator must keep to."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.errors import (
    PipelineAPIError,
    PipelineConnectionError,
    PipelineFailedError,
    PipelineTimeoutError,
    ProgramCompilationError,
)
from airflow_pipelines.operators.approval import ApprovePipelineOperator, ReviewPipelineChangeOperator
from airflow_pipelines.operators.base import PipelineOperator, airflow_errors
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
from airflow_pipelines.operators.data import (
    CompletionTokenOperator,
    IngestFileOperator,
    IngestOperator,
    QueryPipelineOperator,
)
from airflow_pipelines.operators.gated import GatedModifyOperator
from airflow_pipelines.operators.lifecycle import (
    DeletePipelineOperator,
    PausePipelineOperator,
    ResumePipelineOperator,
    StartPipelineOperator,
    StopPipelineOperator,
)
from airflow_pipelines.operators.plan import PlanPipelineOperator
from tests.fixtures.airflow import ScriptedService

OPERATORS: list[tuple[Any, dict[str, Any]]] = [
    (ApprovePipelineOperator, {}),
    (CheckpointPipelineOperator, {}),
    (CompletionTokenOperator, {"table": "t", "connector": "c"}),
    (DeletePipelineOperator, {}),
    (DeployPipelineOperator, {"sql": "create table t (a int);"}),
    (GatedModifyOperator, {"sql": "create table t (a int);"}),
    (IngestFileOperator, {"table": "t", "path": "rows.csv"}),
    (IngestOperator, {"table": "t", "rows": []}),
    (ModifyPipelineOperator, {"sql": "create table t (a int);"}),
    (PausePipelineOperator, {}),
    (PlanPipelineOperator, {"sql": "create table t (a int);"}),
    (QueryPipelineOperator, {"query": "select 1"}),
    (ResumePipelineOperator, {}),
    (ReviewPipelineChangeOperator, {}),
    (StartPipelineOperator, {}),
    (StopPipelineOperator, {}),
    (SyncCheckpointOperator, {}),
]


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
    from airflow.sdk.exceptions import AirflowFailException

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
