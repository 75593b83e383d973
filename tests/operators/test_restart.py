from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.restart import RestartPipelineOperator
from tests.fixtures.airflow import ScriptedService, StateStore

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2, "poke_interval": 0.01}
LATER = "01900000-0000-7000-8000-0000000000ff"


def restarts(scripted: ScriptedService, **stopped: Any) -> None:
    """A pipeline that stops and starts as it is asked."""
    scripted.up()
    scripted.answers["POST", "stop"] = lambda: scripted.pipeline(**stopped) and (202, "stopping")
    scripted.answers["POST", "start"] = lambda: scripted.up(deployment_id=LATER) and (202, "starting")


def test_it_stops_with_a_checkpoint_and_starts(scripted: ScriptedService) -> None:
    restarts(scripted)
    result = RestartPipelineOperator(**COMMON, bootstrap_policy="allow").execute({})
    assert (result["status"], result["deployment_id"], result["attached"]) == ("RUNNING", LATER, False)
    posts = [(tail, params) for method, tail, params, _ in scripted.calls if method == "POST"]
    assert [tail for tail, _ in posts] == ["stop", "start"]
    assert posts[0][1] == {"force": "false"}
    assert posts[1][1] == {"initial": "running", "bootstrap_policy": "allow"}


def test_a_pipeline_that_is_stopped_is_started(scripted: ScriptedService) -> None:
    restarts(scripted)
    scripted.pipeline()
    RestartPipelineOperator(**COMMON, mode="force").execute({})
    assert scripted.asked("POST") == ["start"]


def test_a_final_checkpoint_that_fails_leaves_it_stopped(scripted: ScriptedService) -> None:
    error = {"error_code": "StorageError", "message": "the disk is full", "details": {}}
    restarts(scripted, deployment_error=error)
    with pytest.raises(AirflowFailException, match=r"was not started again: StorageError: the disk is full"):
        RestartPipelineOperator(**COMMON).execute({})
    assert scripted.asked("POST") == ["stop"]
    # Whoever stops by force goes on from the last checkpoint anyway.
    restarts(scripted, deployment_error=error)
    RestartPipelineOperator(**COMMON, mode="force").execute({})


def test_a_retry_goes_on_where_the_first_try_was_lost(scripted: ScriptedService) -> None:
    restarts(scripted)
    context: Any = {"task_state_store": StateStore()}
    scripted.answers["POST", "start"] = (409, {"error_code": "", "message": "not now", "details": {}})
    with pytest.raises(AirflowFailException, match="not now"):
        RestartPipelineOperator(**COMMON).execute(context)
    scripted.up(deployment_id=LATER)
    scripted.calls.clear()
    assert RestartPipelineOperator(**COMMON).execute(context)["attached"] is True
    assert scripted.asked("POST") == []
    # A task that ended well and is cleared restarts once more.
    restarts(scripted)
    RestartPipelineOperator(**COMMON).execute(context)
    assert scripted.asked("POST") == ["stop", "start"]


def test_both_waits_are_in_the_triggerer(scripted: ScriptedService) -> None:
    scripted.up()
    operator = RestartPipelineOperator(**COMMON, deferrable=True)
    with pytest.raises(TaskDeferred) as stopping:
        operator.execute({})
    assert stopping.value.trigger.condition == {"kind": "status", "statuses": ("STOPPED",)}
    scripted.pipeline()
    scripted.answers["POST", "start"] = lambda: scripted.up("Initializing") and (202, "starting")
    event = {"outcome": "reached", "message": "", "result": {"status": "STOPPED"}}
    with pytest.raises(TaskDeferred) as starting:
        operator.execute_complete({}, event, **stopping.value.kwargs)
    assert scripted.asked("POST") == ["stop", "start"]
    scripted.up(deployment_id=LATER)
    event = {"outcome": "reached", "message": "", "result": {"status": "RUNNING"}}
    assert operator.execute_complete({}, event, **starting.value.kwargs)["deployment_id"] == LATER


def test_words_are_checked() -> None:
    with pytest.raises(ValueError, match="mode is 'gently'; known: checkpoint, force"):
        RestartPipelineOperator(**COMMON, mode="gently")
    operator = RestartPipelineOperator(**COMMON, mode="{{ params.mode }}")
    operator.mode = ""
    with pytest.raises(AirflowFailException, match="mode is empty"):
        operator.execute({})
