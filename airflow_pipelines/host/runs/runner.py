"""The runner of one incarnation: the thread that opens its parts, runs its steps and closes it, in one attempt or several."""

from __future__ import annotations

import threading
import time
from uuid import UUID

from airflow_pipelines.common.references import References
from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.spark.jobs import begin_jobs, cancel_jobs
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.streams.runtime import StreamProgramFailure
from airflow_pipelines.host.changes.approval import Approval
from airflow_pipelines.host.checkpoints.checkpoint_requests import CheckpointRequests
from airflow_pipelines.host.queries.queries import Queries
from airflow_pipelines.host.runs.attempt import Attempt, run_id
from airflow_pipelines.host.runs.incarnation import Incarnation
from airflow_pipelines.host.runs.pipeline_requests import PipelineRequests
from airflow_pipelines.host.runs.restarts import Restart, Restarts
from airflow_pipelines.host.runs.spark_health import spark_problem
from airflow_pipelines.host.state.failures import as_problem
from airflow_pipelines.host.state.fence_watch import FenceWatch
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.state.run_state import RunState, SuspendedEarly, TakenDown

_FORESEEN = (StepError, FatalConnectorFailure, StreamProgramFailure)
"""The failures that describe by themselves what has failed."""
CANCEL_AGAIN_S = 0.5
"""The seconds between two cancellations of a step in progress, until the thread that runs it has ended."""


