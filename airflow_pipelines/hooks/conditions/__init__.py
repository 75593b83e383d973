"""The conditions that a task can wait for on a pipeline, as pure functions of an observation.

A condition reads the pipeline's status and, if that is not enough, the answer to one request of its own. Polling in a
worker and polling in the triggerer use the same conditions, so both give the same answer. Nothing here does I/O or imports Airflow.
"""

from airflow_pipelines.hooks.conditions.approval import ApprovalCondition
from airflow_pipelines.hooks.conditions.checkpoint import CheckpointCondition, SyncCondition
from airflow_pipelines.hooks.conditions.comparison import OPERATORS, Comparison
from airflow_pipelines.hooks.conditions.condition import Condition, PollOutcome, Verdict, is_stopped_on_purpose
from airflow_pipelines.hooks.conditions.inputs import ConnectorEndCondition, LagCondition
from airflow_pipelines.hooks.conditions.metric import MetricCondition
from airflow_pipelines.hooks.conditions.observation import Observation, Request, describe_deployment_error, is_transient
from airflow_pipelines.hooks.conditions.progress import CompletionCondition, IdleCondition, TokenCondition
from airflow_pipelines.hooks.conditions.requests import (
    CheckpointCopiedCondition,
    CheckpointTakenCondition,
    CompilerDoneCondition,
    StorageClearedCondition,
    TransactionEndedCondition,
)
from airflow_pipelines.hooks.conditions.status import StartedCondition, StatusCondition, StoppedCondition
from airflow_pipelines.hooks.conditions.view import ViewCondition

__all__ = [
    "OPERATORS",
    "ApprovalCondition",
    "CheckpointCondition",
    "CheckpointCopiedCondition",
    "CheckpointTakenCondition",
    "Comparison",
    "CompilerDoneCondition",
    "CompletionCondition",
    "Condition",
    "ConnectorEndCondition",
    "IdleCondition",
    "LagCondition",
    "MetricCondition",
    "Observation",
    "PollOutcome",
    "Request",
    "StartedCondition",
    "StatusCondition",
    "StoppedCondition",
    "StorageClearedCondition",
    "SyncCondition",
    "TokenCondition",
    "TransactionEndedCondition",
    "Verdict",
    "ViewCondition",
    "describe_deployment_error",
    "is_stopped_on_purpose",
    "is_transient",
]
