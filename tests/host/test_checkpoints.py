"""Checkpoint endpoints and the copies in an object store."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.host.driver import Pipeline

pytestmark = pytest.mark.core

Make = Callable[..., Pipeline]


def synced(bucket: Path, **options: object) -> dict[str, object]:
    return {"backend": {"name": "file", "config": {"sync": {"bucket": str(bucket), **options}}}}


def wait_for_sync(pipeline: Pipeline, uuid: str) -> None:
    deadline = time.monotonic() + 30
    while (status := pipeline.get("checkpoint/sync_status").json())["success"] != uuid:
        assert status["failure"] is None, status
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_checkpoints_are_numbered_listed_and_recorded(running: Pipeline) -> None:
    nothing = running.post("checkpoint/sync")
    assert (nothing.status_code, "sync" in nothing.json()["message"]) == (400, True)
    running.insert("t", {"id": 1, "v": 1})
    assert [running.checkpoint() for _ in range(3)] == [0, 1, 2]
    listed = running.get("checkpoints").json()
    assert len(listed) == 2
    assert listed[0]["uuid"] > listed[1]["uuid"]
    assert UUID(listed[0]["uuid"]).version == 7
    assert running.transitions()[-1].checkpoints == listed
    assert running.get("checkpoint_status", incarnation_uuid=str(running.deployment_id)).status_code == 200
    mismatch = running.get("checkpoint_status", incarnation_uuid=str(uuid4()))
    assert (mismatch.status_code, mismatch.json()["error_code"]) == (400, "IncarnationUuidMismatch")


def test_a_synced_checkpoint_starts_a_pipeline_elsewhere(make: Make, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    pipeline = make(storage=synced(bucket))
    pipeline.start()
    assert pipeline.post("checkpoint/sync").status_code == 400
    pipeline.insert("t", {"id": 1, "v": 7, "name": "a"})
    pipeline.checkpoint()
    answer = pipeline.post("checkpoint/sync")
    assert answer.status_code == 202
    uuid = answer.json()["checkpoint_uuid"]
    wait_for_sync(pipeline, uuid)
    assert pipeline.get("checkpoints/remote").json() == [{"uuid": uuid}]
    assert pipeline.post("checkpoint/sync").json()["checkpoint_uuid"] == uuid

    other = make(storage=synced(bucket, start_from_checkpoint="latest"))
    other.start()
    assert other.query("SELECT * FROM totals") == [{"name": "a", "total": 7, "n": 1}]
    other.checkpoint()
    other.post("checkpoint/sync")
    deadline = time.monotonic() + 30
    while (failure := other.get("checkpoint/sync_status").json()["failure"]) is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "already owned by" in failure["error"]


@pytest.mark.rest
def test_a_checkpoint_is_copied_by_its_name_and_others_go_as_the_request_says(make: Make, tmp_path: Path) -> None:
    pipeline = make(storage=synced(tmp_path / "bucket"))
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 7, "name": "a"})
    pipeline.checkpoint()
    pipeline.checkpoint()
    new, old = (each["uuid"] for each in pipeline.get("checkpoints").json())

    def copied(*remote: str, uuid: str, **options: object) -> None:
        answer = pipeline.post("checkpoint/sync", checkpoint_uuid=uuid, **options)
        assert (answer.status_code, answer.json()["checkpoint_uuid"]) == (202, uuid)
        wait_for_sync(pipeline, uuid)
        # Outdated copies go after the answer says that the new one is there.
        deadline = time.monotonic() + 30
        while pipeline.get("checkpoints/remote").json() != [{"uuid": each} for each in remote]:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    copied(new, uuid=new)
    copied(new, old, uuid=old)
    copied(new, uuid=new, retention_min_count=1, retention_min_age=0)
    assert pipeline.get("checkpoint/sync_status").json()["copies"] == [{"uuid": old, "error": None}, {"uuid": new, "error": None}]
    unknown = pipeline.post("checkpoint/sync", checkpoint_uuid=str(uuid4()))
    assert (unknown.status_code, unknown.json()["error_code"]) == (400, "CheckpointPushError")
    assert f"there are: {new}, {old}" in unknown.json()["message"]
    for wrong in ({"checkpoint_uuid": "latest"}, {"retention_min_count": -1}, {"retention_min_age": "nan"}):
        assert pipeline.post("checkpoint/sync", **wrong).status_code == 400
    assert pipeline.get("checkpoint/sync_status", incarnation_uuid=str(pipeline.deployment_id)).status_code == 200
    mismatch = pipeline.get("checkpoint/sync_status", incarnation_uuid=str(uuid4()))
    assert (mismatch.status_code, mismatch.json()["error_code"]) == (400, "IncarnationUuidMismatch")


def test_a_start_from_a_checkpoint_that_is_nowhere_fails(make: Make, tmp_path: Path) -> None:
    wanted = str(uuid4())
    pipeline = make(storage=synced(tmp_path / "bucket", start_from_checkpoint=wanted, fail_if_no_checkpoint=True))
    failed = pipeline.start("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "CheckpointFetchError"
    assert "were not found in source" in failed.error["message"]
