"""An attempt to run an incarnation. Its parts are created anew, so that nothing of a failed attempt gets into the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID, uuid5

from airflow_pipelines.common.references import References
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.errors import within_storage
from airflow_pipelines.host.changes.approval import Approval
from airflow_pipelines.host.checkpoints.checkpoint_requests import CheckpointRequests
from airflow_pipelines.host.inputs.intake import Intake
from airflow_pipelines.host.metrics.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.queries.first_queries import FirstQueries
from airflow_pipelines.host.runs.checkpointer import Checkpointer
from airflow_pipelines.host.runs.opening import Opening
from airflow_pipelines.host.runs.pipeline_requests import PipelineRequests
from airflow_pipelines.host.runs.step_loop import StepLoop
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState
from airflow_pipelines.host.steps.transactions import IncarnationTransactions
from airflow_pipelines.program.streams import StreamProgram


class Attempt:
    """The parts of an incarnation between their opening and their end.

    ``requests`` answers requests to the running pipeline, ``opening`` has the opened parts.
    """

    def __init__(
        self,
        number: int,
        deployment: Deployment,
        sessions: SparkSessions,
        references: References,
        state: RunState,
        approval: Approval,
        fence: FenceWatch,
        checkpoints: CheckpointRequests,
        log: PipelineLog,
        failed: Mapping[UUID, str],
    ) -> None:
        """Create the parts; nothing is opened yet.

        :param number: the number of the attempt, from 1
        :param checkpoints: the requests for checkpoints of all attempts
        :param failed: the reason for the end of each earlier attempt, by its :func:`run_id`
        """
        self._state = state
        self._fence = fence
        self._has_ended = False
        run = run_id(deployment.deployment_id, number)
        self._storage = Path(deployment.storage)
        self._metrics = PipelineMetrics(run, self._storage)
        self._intake = Intake(state.condition, self._count_received)
        self.opening = opening = Opening(
            deployment, sessions, references, state, approval, fence, self._metrics, log, self._note_arrival, number
        )
        self._transactions = IncarnationTransactions(state.condition, self._intake, lambda: self._metrics.counters().transactions)
        self._checkpointer = Checkpointer(deployment, state, opening, self._intake, self._transactions, checkpoints, log)
        self.requests = PipelineRequests(
            deployment, state, opening, self._intake, self._transactions, self._checkpointer, self._metrics, failed
        )
        group = f"{deployment.deployment_id}-first-queries"
        self._first_queries = FirstQueries(sessions.small.sparkContext, group, log)

    @property
    def stream_program(self) -> StreamProgram | None:
        """The stream program that runs, or None without one or before it could be opened."""
        return None if self.opening.live is None else self.opening.live.program.streams

    def run(self) -> None:
        """Open the parts, and run steps until the pipeline is suspended.

        :raises Exception: if it ends in another way
        """
        with within_storage(self._storage):
            live = self.opening.open()
            self.requests.begin_activity(live)
            StepLoop(
                live, self._state, self._intake, self._transactions, self._checkpointer, self._fence, self._first_queries
            ).run()

    def keep_last_step(self) -> None:
        """Save the steps before one that failed, if no journal has them."""
        self._checkpointer.keep_last_step()

    def end(self, reason: Problem) -> None:
        """Release waiting requests, connectors and processes, but keep the storage folder. Calling it again does no harm.

        :param reason: the problem for waiting requests
        """
        if self._has_ended:
            return
        self._has_ended = True
        self._intake.close(reason)
        self._checkpointer.give_up(reason)
        self._first_queries.close()
        self.opening.close_parts()

    def close(self) -> None:
        """Release the storage folder."""
        self.opening.close_storage()

    def _count_received(self, records: int, size_bytes: int) -> None:
        self._metrics.add(input_records=records, input_bytes=size_bytes)

    def _note_arrival(self, records: int, size_bytes: int) -> None:
        self._count_received(records, size_bytes)
        self._state.notify()


def run_id(incarnation: UUID, attempt: int) -> UUID:
    """Return the id under which the counters of an attempt are kept: those of two attempts cannot be compared.

    :param incarnation: the incarnation
    :param attempt: the number of the attempt, from 1
    """
    return incarnation if attempt == 1 else uuid5(incarnation, str(attempt))
