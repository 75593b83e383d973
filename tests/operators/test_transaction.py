from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.operators.transaction import (
    CommitTransactionOperator,
    StartTransactionOperator,
    UndoTransactionOperator,
)
from tests.fixtures.airflow import ScriptedService, StateStore

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2, "poke_interval": 0.01}
RUN, LATER_RUN = "01900000-0000-7000-8000-0000000000a1", "01900000-0000-7000-8000-0000000000a2"
STARTED = {"pipeline": "p", "transaction_id": 3, "incarnation": RUN}


def stats(number: int = 0, *, run: str = RUN, by_api: str | None = "Started", status: str | None = None) -> dict[str, Any]:
    status = status or ("TransactionInProgress" if number else "NoTransaction")
    initiators = {"transaction_id": number or None, "initiated_by_api": by_api if number else None}
    metrics = {
        "incarnation_uuid": run,
        "transaction_id": number,
        "transaction_status": status,
        "transaction_records": 5 if number else None,
        "transaction_initiators": initiators,
        "commit_progress": None,
        "total_processed_records": 9,
        "total_completed_steps": 2,
    }
    return {"global_metrics": metrics}


def test_a_transaction_is_started(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["POST", "start_transaction"] = {"transaction_id": 3}
    scripted.answers["GET", "stats"] = [stats(), stats(3)]
    assert StartTransactionOperator(**COMMON).execute({}) == STARTED
    assert scripted.asked("POST") == ["start_transaction"]


def test_a_retry_finds_the_transaction_of_the_first_try_and_no_other(scripted: ScriptedService) -> None:
    scripted.up()
    context: Any = {"task_state_store": StateStore()}
    scripted.answers["POST", "start_transaction"] = {"transaction_id": 3}
    scripted.answers["GET", "stats"] = [stats(), stats(3)]
    StartTransactionOperator(**COMMON).execute(context)
    assert StartTransactionOperator(**COMMON).execute(context) == STARTED
    assert scripted.asked("POST") == ["start_transaction"]
    # The same number in another run is another transaction.
    busy = {"error_code": "TransactionInProgress", "message": "Transaction 3 is in progress", "details": {}}
    scripted.answers["GET", "stats"] = stats(3, run=LATER_RUN)
    scripted.answers["POST", "start_transaction"] = (409, busy)
    with pytest.raises(AirflowFailException, match="Transaction 3 is in progress"):
        StartTransactionOperator(**COMMON).execute(context)


def test_a_checkpoint_comes_before(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = [stats(), stats(3)]
    scripted.answers["POST", "start_transaction"] = {"transaction_id": 3}
    scripted.answers["POST", "checkpoint"] = {"checkpoint_sequence_number": 4, "incarnation_uuid": RUN}
    scripted.answers["GET", "checkpoint_status"] = [{"success": None, "failure": None}, {"success": 4, "failure": None}]
    assert StartTransactionOperator(**COMMON, checkpoint=True).execute({}) == STARTED
    assert scripted.asked("POST") == ["checkpoint", "start_transaction"]


def test_a_commit_is_waited_for(scripted: ScriptedService) -> None:
    scripted.up()
    going = stats(3, by_api="Committed", status="CommitInProgress")
    # The SDK looks once more which transaction is in progress before it commits it.
    scripted.answers["GET", "stats"] = [stats(3), stats(3), going, stats()]
    result = CommitTransactionOperator(**COMMON, transaction=STARTED).execute({})
    assert result == {"pipeline": "p", "transaction_id": 3, "records": 5}
    assert scripted.asked("POST") == ["commit_transaction"]


def test_a_retry_commits_nothing_twice(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = [stats(3, by_api="Committed"), stats()]
    assert CommitTransactionOperator(**COMMON, transaction=STARTED).execute({})["records"] == 5
    scripted.answers["GET", "stats"] = stats(4)
    assert CommitTransactionOperator(**COMMON, transaction=STARTED).execute({})["records"] is None
    assert scripted.asked("POST") == []


def test_a_restart_fails_the_commit_instead_of_committing_something_else(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3, run=LATER_RUN)
    with pytest.raises(AirflowFailException, match="was restarted since transaction 3 began"):
        CommitTransactionOperator(**COMMON, transaction=STARTED).execute({})
    scripted.answers["GET", "stats"] = [stats(3), stats(3), stats(3, run=LATER_RUN)]
    with pytest.raises(AirflowFailException, match="which may have undone the transaction"):
        CommitTransactionOperator(**COMMON, transaction=STARTED).execute({})


@pytest.mark.parametrize("lost", [None, "", "None", "{}", {"transaction_id": None, "incarnation": RUN}, {"transaction_id": 3}])
def test_a_transaction_that_is_lost_is_not_whichever_there_is(scripted: ScriptedService, lost: Any) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3)
    for operator in (CommitTransactionOperator, UndoTransactionOperator):
        with pytest.raises(AirflowFailException, match="transaction"):
            operator(**COMMON, transaction=lost).execute({})
    assert scripted.asked("POST") == []


def test_undoing_restarts_by_force(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3)
    scripted.answers["POST", "stop"] = lambda: scripted.pipeline() and (202, "stopping")
    scripted.answers["POST", "start"] = lambda: scripted.up(deployment_id=LATER_RUN) and (202, "starting")
    result = UndoTransactionOperator(**COMMON, transaction=STARTED).execute({})
    assert result == {"pipeline": "p", "transaction_id": 3, "undone": True}
    posts = [(tail, params) for method, tail, params, _ in scripted.calls if method == "POST"]
    assert posts[0] == ("stop", {"force": "true"})
    assert [tail for tail, _ in posts] == ["stop", "start"]


@pytest.mark.parametrize(
    "seen", [stats(), stats(4), stats(3, run=LATER_RUN), stats(3, by_api="Committed"), stats(3, status="CommitInProgress")]
)
def test_what_is_committed_is_not_undone(scripted: ScriptedService, seen: dict[str, Any]) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = seen
    assert UndoTransactionOperator(**COMMON, transaction=STARTED).execute({})["undone"] is False
    assert scripted.asked("POST") == []


def test_a_pipeline_that_is_down_has_nothing_to_undo(scripted: ScriptedService) -> None:
    scripted.pipeline()
    refusal = {"error_code": "PipelineInteractionNotDeployed", "message": "it is stopped", "details": {}}
    scripted.answers["GET", "stats"] = (503, refusal)
    assert UndoTransactionOperator(**COMMON, transaction=STARTED).execute({})["undone"] is False


def test_a_retry_of_an_undo_that_was_lost_starts_the_pipeline(scripted: ScriptedService) -> None:
    scripted.up()
    context: Any = {"task_state_store": StateStore()}
    scripted.answers["GET", "stats"] = stats(3)
    scripted.answers["POST", "stop"] = lambda: scripted.pipeline() and (202, "stopping")
    scripted.answers["POST", "start"] = (409, {"error_code": "", "message": "not now", "details": {}})
    with pytest.raises(AirflowFailException, match="not now"):
        UndoTransactionOperator(**COMMON, transaction=STARTED).execute(context)
    refusal = {"error_code": "PipelineInteractionNotDeployed", "message": "it is stopped", "details": {}}
    scripted.answers["GET", "stats"] = (503, refusal)
    scripted.answers["POST", "start"] = lambda: scripted.up(deployment_id=LATER_RUN) and (202, "starting")
    assert UndoTransactionOperator(**COMMON, transaction=STARTED).execute(context)["undone"] is True


def test_the_commit_is_waited_for_in_the_triggerer(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3)
    operator = CommitTransactionOperator(**COMMON, transaction=STARTED, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    assert deferred.value.trigger.condition == {"kind": "transaction_ended", "transaction": 3, "incarnation": RUN}
    event = {"outcome": "reached", "message": "", "result": {"status": "RUNNING"}}
    assert operator.execute_complete({}, event, **deferred.value.kwargs)["records"] == 5
