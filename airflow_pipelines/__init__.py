"""Airflow Pipelines: long-lived, stateful Spark pipelines as first-class things in Airflow.

The public names of the SDK are here. They are imported when first used (PEP 562), so that importing the package stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient
    from airflow_pipelines.sdk.errors import (
        PipelineAPIError,
        PipelineConnectionError,
        PipelineFailedError,
        PipelinesError,
        PipelineTimeoutError,
        ProgramCompilationError,
    )
    from airflow_pipelines.sdk.output_handler import OutputHandler
    from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
    from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
    from airflow_pipelines.sdk.runtime_config import Resources, RuntimeConfig, Storage

_MODULES = {
    "sdk.client": ("AsyncPipelineClient", "PipelineClient"),
    "contract.enums": (
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
    ),
    "sdk.errors": (
        "PipelineAPIError",
        "PipelineConnectionError",
        "PipelineFailedError",
        "PipelineTimeoutError",
        "PipelinesError",
        "ProgramCompilationError",
    ),
    "sdk.output_handler": ("OutputHandler",),
    "sdk.pipelines.pipeline": ("Pipeline",),
    "sdk.pipeline_builder": ("PipelineBuilder",),
    "sdk.runtime_config": ("Resources", "RuntimeConfig", "Storage"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncPipelineClient",
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
    "OutputHandler",
    "Pipeline",
    "PipelineAPIError",
    "PipelineBuilder",
    "PipelineClient",
    "PipelineConnectionError",
    "PipelineFailedError",
    "PipelineFieldSelector",
    "PipelineStatus",
    "PipelineTimeoutError",
    "PipelinesError",
    "ProgramCompilationError",
    "ProgramStatus",
    "Resources",
    "RuntimeConfig",
    "Storage",
    "StorageStatus",
    "TransactionStatus",
]


def __getattr__(name: str) -> Any:
    module = _HOMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
