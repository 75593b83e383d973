from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.storage import ClearPipelineStorageOperator
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2, "poke_interval": 0.01}


def test_what_is_stored_is_cleared(scripted: ScriptedService) -> None:
    scripted.pipeline(storage_status="InUse")
    scripted.answers["POST", "clear"] = lambda: scripted.pipeline(storage_status="Clearing") and (202, "clearing")
    with pytest.raises(TaskDeferred):
        ClearPipelineStorageOperator(**COMMON, deferrable=True).execute({})
    scripted.pipeline(storage_status="InUse")
    scripted.answers["POST", "clear"] = lambda: scripted.pipeline() and (202, "clearing")
    assert ClearPipelineStorageOperator(**COMMON).execute({}) == {"pipeline": "p", "cleared": True}


def test_nothing_stored_is_left_alone(scripted: ScriptedService) -> None:
    scripted.pipeline()
    assert ClearPipelineStorageOperator(**COMMON).execute({}) == {"pipeline": "p", "cleared": False}
    assert scripted.asked("POST") == []


def test_a_pipeline_that_runs_keeps_its_storage(scripted: ScriptedService) -> None:
    scripted.up(storage_status="InUse")
    refusal = {"error_code": "StorageStatusImmutableUnlessStopped", "message": "stop it first", "details": {}}
    scripted.answers["POST", "clear"] = (400, refusal)
    with pytest.raises(AirflowFailException, match="stop it first"):
        ClearPipelineStorageOperator(**COMMON).execute({})
    with pytest.raises(AirflowFailException, match="There is no pipeline 'gone'"):
        ClearPipelineStorageOperator(**COMMON | {"pipeline_name": "gone"}).execute({})
