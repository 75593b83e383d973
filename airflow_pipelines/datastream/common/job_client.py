"""What a program can do with a run that it started."""

from __future__ import annotations

from typing import Any, Protocol

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus


class StartedJob(Protocol):
    """What a runner gives for a program that it runs."""

    def job_id(self) -> JobID:
        """The id of the run."""

    def status(self) -> JobStatus:
        """What it does now."""

    def cancel(self) -> CompletableFuture[None]:
        """Stop without a savepoint; the future is done when it has stopped."""

    def savepoint(self, directory: str | None) -> CompletableFuture[str]:
        """Write a savepoint; the future has its path."""

    def stop_with_savepoint(self, directory: str | None, end_of_time: bool) -> CompletableFuture[str]:
        """Write a savepoint and stop, with all event-time timers fired before when it is the end of time."""

    def accumulators(self) -> dict[str, Any]:
        """The values of the accumulators now."""

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """What is left when it ends; with the error when it fails."""


class JobClient:
    """What a program can do with a run that it started with ``execute_async``.

    :param job: the run
    """

    def __init__(self, job: StartedJob) -> None:
        self._job = job

    def get_job_id(self) -> JobID:
        """The id of the run.

        :returns: the id
        """
        return self._job.job_id()

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """What the run does now.

        :returns: a future with the status
        """
        return CompletableFuture.completed(self._job.status())

    def cancel(self) -> CompletableFuture[None]:
        """Stop the run without a savepoint.

        :returns: a future that is done when the run has stopped
        """
        return self._job.cancel()

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Write a savepoint and stop the run.

        :param advance_to_end_of_event_time: whether all event-time timers fire before, as at the end of the input
        :param savepoint_directory: folder for the savepoint; the default savepoint directory when None
        :returns: a future with the path of the savepoint
        """
        end = checks.boolean("advance_to_end_of_event_time", advance_to_end_of_event_time)
        return self._job.stop_with_savepoint(_directory(savepoint_directory), end)

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Write a savepoint while the run goes on.

        :param savepoint_directory: folder for the savepoint; the default savepoint directory when None
        :returns: a future with the path of the savepoint
        """
        return self._job.savepoint(_directory(savepoint_directory))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The values of the accumulators now.

        :returns: a future with values by name
        """
        return CompletableFuture.completed(self._job.accumulators())

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """What is left of the run when it ends.

        :returns: a future with the result, or with the error that ended the run
        """
        return self._job.result()


def _directory(directory: str | None) -> str | None:
    return None if directory is None else checks.text("savepoint_directory", directory)
