from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.lifecycle import (
    DeletePipelineOperator,
    PausePipelineOperator,
    ResumePipelineOperator,
    StartPipelineOperator,
    StopPipelineOperator,
)
from airflow_pipelines.sdk.errors import PipelineTimeoutError
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p"}
WAITING: dict[str, Any] = COMMON | {"poke_interval": 0.01, "timeout": 2}
DIFF = {
    "program_diff": {
        "added_tables": [],
        "removed_tables": [],
        "modified_tables": [],
        "added_views": ["v"],
        "removed_views": [],
        "modified_views": [],
    },
    "program_diff_error": None,
    "added_input_connectors": [],
}


def becomes(change: Callable[[], Any], answer: Any = "ok") -> Callable[[], Any]:
    """An answer to a call that changes the pipeline."""

    def act() -> Any:
        change()
        return answer

    return act


def test_start_starts_and_waits(scripted: ScriptedService) -> None:
    scripted.pipeline()
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Running"))
    assert StartPipelineOperator(**WAITING, bootstrap_policy="allow").execute({}) == {
        "pipeline": "p",
        "status": "RUNNING",
        "deployment_id": "01900000-0000-7000-8000-00000000000d",
        "attached": False,
        "diff": None,
        "programs": None,
        "views_evaluated_anew": None,
    }
    ((_, _, params, _),) = [call for call in scripted.calls if call[0] == "POST"]
    assert params == {"initial": "running", "bootstrap_policy": "allow"}


def test_start_attaches_to_what_runs(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert StartPipelineOperator(**WAITING).execute({})["attached"] is True
    assert scripted.asked("POST") == []


def test_a_retry_while_it_starts_does_not_start_another(scripted: ScriptedService) -> None:
    # The service takes an equal start of a starting pipeline for the same one, and refuses an unequal one.
    scripted.up("Provisioning")
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Running"))
    assert StartPipelineOperator(**WAITING).execute({})["attached"] is True


def test_start_that_contradicts_what_runs_is_refused_in_the_services_words(scripted: ScriptedService) -> None:
    scripted.up("Running")
    refusal = {"error_code": "InitialImmutableUnlessStopped", "message": "it is running, not paused", "details": {}}
    scripted.answers["POST", "start"] = (400, refusal)
    with pytest.raises(AirflowFailException, match="it is running, not paused"):
        StartPipelineOperator(**WAITING, initial="paused").execute({})


def test_start_does_not_resume_behind_somebodys_back(scripted: ScriptedService) -> None:
    scripted.up("Paused")
    with pytest.raises(AirflowFailException, match=r"PAUSED.*ResumePipelineOperator"):
        StartPipelineOperator(**WAITING).execute({})
    assert StartPipelineOperator(**WAITING, initial="paused").execute({})["status"] == "PAUSED"


def test_start_waits_for_a_stop_that_is_under_way(scripted: ScriptedService) -> None:
    stopping = scripted.pipeline(deployment_status="Stopping", deployment_resources_status="Stopping")
    stopped = scripted.pipeline()
    running = scripted.up("Running")
    scripted.answers["GET", ""] = [stopping, stopping, stopped, stopped, running]
    scripted.answers["POST", "start"] = "ok"
    assert StartPipelineOperator(**WAITING).execute({})["status"] == "RUNNING"
    assert scripted.asked("POST") == ["start"]


def test_start_stops_at_an_approval_and_shows_it(scripted: ScriptedService) -> None:
    scripted.pipeline()
    programs = {"saved": {"hash": "0" * 64}, "new": {"hash": "1" * 64, "version": 2}}
    details = {"approval_diff": DIFF, "programs": programs, "views_evaluated_anew": {"v": "why"}}
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("AwaitingApproval", deployment_runtime_status_details=details))
    result = StartPipelineOperator(**WAITING).execute({})
    assert result["status"] == "AWAITINGAPPROVAL"
    assert (result["diff"], result["programs"], result["views_evaluated_anew"]) == (DIFF, programs, {"v": "why"})


