from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2}
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
    waiting = {"success": None, "failure": None, "periodic": None}
    scripted.answers["GET", "checkpoint/sync_status"] = [waiting, waiting | {"success": uuid}]
    assert SyncCheckpointOperator(**COMMON).execute({}) == {"pipeline": "p", "checkpoint": uuid}


def test_a_sync_without_an_object_store_is_refused(scripted: ScriptedService) -> None:
    scripted.up("Running")
    refusal = {"error_code": "InvalidParam", "message": "no object store is configured", "details": {}}
    scripted.answers["POST", "checkpoint/sync"] = (400, refusal)
    with pytest.raises(AirflowFailException, match="no object store is configured"):
        SyncCheckpointOperator(**COMMON).execute({})
