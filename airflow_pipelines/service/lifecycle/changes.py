"""The changes of a record that several steps share."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from airflow_pipelines.contract.statuses import ResourcesStatus
from airflow_pipelines.service.records import PipelineRecord


def desire_stopped(record: PipelineRecord, now: datetime) -> PipelineRecord:
    """Set the desired resources status to stopped, so that the incarnation ends."""
    if record.deployment_resources_desired_status is ResourcesStatus.STOPPED:
        return record
    return replace(
        record, deployment_resources_desired_status=ResourcesStatus.STOPPED, deployment_resources_desired_status_since=now
    )


def forget_start(record: PipelineRecord) -> PipelineRecord:
    """Clear the parameters of a start that is done or was given up."""
    return replace(
        record,
        deployment_initial=None,
        bootstrap_policy=None,
        silent_bootstrap=None,
        concurrent_bootstrap=None,
        from_checkpoint=None,
    )


def set_resources_status(record: PipelineRecord, status: ResourcesStatus, now: datetime) -> PipelineRecord:
    """Set the status of the incarnation's resources."""
    return replace(
        record,
        deployment_resources_status=status,
        deployment_resources_status_since=now,
        refresh_version=record.refresh_version + 1,
    )
