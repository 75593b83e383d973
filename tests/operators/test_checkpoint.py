from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2, "poke_interval": 0.01}
DONE = {"success": 4, "failure": None}


def takes_checkpoints(scripted: ScriptedService, status: Any = DONE) -> None:
    details = {"checkpoints": [{"uuid": "0193", "steps": 7, "processed_records": 10}]}
    scripted.up("Running", storage_status_details=details)
    scripted.answers["POST", "checkpoint"] = {"checkpoint_sequence_number": 4, "incarnation_uuid": "i"}
    scripted.answers["GET", "checkpoint_status"] = status


def test_a_checkpoint_is_waited_for(scripted: ScriptedService) -> None:
    takes_checkpoints(scripted, [{"success": None, "failure": None}, DONE])
    assert CheckpointPipelineOperator(**COMMON).execute({}) == {
        "pipeline": "p",
        "checkpoint": "0193",
        "sequence": 4,
        "steps": 7,
        "processed_records": 10,
    }


def test_assets_learn_which_checkpoint_it_was(scripted: ScriptedService) -> None:
    takes_checkpoints(scripted)
    asset = Asset("pipeline-checkpoint")
    events: Any = defaultdict(lambda: SimpleNamespace(extra={}))
    CheckpointPipelineOperator(**COMMON, outlets=[asset]).execute({"outlet_events": events})
    assert events[asset].extra["checkpoint"] == "0193"


def test_a_checkpoint_that_fails_while_the_pipeline_lives_is_worth_a_retry(scripted: ScriptedService) -> None:
    failure = {"sequence_number": 4, "error": "the disk is full", "failed_at": "now"}
    takes_checkpoints(scripted, {"success": None, "failure": failure})
    with pytest.raises(RuntimeError, match="the disk is full") as raised:
        CheckpointPipelineOperator(**COMMON).execute({})
    assert not isinstance(raised.value, AirflowFailException)


def test_a_pipeline_that_dies_meanwhile_is_not(scripted: ScriptedService) -> None:
    takes_checkpoints(scripted)
    error = {"error_code": "HostLost", "message": "gone\nlast words", "details": {}}
    scripted.answers["POST", "checkpoint"] = lambda: (
        scripted.pipeline(deployment_error=error) and {"checkpoint_sequence_number": 4, "incarnation_uuid": "i"}
    )
    with pytest.raises(AirflowFailException, match="last words"):
        CheckpointPipelineOperator(**COMMON).execute({})


def test_a_sync_is_waited_for(scripted: ScriptedService) -> None:
    uuid = "01900000-0000-7000-8000-00000000000c"
    scripted.up("Running")
    scripted.answers["POST", "checkpoint/sync"] = (202, {"checkpoint_uuid": uuid, "incarnation_uuid": "i"})
    waiting = {"success": None, "failure": None, "periodic": None, "copies": []}
    copied = waiting | {"success": uuid, "copies": [{"uuid": uuid, "error": None}]}
    scripted.answers["GET", "checkpoint/sync_status"] = [waiting, copied]
    assert SyncCheckpointOperator(**COMMON).execute({}) == {"pipeline": "p", "checkpoint": uuid}


def test_a_sync_without_an_object_store_is_refused(scripted: ScriptedService) -> None:
    scripted.up("Running")
    refusal = {"error_code": "InvalidParam", "message": "no object store is configured", "details": {}}
    scripted.answers["POST", "checkpoint/sync"] = (400, refusal)
    with pytest.raises(AirflowFailException, match="no object store is configured"):
        SyncCheckpointOperator(**COMMON).execute({})


UUID = "01900000-0000-7000-8000-00000000000c"


