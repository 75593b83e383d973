"""One incarnation of a pipeline: its parts, and the thread that opens it, runs its steps and closes it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.host.approval import Approval
from airflow_pipelines.host.checkpointer import Checkpointer
from airflow_pipelines.host.failures import as_problem
from airflow_pipelines.host.fence_watch import FenceWatch
from airflow_pipelines.host.first_queries import FirstQueries
from airflow_pipelines.host.intake import Intake
from airflow_pipelines.host.opening import Opening
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.pipeline_metrics import PipelineMetrics
from airflow_pipelines.host.pipeline_requests import PipelineRequests
from airflow_pipelines.host.queries import Queries
from airflow_pipelines.host.run_state import RunState, SuspendedEarly, TakenDown
from airflow_pipelines.host.spark_health import spark_problem
from airflow_pipelines.host.step_loop import StepLoop
from airflow_pipelines.host.transactions import Transactions
from airflow_pipelines.references import References

CANCEL_AGAIN_S = 0.5
"""How often a step in progress is cancelled until the thread that runs it has ended."""


class PipelineRunner:
    """Runs one deployment. The public methods may be called from any thread; everything that changes contents happens in its own.

    ``requests`` answers what is asked of the running pipeline, ``queries`` runs ad-hoc requests, ``checkpoints`` has the requests
    for checkpoints, and ``approval`` takes the answer to a question about a changed program.
    """

    def __init__(
        self, deployment: Deployment, sessions: SparkSessions, registry: Registry, queries: Queries, references: References
    ) -> None:
        self.deployment = deployment
        self.queries = queries
        self.log = PipelineLog(deployment.log_path, deployment.pipeline_name)
        self._sessions = sessions
        self._state = state = RunState(deployment, registry, self.log)
        self._metrics = PipelineMetrics(deployment.deployment_id, Path(deployment.storage))
        self._fence = fence = FenceWatch(self.log)
        self._intake = Intake(state.condition, self._received)
        self.approval = Approval(deployment, state, fence, self.log)
        self._opening = opening = Opening(
            deployment, sessions, references, state, self.approval, fence, self._metrics, self.log, self._arrived
        )
        self._transactions = Transactions(state.condition, self._intake, lambda: self._metrics.counters().transactions)
        self._checkpointer = Checkpointer(deployment, state, opening, self._intake, self._transactions, self.log)
        self.checkpoints = self._checkpointer.requests
        self.requests = PipelineRequests(
            deployment, state, opening, self._intake, self._transactions, self._checkpointer, self._metrics
        )
        self._first_queries = FirstQueries(sessions.small.sparkContext, f"{self._job_group}-first-queries", self.log)
        self._thread = threading.Thread(target=self._run, name=f"pipeline {deployment.pipeline_name}", daemon=True)

    def start(self) -> None:
        """Bring the pipeline up; returns at once."""
        self._thread.start()

    def pause(self) -> None:
        """Stop taking inputs after the step in progress."""
        self._state.want(RuntimeStatus.PAUSED)

    def resume(self) -> None:
        """Take inputs again."""
        self._state.want(RuntimeStatus.RUNNING)

    def activate(self, desired: RuntimeStatus) -> None:
        """Leave standby.

        :param desired: running or paused: what the pipeline becomes
        :raises Problem: when it does not stand by
        """
        self._state.activate(desired)

    def suspend(self) -> None:
        """End the incarnation with a checkpoint."""
        self._state.want(RuntimeStatus.SUSPENDED)

    def take_down(self, timeout_s: float = 20.0) -> bool:
        """End the incarnation without a checkpoint.

        :param timeout_s: seconds to wait for the end
        :returns: whether it has ended
        """
        self._state.take_down()
        self.queries.close(self._state.terminating())
        deadline = time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < deadline:
            if self._opening.endpoints is not None:
                # A listener that does not read must not hold the pipeline up.
                self._opening.endpoints.listeners.close()
            cancel_jobs(self._sessions.small.sparkContext, self._job_group)
            self._thread.join(CANCEL_AGAIN_S)
            if self._thread.is_alive() and self._opening.live is not None:
                self._opening.live.circuit.interrupt()
        return not self._thread.is_alive()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the incarnation."""
        self._thread.join(timeout_s)

    @property
    def status(self) -> RuntimeStatus | None:
        """The status recorded last."""
        return self._state.status

    @property
    def ended(self) -> bool:
        """Whether the incarnation is over and has let go of everything."""
        return self._state.ended

    def _run(self) -> None:
        end: RuntimeStatus | None = None
        problem: Problem | None = None
        try:
            # So that a step in progress can be cancelled when the pipeline is taken down.
            begin_jobs(self._sessions.small.sparkContext, self._job_group, f"pipeline {self.deployment.pipeline_name}")
            self.log.info("starting incarnation %s", self.deployment.deployment_id)
            self._state.record(RuntimeStatus.INITIALIZING)
            live = self._opening.open()
            StepLoop(
                live, self._state, self._intake, self._transactions, self._checkpointer, self._fence, self._first_queries
            ).run()
            end = RuntimeStatus.SUSPENDED
        except SuspendedEarly:
            end = RuntimeStatus.SUSPENDED
        except TakenDown:
            self.log.info("stopped without a checkpoint")
        except Exception as failure:  # noqa: BLE001  whatever ends an incarnation becomes its deployment error
            problem = self._problem(failure)
            end = None if problem is None else RuntimeStatus.STOPPED
        try:
            self._close(problem)
            if end is not None:
                self._state.record_end(end, None if problem is None else problem.body())
        finally:
            self._state.tell_end()
            self.log.close()
            self._state.end()

    def _problem(self, failure: Exception) -> Problem | None:
        """The deployment error for what ended the incarnation, which is logged; None when the incarnation itself did not fail."""
        if (lost := spark_problem(self._sessions.small)) is not None:
            # Its host ends, which the service notices and says.
            self.log.failure("the host cannot go on: %s", lost)
            return None
        if self._state.taken_down:
            return None
        problem = as_problem(failure, self.deployment.pipeline_name)
        unexpected = problem is not failure and problem.code is ErrorCode.WORKER_PANIC
        # What a step fails on is in the message; its stack would only push that out of a log's last lines.
        foreseen = isinstance(failure, StepError | FatalConnectorFailure)
        if isinstance(failure, StepError) and failure.trace is not None:
            self.log.failure("what %s failed with:\n%s", failure.view, failure.trace)
        self.log.failure("%s: %s", problem.code, problem.message, cause=None if foreseen or not unexpected else failure)
        if foreseen:
            self._checkpointer.keep_last_step()
        return problem

    def _close(self, problem: Problem | None) -> None:
        """Let go of everything: waiting requests, connectors, the storage folder."""
        reason = problem or self._state.terminating()
        self._intake.close(reason)
        self.queries.close(reason)
        self._first_queries.close()
        self._opening.close()

    def _received(self, records: int, size_bytes: int) -> None:
        self._metrics.add(input_records=records, input_bytes=size_bytes)

    def _arrived(self, records: int, size_bytes: int) -> None:
        self._received(records, size_bytes)
        self._state.notify()

    @property
    def _job_group(self) -> str:
        return str(self.deployment.deployment_id)