def test_a_start_that_fails_tells_why(scripted: ScriptedService) -> None:
    scripted.pipeline()
    error = {"error_code": "BootstrapRejected", "message": "the program changed"}
    scripted.answers["POST", "start"] = becomes(lambda: scripted.pipeline(deployment_error=error))
    with pytest.raises(AirflowFailException, match="BootstrapRejected: the program changed"):
        StartPipelineOperator(**WAITING).execute({})


def test_a_start_that_takes_too_long_says_what_it_saw(scripted: ScriptedService) -> None:
    scripted.pipeline()
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Initializing"))
    with pytest.raises(PipelineTimeoutError, match="last seen: INITIALIZING"):
        StartPipelineOperator(**WAITING | {"timeout": 0.05}).execute({})


def test_a_deferred_start_goes_on_where_it_left(scripted: ScriptedService) -> None:
    scripted.pipeline()
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Initializing"))
    with pytest.raises(TaskDeferred) as raised:
        StartPipelineOperator(**WAITING, deferrable=True).execute({})
    assert raised.value.kwargs == {"carried": {"attached": False}}
    scripted.up("Running")
    event = {"outcome": "reached", "message": "RUNNING", "result": {"status": "RUNNING"}}
    # Airflow makes a new operator in a new process for the second half.
    result = StartPipelineOperator(**WAITING, deferrable=True).execute_complete({}, event, **raised.value.kwargs)
    assert (result["status"], result["attached"]) == ("RUNNING", False)


def test_start_refuses_words_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="known: running, paused"):
        StartPipelineOperator(**COMMON, initial="standing")
    with pytest.raises(ValueError, match="known: allow, await_approval, reject"):
        StartPipelineOperator(**COMMON, bootstrap_policy="maybe")


UUIDS = [f"01900000-0000-7000-8000-00000000000{number}" for number in (1, 2, 3)]
LISTED = [{"uuid": uuid, "steps": 10 * at, "processed_records": 100 * at} for at, uuid in enumerate(UUIDS)]


@pytest.mark.parametrize(
    ("offered", "listed", "told"),
    [
        ([{"uuid": UUIDS[0], "lost_steps": 3, "lost_records": 41}], LISTED, "loses the 3 steps after it, with 41 records"),
        ([], LISTED, f"the 20 steps with 200 records that the newest checkpoint, {UUIDS[2]}, has beyond it, and"),
        ([], [], "loses whatever came after it; the pipeline does not list that checkpoint"),
    ],
)
def test_going_back_says_what_is_lost(
    scripted: ScriptedService, capsys: pytest.CaptureFixture[str], offered: Any, listed: Any, told: str
) -> None:
    error = {"error_code": "RuntimeError.StorageDamaged", "message": "damaged", "details": {"checkpoints": offered}}
    scripted.pipeline(deployment_error=error, storage_status_details={"checkpoints": listed})
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Running"))
    start = StartPipelineOperator(**WAITING, from_checkpoint="{{ params.back_to }}")
    start.render_template_fields({"params": {"back_to": UUIDS[0]}})
    assert start.execute({})["status"] == "RUNNING"
    ((_, _, params, _),) = [call for call in scripted.calls if call[0] == "POST"]
    assert params["from_checkpoint"] == UUIDS[0]
    log = capsys.readouterr().out
    assert f"Going back to checkpoint {UUIDS[0]}" in log
    assert told in log


