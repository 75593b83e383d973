"""Sensors that wait for pipelines. All can be imported from here; a module is loaded when one of its names is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from airflow_pipelines.sensors.checkpoint import PipelineCheckpointSensor, PipelineSyncSensor
    from airflow_pipelines.sensors.comparison import PipelineMetricSensor, PipelineViewSensor
    from airflow_pipelines.sensors.inputs import PipelineConnectorEndSensor, PipelineLagSensor
    from airflow_pipelines.sensors.pipeline import (
        PipelineApprovalSensor,
        PipelineCompletionSensor,
        PipelineCompletionTokenSensor,
        PipelineIdleSensor,
        PipelineStatusSensor,
    )

_MODULES: Final = {
    "PipelineApprovalSensor": "pipeline",
    "PipelineCheckpointSensor": "checkpoint",
    "PipelineCompletionSensor": "pipeline",
    "PipelineCompletionTokenSensor": "pipeline",
    "PipelineConnectorEndSensor": "inputs",
    "PipelineIdleSensor": "pipeline",
    "PipelineLagSensor": "inputs",
    "PipelineMetricSensor": "comparison",
    "PipelineStatusSensor": "pipeline",
    "PipelineSyncSensor": "checkpoint",
    "PipelineViewSensor": "comparison",
}

__all__ = [
    "PipelineApprovalSensor",
    "PipelineCheckpointSensor",
    "PipelineCompletionSensor",
    "PipelineCompletionTokenSensor",
    "PipelineConnectorEndSensor",
    "PipelineIdleSensor",
    "PipelineLagSensor",
    "PipelineMetricSensor",
    "PipelineStatusSensor",
    "PipelineSyncSensor",
    "PipelineViewSensor",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
