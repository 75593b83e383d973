from __future__ import annotations

import json

import pytest

from airflow_pipelines.hooks.conditions import Observation, PollOutcome, StartedCondition, StatusCondition
from tests.hooks.conditions.polls import seen


@pytest.mark.parametrize("now", ["Running", "Paused", "Suspended"])
def test_a_status_of_the_start_that_is_over_ends_the_wait(now: str) -> None:
    verdict = StatusCondition(("AWAITINGAPPROVAL", "BOOTSTRAPPING")).judge(seen(now), None)
    assert verdict.outcome is PollOutcome.FAILED
    assert f"is {now.upper()} already" in verdict.message
    assert "AWAITINGAPPROVAL or BOOTSTRAPPING only while it starts" in verdict.message
    # One that may still come keeps the wait going.
    assert StatusCondition(("AWAITINGAPPROVAL", "STOPPED")).judge(seen(now), None).outcome is PollOutcome.PENDING


def test_a_pipeline_that_is_stopped_while_its_running_is_awaited_ends_the_wait() -> None:
    condition = StatusCondition(("RUNNING",))
    memory = condition.judge(seen("Initializing"), None).memory
    # Also when the poll after it comes from another process.
    memory = json.loads(json.dumps(memory))
    verdict = condition.judge(seen("Stopping", "Stopped"), memory)
    assert verdict.outcome is PollOutcome.FAILED
    assert "it was stopped" in verdict.message


def test_one_that_was_never_up_may_still_be_started() -> None:
    condition = StatusCondition(("RUNNING",))
    memory = None
    for status in ("Stopped", "Stopped"):
        verdict = condition.judge(seen(status, "Stopped"), memory)
        assert verdict.outcome is PollOutcome.PENDING
        memory = verdict.memory
    assert condition.judge(seen("Running"), memory).outcome is PollOutcome.REACHED


def test_a_restart_is_no_end_for_who_waits_for_stopped_as_well() -> None:
    condition = StatusCondition(("PAUSED", "STOPPED"))
    memory = condition.judge(seen("Running"), None).memory
    assert condition.judge(seen("Stopping", "Stopped"), memory).outcome is PollOutcome.PENDING
    gone = StatusCondition(("NOT_FOUND",))
    memory = gone.judge(seen("Running"), None).memory
    assert gone.judge(seen("Stopped", "Stopped"), memory).outcome is PollOutcome.PENDING
    assert gone.judge(Observation(None, 1.0), memory).outcome is PollOutcome.REACHED


def test_who_has_just_started_it_gives_up_on_a_stopped_one_at_the_first_look() -> None:
    assert StartedCondition(("RUNNING",)).judge(seen("Stopped", "Stopped"), None).outcome is PollOutcome.FAILED
