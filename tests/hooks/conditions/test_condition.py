from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import (
    ApprovalCondition,
    CheckpointCondition,
    CompletionCondition,
    Condition,
    ConnectorEndCondition,
    IdleCondition,
    LagCondition,
    MetricCondition,
    Observation,
    PollOutcome,
    StartedCondition,
    StatusCondition,
    SyncCondition,
    TokenCondition,
    ViewCondition,
    is_transient,
)
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError
from tests.hooks.conditions.polls import seen


def stats(received: int, processed: int, *, complete: bool = False, incarnation: str = "i") -> dict[str, Any]:
    metrics = {
        "total_input_records": received,
        "total_processed_records": processed,
        "total_completed_records": processed,
        "total_completed_steps": 1,
        "pipeline_complete": complete,
        "incarnation_uuid": incarnation,
    }
    return {"global_metrics": metrics}


ALL = [
    StatusCondition(("RUNNING", "PAUSED")),
    StartedCondition(("RUNNING",)),
    TokenCondition("abc"),
    IdleCondition(3.5),
    CompletionCondition(),
    CheckpointCondition("2026-01-01T00:00:00+00:00"),
    SyncCondition("01900000-0000-7000-8000-000000000001"),
    ConnectorEndCondition("orders.files"),
    LagCondition(max_records=10, connector="orders.topic"),
    MetricCondition("records_input_buffered", "<", 10, {"pipeline_name": "p"}),
    ViewCondition("select count(*) from v", ">=", 3),
    ApprovalCondition(),
]


@pytest.mark.parametrize("condition", ALL, ids=lambda condition: condition.kind)
def test_a_condition_survives_json(condition: Condition) -> None:
    assert Condition.from_wire(json.loads(json.dumps(condition.to_wire()))) == condition


def test_an_unknown_condition_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"known: approval, .*completion, .*idle, .*view"):
        Condition.from_wire({"kind": "moon phase"})


def test_status_is_compared_whatever_its_case() -> None:
    condition = StatusCondition(("running",))
    assert condition.judge(seen("Running"), None).outcome is PollOutcome.REACHED
    assert condition.judge(seen("Initializing"), None).outcome is PollOutcome.PENDING
    with pytest.raises(ValueError, match="known: "):
        StatusCondition(("RUNING",))


def test_a_pipeline_that_went_down_with_an_error_fails_every_wait_with_that_error() -> None:
    error = {"error_code": "HostLost", "message": "the host died\nlast line of its log", "details": {}}
    down = seen("Stopped", "Stopped", error=error)
    for condition in ALL:
        verdict = condition.judge(down, None)
        assert verdict.outcome is PollOutcome.FAILED
        assert "HostLost: the host died\nlast line of its log" in verdict.message
        assert verdict.result["deployment_error"] == error


def test_waiting_for_stopped_accepts_a_pipeline_that_stopped_with_an_error() -> None:
    error = {"error_code": "X", "message": "m"}
    assert StatusCondition(("STOPPED",)).judge(seen("Stopped", "Stopped", error=error), None).outcome is PollOutcome.REACHED


def test_a_stopped_pipeline_may_still_start_unless_one_has_just_asked_it_to() -> None:
    stopped = seen("Stopped", "Stopped")
    assert StatusCondition(("RUNNING",)).judge(stopped, None).outcome is PollOutcome.PENDING
    assert StartedCondition(("RUNNING",)).judge(stopped, None).outcome is PollOutcome.FAILED
    # Asked for, and only not there yet because the program still compiles.
    assert StartedCondition(("RUNNING",)).judge(seen("Stopped", "Running"), None).outcome is PollOutcome.PENDING


def test_no_pipeline_fails_a_wait_unless_that_is_what_one_waits_for() -> None:
    nothing = Observation(None, 1.0)
    for condition in ALL:
        assert condition.judge(nothing, None).outcome is PollOutcome.FAILED
    assert StatusCondition(("NOT_FOUND",)).judge(nothing, None).outcome is PollOutcome.REACHED


