"""The enumerations of the contract, under the name by which users of the SDK import them."""

from __future__ import annotations

from airflow_pipelines.contract.enums import (
    BootstrapPolicy,
    BuildMode,
    CheckpointStatus,
    CompilationProfile,
    CompletionTokenStatus,
    DeploymentDesiredStatus,
    DeploymentResourcesDesiredStatus,
    DeploymentResourcesStatus,
    DeploymentRuntimeDesiredStatus,
    DeploymentRuntimeStatus,
    FaultToleranceModel,
    PipelineFieldSelector,
    PipelineStatus,
    ProgramStatus,
    StorageStatus,
    TransactionStatus,
)

__all__ = [
    "BootstrapPolicy",
    "BuildMode",
    "CheckpointStatus",
    "CompilationProfile",
    "CompletionTokenStatus",
    "DeploymentDesiredStatus",
    "DeploymentResourcesDesiredStatus",
    "DeploymentResourcesStatus",
    "DeploymentRuntimeDesiredStatus",
    "DeploymentRuntimeStatus",
    "FaultToleranceModel",
    "PipelineFieldSelector",
    "PipelineStatus",
    "ProgramStatus",
    "StorageStatus",
    "TransactionStatus",
]