class PipelineRunner:
    """The runner of one deployment. Any thread may call the public methods; all changes of contents happen in its own thread.

    ``requests`` answers requests to the running pipeline, ``queries`` runs ad-hoc requests, ``checkpoints`` has the requests for
    checkpoints, and ``approval`` takes the answer to a question about a changed program.
    """

    def __init__(
        self, deployment: Deployment, sessions: SparkSessions, registry: Registry, queries: Queries, references: References
    ) -> None:
        self.deployment = deployment
        self.queries = queries
        self.log = PipelineLog(deployment.log_path, deployment.pipeline_name)
        self._sessions = sessions
        self._state = state = RunState(deployment, registry, self.log)
        self._fence = FenceWatch(self.log)
        self.approval = Approval(deployment, state, self._fence, self.log)
        self.checkpoints = CheckpointRequests(deployment.deployment_id)
        self._restarts = Restarts()
        self._failed: dict[UUID, str] = {}
        self._incarnation = Incarnation(
            deployment, sessions, references, state, self.approval, self._fence, self.checkpoints, self.log, self._failed
        )
        self._attempt = Attempt(self._incarnation, self._restarts.attempt)
        self._thread = threading.Thread(target=self._run, name=f"pipeline {deployment.pipeline_name}", daemon=True)

    def start(self) -> None:
        """Start the pipeline; return at once."""
        self._thread.start()

    def pause(self) -> None:
        """Stop taking inputs after the step in progress."""
        self._state.want(RuntimeStatus.PAUSED)

    def resume(self) -> None:
        """Take inputs again."""
        self._state.want(RuntimeStatus.RUNNING)

    def activate(self, desired: RuntimeStatus) -> None:
        """Leave standby.

        :param desired: the desired status: running or paused
        :raises Problem: if it does not stand by
        """
        self._state.activate(desired)

    def suspend(self) -> None:
        """End the incarnation with a checkpoint."""
        self._state.want(RuntimeStatus.SUSPENDED)

    def take_down(self, timeout_s: float = 20.0) -> bool:
        """End the incarnation without a checkpoint.

        :param timeout_s: the seconds to wait for the end
        :returns: True if it has ended
        """
        self._state.take_down()
        self.queries.close(self._state.terminating())
        deadline = time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < deadline:
            opening = self._attempt.opening
            if opening.endpoints is not None:
                # A listener that does not read must not hold the pipeline up.
                opening.endpoints.outputs.listeners.close()
            cancel_jobs(self._sessions.small.sparkContext, self._job_group)
            self._thread.join(CANCEL_AGAIN_S)
            if self._thread.is_alive() and opening.live is not None:
                opening.live.circuit.interrupt()
        return not self._thread.is_alive()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the incarnation."""
        self._thread.join(timeout_s)

    @property
    def status(self) -> RuntimeStatus | None:
        """The status recorded last, or None before the first one."""
        return self._state.status

    @property
    def ended(self) -> bool:
        """True if the incarnation is over and has released everything."""
        return self._state.ended

    @property
    def requests(self) -> PipelineRequests:
        """The object that answers requests to the running pipeline."""
        return self._attempt.requests

    def _run(self) -> None:
        end: RuntimeStatus | None = None
        problem: Problem | None = None
        try:
            # The job group allows to cancel a step in progress when the pipeline is taken down.
            begin_jobs(self._sessions.small.sparkContext, self._job_group, f"pipeline {self.deployment.pipeline_name}")
            self.log.info("starting incarnation %s", self.deployment.deployment_id)
            self._state.record(RuntimeStatus.INITIALIZING)
            self._run_attempts()
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

    def _run_attempts(self) -> None:
        """Run until the pipeline is suspended, and restart after failures if the stream program asks for it.

        :raises Exception: if the last attempt ends in another way
        """
        while True:
            try:
                self._attempt.run()
                return
            except (SuspendedEarly, TakenDown):
                raise
            except Exception as failure:
                if (restart := self._restart_after(failure)) is None:
                    raise
                self._prepare(restart, failure)

    def _restart_after(self, failure: Exception) -> Restart | None:
        """Return the restart that follows a failure, or None if the failure ends the incarnation."""
        ends = self._state.taken_down or self._state.desired is RuntimeStatus.SUSPENDED
        if ends or spark_problem(self._sessions.small) is not None:
            return None
        return self._restarts.after(failure, self._attempt.stream_program)

    def _prepare(self, restart: Restart, failure: Exception) -> None:
        """End the failed attempt, and wait until the next one is due.

        :raises SuspendedEarly: if the pipeline is suspended instead
        :raises TakenDown: if it is taken down instead
        """
        problem = as_problem(failure, self.deployment.pipeline_name)
        self._log_failure(failure, problem)
        self._failed[run_id(self.deployment.deployment_id, restart.attempt - 1)] = self.log.redact(problem.message)
        self.log.warning("the stream program is restarted: %s: %s", restart.describe(), problem.message)
        # Done before waiting requests get the failure, because their clients ask again.
        self._state.restart(restart.to_wire(self.log.redact(problem.message)))
        self.queries.cancel(problem)
        self._attempt.end(problem)
        self._wait(restart.delay_s)
        self._attempt.close()
        self._attempt = Attempt(self._incarnation, self._restarts.attempt)

    def _wait(self, delay_s: float) -> None:
        """Wait for the next attempt. Hold the storage meanwhile: if a later run has taken it, this run must end."""
        until = time.monotonic() + delay_s
        while (left := until - time.monotonic()) > 0 and not self._has_to_end():
            self._state.wait(self._has_to_end, min(left, self._fence.until_due))
            self._fence.look()
        self._state.check()
        if self._state.desired is RuntimeStatus.SUSPENDED:
            self.log.info("suspended before the next attempt; what is saved stays as it is")
            raise SuspendedEarly
        self._fence.look_now()

    def _has_to_end(self) -> bool:
        return self._state.taken_down or self._state.desired is RuntimeStatus.SUSPENDED

    def _problem(self, failure: Exception) -> Problem | None:
        """Log the failure that ended the incarnation, and return its deployment error.

        Return None if the incarnation itself did not fail.
        """
        if (lost := spark_problem(self._sessions.small)) is not None:
            # The host ends, which the service notices and reports.
            self.log.failure("the host cannot go on: %s", lost)
            return None
        if self._state.taken_down:
            return None
        problem = as_problem(failure, self.deployment.pipeline_name)
        self._log_failure(failure, problem)
        if isinstance(failure, _FORESEEN):
            self._attempt.keep_last_step()
        return problem

    def _log_failure(self, failure: Exception, problem: Problem) -> None:
        unexpected = problem is not failure and problem.code is ErrorCode.WORKER_PANIC
        # The message has the cause of a failed step; a stack would only push it out of the log's last lines.
        foreseen = isinstance(failure, _FORESEEN)
        if isinstance(failure, StepError) and failure.trace is not None:
            self.log.failure("what %s failed with:\n%s", failure.view, failure.trace)
        if isinstance(failure, StreamProgramFailure) and failure.trace is not None:
            self.log.failure("what the stream program failed with:\n%s", failure.trace)
        self.log.failure("%s: %s", problem.code, problem.message, cause=None if foreseen or not unexpected else failure)

    def _close(self, problem: Problem | None) -> None:
        """Release everything: waiting requests, connectors, the storage folder."""
        reason = problem or self._state.terminating()
        self.queries.close(reason)
        self._attempt.end(reason)
        self._attempt.close()

    @property
    def _job_group(self) -> str:
        return str(self.deployment.deployment_id)
