"""Checkpoints and their copies: what is waited for, and what is an error."""

from __future__ import annotations

from uuid import UUID

import pytest

from airflow_pipelines import (
    CheckpointStatus,
    PipelineFailedError,
)
from tests.scripted import FAILED, GET, Scripted, pipeline_of, up

CHECKPOINT = "GET pipelines/p/checkpoint_status"
OLD, NEW = "01900000-0000-7000-8000-000000000000", "01900000-0000-7000-8000-000000000001"


def test_checkpoint_status(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(CHECKPOINT, {"success": 4, "failure": {"sequence_number": 5, "error": "disk full", "failed_at": ""}})
    assert pipeline.checkpoint_status(4) == CheckpointStatus.Success
    failure = pipeline.checkpoint_status(5)
    assert (failure, failure.get_error()) == (CheckpointStatus.Failure, "disk full")
    assert CheckpointStatus.Failure.get_error() is None, "an error belongs to one answer, not to the enum"
    assert pipeline.checkpoint_status(6) == CheckpointStatus.InProgress
    assert pipeline.checkpoint_status(3) == CheckpointStatus.Unknown


def test_checkpoint_waits(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/checkpoint", {"checkpoint_sequence_number": 1})
    service.on(CHECKPOINT, {"success": None, "failure": None}, {"success": 0, "failure": None}, {"success": 1, "failure": None})
    assert pipeline.checkpoint(wait=True) == 1
    service.on(CHECKPOINT, {"success": 0, "failure": {"sequence_number": 1, "error": "disk full"}})
    with pytest.raises(RuntimeError, match="checkpoint 1 of pipeline 'p' failed: disk full"):
        pipeline.checkpoint(wait=True)
    service.on(GET, FAILED)
    with pytest.raises(PipelineFailedError, match="division by zero"):
        pipeline.checkpoint(wait=True)


def test_sync_checkpoint(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/checkpoint/sync", (202, {"checkpoint_uuid": NEW}))
    status = "GET pipelines/p/checkpoint/sync_status"
    nothing: dict[str, object] = {"success": None, "failure": None, "periodic": None, "copies": []}

    def ended(*uuids: str, error: str | None = None) -> dict[str, object]:
        return nothing | {"success": uuids[-1], "copies": [{"uuid": uuid, "error": error} for uuid in uuids]}

    service.on(status, nothing)
    assert pipeline.sync_checkpoint() == NEW
    assert pipeline.sync_checkpoint_status(NEW) == CheckpointStatus.Unknown
    assert pipeline.last_successful_checkpoint_sync() is None
    service.on(status, nothing, ended(OLD), ended(OLD, NEW))
    assert pipeline.sync_checkpoint(wait=True, timeout_s=5) == NEW
    assert pipeline.sync_checkpoint_status(NEW) == CheckpointStatus.Success
    assert pipeline.last_successful_checkpoint_sync() == UUID(NEW)
    service.on(status, ended(NEW, error="Forbidden"))
    assert pipeline.sync_checkpoint_status(NEW).get_error() == "Forbidden"
    with pytest.raises(RuntimeError, match="failed: Forbidden"):
        pipeline.sync_checkpoint(wait=True)


def test_a_newer_copy_says_nothing_of_an_older_checkpoint(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/checkpoint/sync", (202, {"checkpoint_uuid": OLD}))
    newer = {"success": NEW, "failure": None, "periodic": None, "copies": [{"uuid": NEW, "error": None}]}
    both = newer | {"copies": [{"uuid": NEW, "error": None}, {"uuid": OLD, "error": None}]}
    service.on("GET pipelines/p/checkpoint/sync_status", newer, newer, both)
    assert pipeline.sync_checkpoint(wait=True, timeout_s=5, checkpoint=UUID(OLD), retention_min_count=3) == OLD
    ((params, _),) = service.asked("POST pipelines/p/checkpoint/sync")
    assert params == {"checkpoint_uuid": OLD, "retention_min_count": "3"}
    assert len(service.asked("GET pipelines/p/checkpoint/sync_status")) == 3
