"""The parts of an incarnation that outlive its attempts to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from airflow_pipelines.common.references import References
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.sync import Owner
from airflow_pipelines.host.changes.approval import Approval
from airflow_pipelines.host.checkpoints.checkpoint_requests import CheckpointRequests
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The parts of an incarnation that all its attempts share.

    :param deployment: the deployment
    :param sessions: the Spark sessions of the host
    :param references: the host's values for references in configurations
    :param state: the status, and the status that it should reach
    :param approval: the question about a changed program, and its answer
    :param fence: the watch for a later run that takes the storage
    :param checkpoints: the requests for checkpoints
    :param log: the pipeline's log
    :param failed: the reason for the end of each earlier attempt, by the id of its counters
    """

    deployment: Deployment
    sessions: SparkSessions
    references: References
    state: RunState
    approval: Approval
    fence: FenceWatch
    checkpoints: CheckpointRequests
    log: PipelineLog
    failed: Mapping[UUID, str]

    @property
    def storage(self) -> Path:
        """The folder of the pipeline's storage."""
        return Path(self.deployment.storage)

    @property
    def owner(self) -> Owner:
        """The pipeline as an object store identifies it."""
        return Owner(f"pipeline-{self.deployment.pipeline_id}", self.deployment.pipeline_name)
