"""What was asked of a pipeline and takes its time."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import (
    CheckpointCopiedCondition,
    CheckpointTakenCondition,
    CompilerDoneCondition,
    Condition,
    Observation,
    StorageClearedCondition,
    TransactionEndedCondition,
)
from airflow_pipelines.sdk.errors import PipelineAPIError
from tests.hooks.conditions.polls import descriptor, seen

TAKEN = CheckpointTakenCondition(4, "i")
COPIED = CheckpointCopiedCondition("u", "i")
ENDED = TransactionEndedCondition(3, "i")
MISMATCH = PipelineAPIError(400, "IncarnationUuidMismatch", "This is incarnation k")


def outcome(condition: Condition, observation: Observation) -> str:
    return condition.judge(observation, None).outcome.value


@pytest.mark.parametrize(
    ("success", "failure", "expected"),
    [
        (None, None, "pending"),
        (3, 3, "pending"),
        (4, None, "reached"),
        (5, 4, "failed"),
        (5, None, "reached"),
        (None, 5, "pending"),
    ],
)
def test_a_checkpoint_is_taken_when_it_or_a_newer_one_is(success: int | None, failure: int | None, expected: str) -> None:
    failed = None if failure is None else {"sequence_number": failure, "error": "the disk is full"}
    assert outcome(TAKEN, seen(answer={"success": success, "failure": failed})) == expected
    assert TAKEN.request().params == {"incarnation_uuid": "i"}


def test_a_copy_is_judged_by_its_own_end() -> None:
    others = [{"uuid": "newer", "error": None}, {"uuid": "older", "error": "no"}]
    assert outcome(COPIED, seen(answer={"copies": others})) == "pending"
    assert outcome(COPIED, seen(answer={"copies": [*others, {"uuid": "u", "error": None}]})) == "reached"
    failed = COPIED.judge(seen(answer={"copies": [{"uuid": "u", "error": "no such bucket"}]}), None)
    assert (failed.outcome.value, failed.message) == ("failed", "it failed: no such bucket")


def test_a_transaction_has_ended_when_another_or_none_is_in_progress_in_the_same_run() -> None:
    def stats(number: int, run: str = "i", **more: Any) -> Observation:
        metrics = {"incarnation_uuid": run, "transaction_id": number, "transaction_records": 5, **more}
        return seen(answer={"global_metrics": metrics})

    assert [outcome(ENDED, stats(number)) for number in (3, 0, 4)] == ["pending", "reached", "reached"]
    assert outcome(ENDED, stats(0, run="k")) == "failed"
    progress = {"completed": 2, "in_progress": 1, "remaining": 3}
    assert "5 records to commit, 2 operators done, 3 to go" in ENDED.judge(stats(3, commit_progress=progress), None).message


@pytest.mark.parametrize("condition", [TAKEN, COPIED, ENDED], ids=lambda one: one.kind)
def test_a_request_ends_with_the_run_that_had_it(condition: Condition) -> None:
    assert outcome(condition, seen("Stopped", "Stopped")) == "failed"
    assert outcome(condition, seen(refusal=MISMATCH)) == "failed"
    assert outcome(condition, Observation(None, 0.0)) == "failed"
    assert outcome(condition, seen("Unavailable", answer=None)) == "pending"


def test_storage_is_cleared_when_nothing_is_stored() -> None:
    def stored(status: str) -> Observation:
        return Observation(descriptor("Stopped", "Stopped", storage_status=status), 0.0)

    assert [outcome(StorageClearedCondition(), stored(one)) for one in ("InUse", "Clearing", "Cleared")] == [
        "pending",
        "pending",
        "reached",
    ]
    assert outcome(StorageClearedCondition(), Observation(None, 0.0)) == "failed"


@pytest.mark.parametrize(
    ("version", "status", "expected"),
    [
        (2, "Success", "pending"),
        (3, "Pending", "pending"),
        (3, "CompilingSql", "pending"),
        (3, "Success", "reached"),
        (4, "Success", "reached"),
        (3, "SqlError", "reached"),
        (3, "SystemError", "reached"),
    ],
)
def test_the_compiler_is_done_when_it_says_so_of_this_version(version: int, status: str, expected: str) -> None:
    look = Observation(descriptor("Stopped", "Stopped", program_version=version, program_status=status), 0.0)
    assert outcome(CompilerDoneCondition(3), look) == expected


@pytest.mark.parametrize(
    "condition", [TAKEN, COPIED, ENDED, StorageClearedCondition(), CompilerDoneCondition(3)], ids=lambda one: one.kind
)
def test_they_travel_to_the_triggerer(condition: Condition) -> None:
    assert Condition.from_wire(condition.to_wire()) == condition
    assert condition.goal
