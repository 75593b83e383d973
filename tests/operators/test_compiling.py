"""Deploying where the compiler has to be started first."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineTimeoutError
from airflow_pipelines.triggers.compiler import PROBE, CompilerTrigger
from tests.fixtures.airflow import ScriptedService

SQL = "create table t (b int);"
COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "sql": SQL, "deferrable": True}
READY = {"outcome": "reached", "message": "", "result": {}}


@pytest.fixture
def starting(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> ScriptedService:
    """A service whose compiler takes longer than a task should wait for it."""
    request = PipelineClient.request

    def slow(client: PipelineClient, method: str, path: str, **options: Any) -> Any:
        if (options.get("json") or {}).get("program_code") == PROBE:
            raise PipelineTimeoutError("no answer within 3 s")
        return request(client, method, path, **options)

    monkeypatch.setattr(PipelineClient, "request", slow)
    scripted.answers["POST", ""] = lambda: scripted.pipeline(program_code=SQL)
    return scripted


@pytest.mark.parametrize("if_exists", ["modify", "replace"])
def test_a_deployment_waits_for_the_compiler_in_the_triggerer_before_it_does_anything(
    starting: ScriptedService, if_exists: str
) -> None:
    if if_exists == "replace":
        starting.pipeline()
    operator = DeployPipelineOperator(**COMMON, if_exists=if_exists)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    assert isinstance(deferred.value.trigger, CompilerTrigger)
    assert deferred.value.method_name == "execute_complete"
    assert starting.asked("POST") + starting.asked("PUT") + starting.asked("PATCH") == []
    if if_exists == "modify":
        assert DeployPipelineOperator(**COMMON).execute_complete({}, READY)["action"] == "created"


def test_a_modification_does_so_too_but_not_for_nothing(starting: ScriptedService) -> None:
    starting.pipeline(program_code="create table t (a int);")
    with pytest.raises(TaskDeferred):
        ModifyPipelineOperator(**COMMON).execute({})
    starting.pipeline(program_code=SQL)
    assert ModifyPipelineOperator(**COMMON).execute({})["changed"] == []
    starting.pipeline(program_code=SQL)
    assert DeployPipelineOperator(**COMMON, if_exists="keep").execute({})["action"] == "kept"


def test_a_compiler_that_is_there_is_used_at_once(scripted: ScriptedService) -> None:
    scripted.answers["POST", ""] = lambda: scripted.pipeline(program_code=SQL)
    assert DeployPipelineOperator(**COMMON).execute({})["action"] == "created"
    assert [program["program_code"] for program in scripted.validated] == [PROBE, SQL]


def test_a_compiler_that_does_not_come_fails_the_task(starting: ScriptedService) -> None:
    event = {"outcome": "error", "message": "the compiler for pipeline 'p': no", "result": {}}
    with pytest.raises(AirflowFailException, match="the compiler for pipeline 'p': no"):
        DeployPipelineOperator(**COMMON).execute_complete({}, event)
    assert starting.calls == []
