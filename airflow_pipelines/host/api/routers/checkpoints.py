"""Checkpoints and their copies."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.host.api.routers.common import Runner
from airflow_pipelines.host.runs.runner import PipelineRunner

router = APIRouter(prefix="/deployments/{deployment_id}")


@router.post("/checkpoint")
def checkpoint(runner: Runner) -> dict[str, Any]:
    """Request a checkpoint; ``checkpoint_status`` reports its result."""
    number = runner.requests.request_checkpoint()
    return {"checkpoint_sequence_number": number, "incarnation_uuid": str(runner.checkpoints.incarnation)}


@router.get("/checkpoint_status")
def checkpoint_status(runner: Runner, incarnation_uuid: UUID | None = None) -> dict[str, Any]:
    """Return the last checkpoint request that succeeded and the last that failed."""
    _check_incarnation(runner, incarnation_uuid)
    return runner.checkpoints.status()


@router.get("/checkpoints")
def checkpoints(runner: Runner) -> list[dict[str, Any]]:
    """Return the local checkpoints, newest first."""
    return runner.requests.checkpoints()


@router.get("/checkpoints/remote")
def remote_checkpoints(runner: Runner) -> list[dict[str, str]]:
    """Return the checkpoints in the object store, newest first."""
    try:
        return runner.requests.sync().remote()
    except SyncError as error:
        raise Problem(ErrorCode.CHECKPOINT_FETCH_ERROR, str(error)) from error


@router.post("/checkpoint/sync", status_code=202)
def sync(
    runner: Runner,
    checkpoint_uuid: UUID | None = None,
    retention_min_count: Annotated[int | None, Query(ge=0)] = None,
    retention_min_age: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
) -> dict[str, str]:
    """Start to copy a checkpoint to the object store. Retention values that are not given are taken from the configuration."""
    uuid = runner.requests.sync().request(
        checkpoint_uuid, retention_min_count=retention_min_count, retention_min_age_days=retention_min_age
    )
    return {"checkpoint_uuid": str(uuid), "incarnation_uuid": str(runner.checkpoints.incarnation)}


@router.get("/checkpoint/sync_status")
def sync_status(runner: Runner, incarnation_uuid: UUID | None = None) -> dict[str, Any]:
    """Return the last copies that succeeded and the last that failed, and the outcome of the newest ones."""
    _check_incarnation(runner, incarnation_uuid)
    return runner.requests.sync().status()


def _check_incarnation(runner: PipelineRunner, expected: UUID | None) -> None:
    if expected is not None and expected != runner.checkpoints.incarnation:
        raise Problem(ErrorCode.INCARNATION_UUID_MISMATCH, f"This is incarnation {runner.checkpoints.incarnation}, not {expected}.")
