"""What one can wait for on a pipeline, as pure judgements of what was seen.

A condition reads the pipeline's status and, where that is not enough, the answer to one request of its own. Polling in a
worker and polling in the triggerer use the same conditions, so both give the same answer. Nothing here does I/O or knows Airflow.
"""

from airflow_pipelines.hooks.conditions.condition import Condition, Outcome, Verdict
from airflow_pipelines.hooks.conditions.observation import Observation, Request, describe_deployment_error, is_transient
from airflow_pipelines.hooks.conditions.progress import CompletionCondition, IdleCondition, TokenCondition
from airflow_pipelines.hooks.conditions.status import StartedCondition, StatusCondition

__all__ = [
    "CompletionCondition",
    "Condition",
    "IdleCondition",
    "Observation",
    "Outcome",
    "Request",
    "StartedCondition",
    "StatusCondition",
    "TokenCondition",
    "Verdict",
    "describe_deployment_error",
    "is_transient",
]