def test_a_token_is_complete_pending_or_of_another_incarnation() -> None:
    condition = TokenCondition("t")
    assert condition.judge(seen(answer={"status": "inprogress", "step": None}), None).outcome is PollOutcome.PENDING
    complete = {"status": "complete", "step": 7, "durable": True}
    assert condition.judge(seen(answer=complete), None).result == complete
    assert condition.request().params == {"token": "t"}
    assert TokenCondition("t", checkpoint=True).request().params == {"token": "t", "checkpoint": "true"}
    assert Condition.from_wire({"kind": "token", "token": "t"}) == condition, "as deferred by an earlier release"
    gone = PipelineAPIError(410, "PipelineRestarted", "the token is from before the restart")
    verdict = condition.judge(seen(refusal=gone), None)
    assert verdict.outcome is PollOutcome.FAILED
    assert "before the restart" in verdict.message


def test_a_phase_in_which_the_runtime_does_not_answer_is_waited_for() -> None:
    early = PipelineAPIError(503, "Initializing", "still initializing")
    for condition in (TokenCondition("t"), IdleCondition(), CompletionCondition()):
        assert condition.judge(seen("Initializing", refusal=early), None).outcome is PollOutcome.PENDING
        assert condition.judge(seen("Provisioning"), None).outcome is PollOutcome.PENDING


def test_a_pipeline_that_is_ending_is_polled_until_its_error_is_known() -> None:
    ending = PipelineAPIError(410, "Terminating", "The pipeline p is being stopped.")
    for condition in (TokenCondition("t"), IdleCondition(), CompletionCondition()):
        verdict = condition.judge(seen(refusal=ending), None)
        assert (verdict.outcome, verdict.message) == (PollOutcome.PENDING, "RUNNING, The pipeline p is being stopped.")


def test_idle_needs_equal_counters_for_the_whole_interval() -> None:
    condition = IdleCondition(5.0)
    memory = None
    outcomes = []
    for at, received, processed in ((100, 10, 8), (101, 10, 10), (104, 12, 12), (108, 12, 12), (109, 12, 12)):
        verdict = condition.judge(seen(at=at, answer=stats(received, processed)), memory)
        memory = verdict.memory
        outcomes.append(verdict.outcome)
    assert outcomes == [PollOutcome.PENDING] * 4 + [PollOutcome.REACHED]
    assert verdict.result["total_processed_records"] == 12


def test_idle_remembers_across_a_gap_but_not_across_a_restart() -> None:
    condition = IdleCondition(5.0)
    memory = condition.judge(seen(at=100, answer=stats(3, 3)), None).memory
    json.dumps(memory)
    assert condition.judge(seen(at=200, answer=stats(3, 3)), memory).outcome is PollOutcome.REACHED
    assert condition.judge(seen(at=200, answer=stats(3, 3, incarnation="other")), memory).outcome is PollOutcome.PENDING


def test_completion_follows_the_pipelines_own_word() -> None:
    condition = CompletionCondition()
    assert condition.judge(seen(answer=stats(3, 3)), None).outcome is PollOutcome.PENDING
    assert condition.judge(seen(answer=stats(3, 3, complete=True)), None).outcome is PollOutcome.REACHED


def test_an_output_that_has_failed_ends_waits_for_delivery() -> None:
    outputs = [{"endpoint_name": "v.out", "fatal_error": "too long"}, {"endpoint_name": "v.other", "fatal_error": None}]
    verdict = CompletionCondition().judge(seen(answer=stats(3, 3) | {"outputs": outputs}), None)
    assert (verdict.outcome, verdict.message) == (PollOutcome.FAILED, "output v.out has failed: too long")
    assert verdict.result["failed_outputs"] == {"v.out": "too long"}
    # It had nothing to deliver.
    verdict = CompletionCondition().judge(seen(answer=stats(3, 3, complete=True) | {"outputs": outputs}), None)
    assert verdict.outcome is PollOutcome.REACHED
    refused = PipelineAPIError(410, "OutputFailed", "output v.out has failed: too long")
    verdict = TokenCondition("t").judge(seen(refusal=refused), None)
    assert verdict.outcome is PollOutcome.FAILED
    assert "output v.out has failed: too long" in verdict.message


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (PipelineConnectionError("refused"), True),
        (PipelineAPIError(500, "InternalError", ""), True),
        (PipelineAPIError(503, "DeadlockDetected", ""), True),
        (PipelineAPIError(503, "Initializing", ""), False),
        (PipelineAPIError(400, "InvalidParam", ""), False),
        (PipelineAPIError(410, "Terminating", ""), False),
    ],
    ids=str,
)
def test_which_errors_may_pass(error: Any, transient: bool) -> None:
    assert is_transient(error) is transient
