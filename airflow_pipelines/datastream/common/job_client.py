"""The client for a run that a program started."""

from __future__ import annotations

from typing import Any, Protocol

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus


class StartedJob(Protocol):
    """The interface of a run for its client."""

    def job_id(self) -> JobID:
        """Return the id of the run."""

    def status(self) -> JobStatus:
        """Return the status of the run."""

    def cancel(self) -> CompletableFuture[None]:
        """Stop without a savepoint. The future completes when the run has stopped."""

    def savepoint(self, directory: str | None) -> CompletableFuture[str]:
        """Write a savepoint. The future has its path."""

    def stop_with_savepoint(self, directory: str | None, end_of_time: bool) -> CompletableFuture[str]:
        """Write a savepoint and stop. If ``end_of_time`` is true, fire all event-time timers before."""

    def accumulators(self) -> dict[str, Any]:
        """Return the current values of the accumulators."""

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Return a future with the result of the run when it ends, or with the error when it fails."""


class JobClient:
    """The client for a run that a program started with ``execute_async``.

    :param job: the run

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> alerts = env.from_collection([21.5, 22.0]).filter(lambda celsius: celsius > 30).print("alert")
    >>> job = env.execute_async("temperatures")
    >>> result = job.get_job_execution_result().result(timeout=60)
    >>> job.get_job_status().result(), result.get_job_id() == job.get_job_id()
    (<JobStatus.FINISHED: 7>, True)
    """

    def __init__(self, job: StartedJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        """Return the id of the run.

        :returns: the id
        """
        return self._job.job_id()

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return the status of the run.

        :returns: a future with the status
        """
        return CompletableFuture.completed(self._job.status())

    def cancel(self) -> CompletableFuture[None]:
        """Stop the run without a savepoint.

        :returns: a future that completes when the run has stopped
        """
        return self._job.cancel()

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Write a savepoint and stop the run.

        :param advance_to_end_of_event_time: True to fire all event-time timers before, as at the end of the input
        :param savepoint_directory: folder for the savepoint; the default savepoint directory when None
        :returns: a future with the path of the savepoint
        """
        end = checks.boolean("advance_to_end_of_event_time", advance_to_end_of_event_time)
        return self._job.stop_with_savepoint(_check_directory(savepoint_directory), end)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint while the run continues.

        :param savepoint_directory: folder for the savepoint; the default savepoint directory when None
        :returns: a future with the path of the savepoint
        """
        return self._job.savepoint(_check_directory(savepoint_directory))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return the current values of the accumulators.

        :returns: a future with values by name
        """
        return CompletableFuture.completed(self._job.accumulators())

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the result of the run when it ends.

        :returns: a future with the result, or with the error that ended the run
        """
        return self._job.result()


def _check_directory(directory: str | None) -> str | None:
    return None if directory is None else checks.text("savepoint_directory", directory)