def test_a_sync_copies_what_it_is_told_and_keeps_what_it_is_told(scripted: ScriptedService) -> None:
    scripted.up("Running")
    scripted.answers["POST", "checkpoint/sync"] = (202, {"checkpoint_uuid": UUID, "incarnation_uuid": "i"})
    scripted.answers["GET", "checkpoint/sync_status"] = {"copies": [{"uuid": UUID, "error": None}]}
    asset = Asset("pipeline-copy")
    events: Any = defaultdict(lambda: SimpleNamespace(extra={}))
    operator = SyncCheckpointOperator(**COMMON, checkpoint=UUID, retention_min_count="3", retention_min_age=7, outlets=[asset])
    assert operator.execute({"outlet_events": events})["checkpoint"] == UUID
    sent = next(params for method, _, params, _ in scripted.calls if method == "POST")
    assert sent == {"checkpoint_uuid": UUID, "retention_min_count": "3", "retention_min_age": "7.0"}
    assert events[asset].extra == {"pipeline": "p", "checkpoint": UUID}


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("checkpoint", "", "checkpoint is empty"),
        ("checkpoint", "None", "checkpoint is empty"),
        ("checkpoint", "latest", "'latest', which is no UUID of a checkpoint"),
        ("retention_min_count", "", "retention_min_count is empty"),
        ("retention_min_count", -1, "should be at least 0"),
        ("retention_min_age", "a week", "which is no number"),
    ],
)
def test_what_is_lost_is_neither_the_newest_nor_the_configured(
    scripted: ScriptedService, argument: str, value: Any, message: str
) -> None:
    scripted.up("Running")
    with pytest.raises(AirflowFailException, match=message):
        SyncCheckpointOperator(**COMMON, **{argument: value}).execute({})
    assert scripted.calls == []


def test_a_sync_that_fails_while_the_pipeline_lives_is_worth_a_retry(scripted: ScriptedService) -> None:
    scripted.up("Running")
    scripted.answers["POST", "checkpoint/sync"] = (202, {"checkpoint_uuid": UUID, "incarnation_uuid": "i"})
    scripted.answers["GET", "checkpoint/sync_status"] = {"copies": [{"uuid": UUID, "error": "no such bucket"}]}
    with pytest.raises(RuntimeError, match="no such bucket"):
        SyncCheckpointOperator(**COMMON).execute({})
    # The pipeline was restarted meanwhile, and knows nothing of the request.
    mismatch = {"error_code": "IncarnationUuidMismatch", "message": "This is incarnation k", "details": {}}
    scripted.answers["GET", "checkpoint/sync_status"] = (400, mismatch)
    with pytest.raises(RuntimeError, match="This is incarnation k"):
        SyncCheckpointOperator(**COMMON).execute({})


@pytest.mark.parametrize("operator", [CheckpointPipelineOperator, SyncCheckpointOperator])
def test_both_wait_in_the_triggerer_with_the_same_errors(scripted: ScriptedService, operator: Any) -> None:
    takes_checkpoints(scripted, {"success": None, "failure": None})
    scripted.answers["POST", "checkpoint/sync"] = (202, {"checkpoint_uuid": UUID, "incarnation_uuid": "i"})
    scripted.answers["GET", "checkpoint/sync_status"] = {"copies": []}
    task = operator(**COMMON, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    assert deferred.value.trigger.condition["incarnation"] == "i"
    reached = {"outcome": "reached", "message": "", "result": {"status": "RUNNING"}}
    assert task.execute_complete({}, reached, **deferred.value.kwargs)["pipeline"] == "p"
    failed = {"outcome": "failed", "message": "the disk is full", "result": {"status": "RUNNING"}}
    with pytest.raises(RuntimeError, match="the disk is full") as passing:
        task.execute_complete({}, failed, **deferred.value.kwargs)
    assert not isinstance(passing.value, AirflowFailException)
    failed["result"] = {"status": "STOPPED", "deployment_error": {"message": "gone"}}
    with pytest.raises(AirflowFailException, match="the disk is full"):
        task.execute_complete({}, failed, **deferred.value.kwargs)
