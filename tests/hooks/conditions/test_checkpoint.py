from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from airflow_pipelines.hooks.conditions import CheckpointCondition, Observation, PollOutcome, SyncCondition
from airflow_pipelines.hooks.conditions.checkpoint import time_of
from airflow_pipelines.sdk.errors import PipelineAPIError
from tests.hooks.conditions.polls import descriptor, seen

OLD, NEW = (str(UUID(int=uuid7().int)) for _ in range(2))


def holding(*uuids: str, status: str = "Running", desired: str = "Running") -> Observation:
    entries = [{"uuid": uuid, "steps": 4, "processed_records": 9, "size": 77, "identifier": None} for uuid in uuids]
    return Observation(descriptor(status, desired, storage_status_details={"checkpoints": entries}), 1.0)


def test_the_identity_of_a_checkpoint_says_when_it_was_taken() -> None:
    before = datetime.now(UTC)
    taken = time_of(UUID(int=uuid7().int))
    assert before - timedelta(milliseconds=1) <= taken <= datetime.now(UTC)


def test_a_newer_checkpoint_is_found_with_its_figures() -> None:
    condition = CheckpointCondition(OLD)
    assert condition.judge(holding(), None).outcome is PollOutcome.PENDING
    assert condition.judge(holding(OLD), None).outcome is PollOutcome.PENDING, "the same one is not newer"
    found = condition.judge(holding(NEW, OLD), None)
    assert found.outcome is PollOutcome.REACHED
    assert found.result["checkpoint"] == NEW
    assert {name: found.result[name] for name in ("steps", "processed_records", "size")} == {
        "steps": 4,
        "processed_records": 9,
        "size": 77,
    }


def test_it_may_be_newer_than_a_moment() -> None:
    taken = time_of(UUID(NEW))
    earlier, same = taken - timedelta(milliseconds=1), taken
    assert CheckpointCondition(earlier.isoformat()).judge(holding(NEW), None).outcome is PollOutcome.REACHED
    assert CheckpointCondition(same.isoformat()).judge(holding(NEW), None).outcome is PollOutcome.PENDING
    # As Jinja writes a moment, and one without a zone.
    assert CheckpointCondition(str(earlier)).judge(holding(NEW), None).outcome is PollOutcome.REACHED
    assert CheckpointCondition(str(earlier.replace(tzinfo=None))).judge(holding(NEW), None).outcome is PollOutcome.REACHED


@pytest.mark.parametrize("condition", [CheckpointCondition, SyncCondition])
@pytest.mark.parametrize("text", ["", "None", "yesterday", "0190"])
def test_what_is_neither_a_checkpoint_nor_a_moment_is_refused(condition: Any, text: str) -> None:
    with pytest.raises(ValueError, match="newer_than is "):
        condition(text)


def test_a_stopped_pipeline_makes_no_checkpoint_and_one_that_is_there_counts() -> None:
    down = CheckpointCondition(OLD).judge(holding(OLD, status="Stopped", desired="Stopped"), None)
    assert down.outcome is PollOutcome.FAILED
    assert "STOPPED" in down.message
    assert CheckpointCondition(OLD).judge(holding(NEW, status="Stopped", desired="Stopped"), None).outcome is PollOutcome.REACHED


def test_a_copy_is_what_the_object_store_has() -> None:
    condition = SyncCondition(OLD)
    assert condition.request().tail == "/checkpoints/remote"
    assert condition.judge(seen(answer=[]), None).outcome is PollOutcome.PENDING
    pending = condition.judge(seen(answer=[{"uuid": OLD}]), None)
    assert pending.outcome is PollOutcome.PENDING
    assert time_of(UUID(OLD)).isoformat(timespec="seconds") in pending.message
    found = condition.judge(seen(answer=[{"uuid": NEW}, {"uuid": OLD}]), None)
    assert found.outcome is PollOutcome.REACHED
    assert found.result["checkpoint"] == NEW


def test_an_object_store_that_is_away_may_come_back_and_none_at_all_may_not() -> None:
    away = PipelineAPIError(502, "CheckpointFetchError", "the object store does not answer")
    pending = SyncCondition(OLD).judge(seen(refusal=away), None)
    assert pending.outcome is PollOutcome.PENDING
    assert "does not answer" in pending.message
    none = PipelineAPIError(400, "CheckpointPushError", "Checkpoint sync is not configured")
    assert SyncCondition(OLD).judge(seen(refusal=none), None).outcome is PollOutcome.FAILED
    assert SyncCondition(OLD).judge(seen("Stopped", "Stopped", refusal=away), None).outcome is PollOutcome.FAILED


def test_the_newest_copy_of_a_stopped_pipeline_counts() -> None:
    details = {"checkpoints": [], "last_sync": {"uuid": NEW, "synced_at": "2026-01-01T00:00:00Z"}}
    stopped = Observation(descriptor("Stopped", "Stopped", storage_status_details=details), 1.0)
    assert SyncCondition(OLD).judge(stopped, None).result["checkpoint"] == NEW
    assert SyncCondition(NEW).judge(stopped, None).outcome is PollOutcome.FAILED
