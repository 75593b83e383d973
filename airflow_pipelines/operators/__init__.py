"""Operators that change pipelines. All can be imported from here; each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_pipelines.operators.approval import ApprovePipelineOperator, ReviewPipelineChangeOperator
    from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
    from airflow_pipelines.operators.check import CheckPipelineOperator
    from airflow_pipelines.operators.checkpoint import CheckpointPipelineOperator, SyncCheckpointOperator
    from airflow_pipelines.operators.data import (
        CompletionTokenOperator,
        IngestFileOperator,
        IngestOperator,
        QueryPipelineOperator,
    )
    from airflow_pipelines.operators.gated import GatedModifyOperator
    from airflow_pipelines.operators.lifecycle import (
        DeletePipelineOperator,
        PausePipelineOperator,
        ResumePipelineOperator,
        StartPipelineOperator,
        StopPipelineOperator,
    )
    from airflow_pipelines.operators.plan import PlanPipelineOperator
    from airflow_pipelines.operators.restart import RestartPipelineOperator
    from airflow_pipelines.operators.review_plan import ReviewPlanOperator
    from airflow_pipelines.operators.standby import ActivatePipelineOperator
    from airflow_pipelines.operators.storage import ClearPipelineStorageOperator
    from airflow_pipelines.operators.support_bundle import CollectSupportBundleOperator
    from airflow_pipelines.operators.transaction import (
        CommitTransactionOperator,
        StartTransactionOperator,
        UndoTransactionOperator,
    )

__all__ = [
    "ActivatePipelineOperator",
    "ApprovePipelineOperator",
    "CheckPipelineOperator",
    "CheckpointPipelineOperator",
    "ClearPipelineStorageOperator",
    "CollectSupportBundleOperator",
    "CommitTransactionOperator",
    "CompletionTokenOperator",
    "DeletePipelineOperator",
    "DeployPipelineOperator",
    "GatedModifyOperator",
    "IngestFileOperator",
    "IngestOperator",
    "ModifyPipelineOperator",
    "PausePipelineOperator",
    "PlanPipelineOperator",
    "QueryPipelineOperator",
    "RestartPipelineOperator",
    "ResumePipelineOperator",
    "ReviewPipelineChangeOperator",
    "ReviewPlanOperator",
    "StartPipelineOperator",
    "StartTransactionOperator",
    "StopPipelineOperator",
    "SyncCheckpointOperator",
    "UndoTransactionOperator",
]

_MODULES = {
    "ActivatePipelineOperator": "standby",
    "ApprovePipelineOperator": "approval",
    "CheckPipelineOperator": "check",
    "CheckpointPipelineOperator": "checkpoint",
    "ClearPipelineStorageOperator": "storage",
    "CollectSupportBundleOperator": "support_bundle",
    "CommitTransactionOperator": "transaction",
    "CompletionTokenOperator": "data",
    "DeletePipelineOperator": "lifecycle",
    "DeployPipelineOperator": "change",
    "GatedModifyOperator": "gated",
    "IngestFileOperator": "data",
    "IngestOperator": "data",
    "ModifyPipelineOperator": "change",
    "PausePipelineOperator": "lifecycle",
    "PlanPipelineOperator": "plan",
    "QueryPipelineOperator": "data",
    "RestartPipelineOperator": "restart",
    "ResumePipelineOperator": "lifecycle",
    "ReviewPipelineChangeOperator": "approval",
    "ReviewPlanOperator": "review_plan",
    "StartPipelineOperator": "lifecycle",
    "StartTransactionOperator": "transaction",
    "StopPipelineOperator": "lifecycle",
    "SyncCheckpointOperator": "checkpoint",
    "UndoTransactionOperator": "transaction",
}


def __getattr__(name: str) -> Any:
    """Return the operator with a name.

    :raises AttributeError: if there is none
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    """Return the names for completion and for ``dir()``."""
    return sorted({*globals(), *_MODULES})
