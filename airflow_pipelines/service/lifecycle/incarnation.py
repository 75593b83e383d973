"""The steps of an incarnation: its provisioning, the reports of its host, its end, and the clearing of its storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus, RuntimeStatus
from airflow_pipelines.service.lifecycle.changes import desire_stopped, forget_start, set_resources_status
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord


def give_up_early_start(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Give up a start that waited for a compilation that failed."""
    error = {
        "message": f"The program did not compile ({record.program_status}): see program_error",
        "error_code": ErrorCode.START_FAILED_DUE_TO_FAILED_COMPILATION.value,
        "details": {"program_status": record.program_status.value},
    }
    return start_failed(record, error, now)


def start_failed(record: PipelineRecord, error: dict[str, Any], now: datetime) -> PipelineRecord:
    """Record that a start failed before it was provisioned.

    :param record: the pipeline
    :param error: the deployment error (``message, error_code, details``)
    :param now: the time of the change
    """
    return forget_start(replace(desire_stopped(record, now), deployment_error=error, refresh_version=record.refresh_version + 1))


def use_storage(record: PipelineRecord) -> PipelineRecord:
    """Mark the storage as used, the first step of provisioning: from now on it may have contents."""
    details = record.storage_status_details or {"checkpoints": []}
    if record.storage_status is StorageStatus.INUSE:
        return replace(record, storage_status_details=details)
    return replace(
        record, storage_status=StorageStatus.INUSE, storage_status_details=details, refresh_version=record.refresh_version + 1
    )


def provision(
    record: PipelineRecord, deployment_id: UUID, host_id: UUID | None, deployment_config: dict[str, Any], now: datetime
) -> PipelineRecord:
    """Provision an incarnation by giving it an id.

    :param record: the pipeline
    :param deployment_id: the incarnation's id
    :param host_id: the host that runs it; None until one is known
    :param deployment_config: the runtime configuration that it runs with, as the wire has it
    :param now: the time of the change
    """
    return replace(
        set_resources_status(record, ResourcesStatus.PROVISIONING, now),
        deployment_id=deployment_id,
        host_id=host_id,
        deployment_config=deployment_config,
        provisioning_since=now,
    )


def place_again(record: PipelineRecord) -> PipelineRecord:
    """Clear the host of an incarnation whose host ended before the incarnation began, so that it gets another one."""
    return replace(record, host_id=None)


def observe(record: PipelineRecord, transition: RuntimeTransition, now: datetime) -> PipelineRecord:
    """Apply a host's report about the incarnation."""
    record = replace(record, consumed_sequence=max(record.consumed_sequence, transition.sequence))
    if transition.deployment_id != record.deployment_id:
        return record
    told = {"checkpoints": transition.checkpoints, "last_sync": transition.last_sync}
    news = {key: value for key, value in told.items() if value is not None}
    if news and record.storage_status is StorageStatus.INUSE:
        record = replace(record, storage_status_details={"checkpoints": [], **(record.storage_status_details or {}), **news})
    if record.deployment_resources_status is ResourcesStatus.STOPPING:
        return record
    if transition.status is RuntimeStatus.STOPPED:
        return fail(record, transition.error or _unexplained_end(), now)
    before = record
    if record.deployment_resources_status is ResourcesStatus.PROVISIONING:
        record = set_resources_status(record, ResourcesStatus.PROVISIONED, now)
    if record.deployment_runtime_status is not transition.status:
        record = replace(record, deployment_runtime_status=transition.status, deployment_runtime_status_since=now)
    # A host that has not yet heard of a stop must not undo it.
    suspending = record.deployment_runtime_desired_status is RuntimeStatus.SUSPENDED
    if not suspending and record.deployment_runtime_desired_status is not transition.desired:
        record = replace(record, deployment_runtime_desired_status=transition.desired, deployment_runtime_desired_status_since=now)
    record = replace(record, deployment_runtime_status_details=transition.details or {})
    if before.deployment_status != record.deployment_status:
        record = replace(record, refresh_version=record.refresh_version + 1)
    if record.deployment_runtime_status is RuntimeStatus.SUSPENDED:
        return desire_stopped(record, now)
    return record


def fail(record: PipelineRecord, error: dict[str, Any], now: datetime) -> PipelineRecord:
    """Record the failure of the incarnation: it is being stopped, and the error is kept until it is dismissed. Both are one change.

    :param record: the pipeline
    :param error: the deployment error (``message, error_code, details``); an earlier one stays
    :param now: the time of the change
    """
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return record
    failed = replace(desire_stopped(record, now), deployment_error=record.deployment_error or error)
    if record.deployment_resources_status is ResourcesStatus.STOPPING:
        return replace(failed, refresh_version=record.refresh_version + 1)
    return stopping(failed, now)


def stopping(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Record that the resources are being released; the incarnation no longer exists."""
    return forget_start(
        replace(
            set_resources_status(record, ResourcesStatus.STOPPING, now),
            deployment_runtime_status=None,
            deployment_runtime_status_details=None,
            deployment_runtime_status_since=None,
            deployment_runtime_desired_status=None,
            deployment_runtime_desired_status_since=None,
            provisioning_since=None,
        )
    )


def complete_stop(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Record that the resources are gone."""
    return replace(
        set_resources_status(record, ResourcesStatus.STOPPED, now),
        deployment_id=None,
        host_id=None,
        deployment_config=None,
        deployer=None,
    )


def complete_clear(record: PipelineRecord) -> PipelineRecord:
    """Record that the storage is empty."""
    error = record.deployment_error
    if error is not None and error.get("error_code") == ErrorCode.STORAGE_CLEAR_FAILED:
        error = None
    return replace(
        record,
        storage_status=StorageStatus.CLEARED,
        storage_status_details=None,
        deployment_error=error,
        refresh_version=record.refresh_version + 1,
    )


def clear_failed(record: PipelineRecord, message: str) -> PipelineRecord:
    """Record that clearing failed; the status stays Clearing and clearing is tried again."""
    error = {"message": message, "error_code": ErrorCode.STORAGE_CLEAR_FAILED.value, "details": {}}
    if record.deployment_error is not None:
        return record
    return replace(record, deployment_error=error, refresh_version=record.refresh_version + 1)


def at_rest(record: PipelineRecord) -> bool:
    """Return True if nothing will change unless a request comes or the incarnation itself changes."""
    if record.program_status not in COMPILE_ERRORS | {CompilationStatus.SUCCESS} or record.storage_status is StorageStatus.CLEARING:
        return False
    if record.deployment_resources_desired_status is not record.deployment_resources_status:
        return False
    if record.deployment_resources_status is ResourcesStatus.STOPPED:
        return True
    status, desired = record.deployment_runtime_status, record.deployment_runtime_desired_status
    waits = status is RuntimeStatus.AWAITING_APPROVAL and desired is not RuntimeStatus.SUSPENDED
    return waits or status is desired


def _unexplained_end() -> dict[str, Any]:
    return {
        "message": "The host ended the incarnation without giving a reason",
        "error_code": ErrorCode.UNKNOWN_ERROR.value,
        "details": {},
    }
