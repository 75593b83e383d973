"""The statistics of the contract, under the name by which users of the SDK import them."""

from __future__ import annotations

from airflow_pipelines.contract.stats import (
    CommitProgressSummary,
    CompletedWatermark,
    ConnectorError,
    ConnectorHealth,
    ConnectorLag,
    ConnectorTransactionPhase,
    GlobalPipelineMetrics,
    InputEndpointMetrics,
    InputEndpointStatus,
    OperatorFigures,
    OutputEndpointMetrics,
    OutputEndpointStatus,
    PipelineStatistics,
    StepFigures,
    StreamOperatorMetrics,
    StreamTaskMetrics,
    TransactionInitiators,
)

__all__ = [
    "CommitProgressSummary",
    "CompletedWatermark",
    "ConnectorError",
    "ConnectorHealth",
    "ConnectorLag",
    "ConnectorTransactionPhase",
    "GlobalPipelineMetrics",
    "InputEndpointMetrics",
    "InputEndpointStatus",
    "OperatorFigures",
    "OutputEndpointMetrics",
    "OutputEndpointStatus",
    "PipelineStatistics",
    "StepFigures",
    "StreamOperatorMetrics",
    "StreamTaskMetrics",
    "TransactionInitiators",
]
