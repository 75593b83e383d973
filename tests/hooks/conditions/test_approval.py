from __future__ import annotations

from airflow_pipelines.hooks.conditions import ApprovalCondition, Observation, PollOutcome
from tests.hooks.conditions.polls import descriptor, seen

PROGRAMS = {"saved": {"hash": "a", "version": 1}, "new": {"hash": "b", "version": 2}}


def test_a_change_that_waits_is_found_with_what_names_its_programs() -> None:
    details = {"approval_diff": {"views": {"added": ["v"]}}, "programs": PROGRAMS, "views_evaluated_anew": {"w": "layout"}}
    verdict = ApprovalCondition().judge(
        Observation(descriptor("AwaitingApproval", deployment_runtime_status_details=details), 1.0), None
    )
    assert verdict.outcome is PollOutcome.REACHED
    assert verdict.result == {
        "status": "AWAITINGAPPROVAL",
        "diff": {"views": {"added": ["v"]}},
        "programs": PROGRAMS,
        "views_evaluated_anew": {"w": "layout"},
    }


def test_a_change_may_come_later() -> None:
    assert ApprovalCondition().judge(seen("Running"), None).outcome is PollOutcome.PENDING
    # A change is deployed while the pipeline is stopped.
    assert ApprovalCondition().judge(seen("Stopped", "Stopped"), None).outcome is PollOutcome.PENDING
    nothing_yet = Observation(descriptor("AwaitingApproval", deployment_runtime_status_details=None), 1.0)
    assert ApprovalCondition().judge(nothing_yet, None).outcome is PollOutcome.PENDING
    assert ApprovalCondition().judge(Observation(None, 1.0), None).outcome is PollOutcome.FAILED