def test_going_back_is_up_to_the_service_when_the_pipeline_is_up(
    scripted: ScriptedService, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.up("Running")
    scripted.answers["POST", "start"] = [
        "ok",
        (400, {"error_code": "FromCheckpointImmutableUnlessStopped", "message": "stop it first", "details": {}}),
    ]
    start = StartPipelineOperator(**WAITING, from_checkpoint=UUIDS[0])
    assert start.execute({})["attached"] is True
    with pytest.raises(AirflowFailException, match="stop it first"):
        start.execute({})
    assert "loses" not in capsys.readouterr().out, "nothing is lost by attaching"


def test_going_back_to_nothing_is_a_plain_start_and_to_no_uuid_none(scripted: ScriptedService) -> None:
    scripted.pipeline()
    scripted.answers["POST", "start"] = becomes(lambda: scripted.up("Running"))
    with pytest.raises(AirflowFailException, match="from_checkpoint is 'None', which is no UUID"):
        StartPipelineOperator(**WAITING, from_checkpoint="None").execute({})
    assert scripted.asked("POST") == []
    assert StartPipelineOperator(**WAITING, from_checkpoint="").execute({})["status"] == "RUNNING"
    assert [params for method, _, params, _ in scripted.calls if method == "POST"] == [
        {"initial": "running", "bootstrap_policy": "await_approval"}
    ]


def test_pause_and_resume(scripted: ScriptedService) -> None:
    scripted.up("Running")
    scripted.answers["POST", "pause"] = becomes(lambda: scripted.up("Paused"))
    scripted.answers["POST", "resume"] = becomes(lambda: scripted.up("Running"))
    assert PausePipelineOperator(**WAITING).execute({}) == {"pipeline": "p", "status": "PAUSED"}
    assert ResumePipelineOperator(**WAITING).execute({}) == {"pipeline": "p", "status": "RUNNING"}


def test_pausing_what_does_not_run_is_refused(scripted: ScriptedService) -> None:
    scripted.pipeline()
    refusal = {"error_code": "PipelineInteractionNotDeployed", "message": "it is Stopped: start it first", "details": {}}
    scripted.answers["POST", "pause"] = (503, refusal)
    with pytest.raises(AirflowFailException, match="it is Stopped: start it first"):
        PausePipelineOperator(**WAITING).execute({})


@pytest.mark.parametrize(("mode", "force"), [("checkpoint", "false"), ("force", "true")])
def test_stop(scripted: ScriptedService, mode: str, force: str) -> None:
    scripted.up("Running")
    details = {"checkpoints": [{"uuid": "0192"}]}
    scripted.answers["POST", "stop"] = becomes(lambda: scripted.pipeline(storage_status_details=details))
    assert StopPipelineOperator(**WAITING, mode=mode).execute({}) == {"pipeline": "p", "status": "STOPPED", "checkpoint": "0192"}
    assert [call[2] for call in scripted.calls if call[0] == "POST"] == [{"force": force}]


def test_stop_leaves_what_is_stopped(scripted: ScriptedService) -> None:
    scripted.pipeline(deployment_error={"error_code": "Old", "message": "of another day"})
    assert StopPipelineOperator(**WAITING).execute({})["status"] == "STOPPED"
    assert scripted.asked("POST") == []


def test_a_checkpoint_that_failed_while_stopping_is_not_hidden(scripted: ScriptedService) -> None:
    scripted.up("Running")
    error = {"error_code": "SuspendError", "message": "the disk is full"}
    scripted.answers["POST", "stop"] = becomes(lambda: scripted.pipeline(deployment_error=error))
    with pytest.raises(AirflowFailException, match="SuspendError: the disk is full"):
        StopPipelineOperator(**WAITING).execute({})


def test_delete_clears_and_deletes_once(scripted: ScriptedService) -> None:
    scripted.pipeline(storage_status="InUse")
    scripted.answers["POST", "clear"] = becomes(lambda: scripted.pipeline())
    scripted.answers["DELETE", ""] = becomes(lambda: scripted.pipelines.clear(), {})
    assert DeletePipelineOperator(**COMMON).execute({}) == {"pipeline": "p", "deleted": True}
    assert DeletePipelineOperator(**COMMON).execute({}) == {"pipeline": "p", "deleted": False}
    assert scripted.asked("DELETE") == [""]
