"""The job of a program that is bound to a pipeline, and the requests that such a program cannot make."""

from __future__ import annotations

from typing import Any, NoReturn

from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus
from airflow_pipelines.streams.deploying.binding import BindingError


def refuse_results(method: str) -> NoReturn:
    """Raise an error because a deployed program cannot wait for its own results.

    :param method: the method that waits for them
    :raises BindingError: always
    """
    raise BindingError(
        f"{method} waits for the results of the program, and a program that is deployed as a pipeline runs for itself, long after"
        " its script has ended. Give the results to a sink, or make a relation of them with to_relation(), which queries and SQL"
        " views read."
    )


def refuse_savepoint(setting: str, path: str) -> NoReturn:
    """Raise an error because a deployed program does not start from a savepoint.

    :param setting: the setting that names the savepoint
    :param path: its path
    :raises BindingError: always
    """
    raise BindingError(
        f"The setting {setting} is {path!r}, and a program that is deployed as a pipeline goes on from the checkpoints of its"
        " pipeline: from the newest one, or from another one with start(from_checkpoint=...). Savepoints are for programs that run"
        " by themselves. Leave the setting out."
    )


class BoundJob:
    """The job that ``execute_async`` returns when the program is bound to a pipeline. It refuses every request that needs a run."""

    def __init__(self) -> None:
        self._id = JobID.generate()

    def job_id(self) -> JobID:
        """Return the id of the job."""
        return self._id

    def status(self) -> JobStatus:
        """Return ``CREATED``, because the job has not started yet."""
        return JobStatus.CREATED

    def cancel(self) -> CompletableFuture[None]:
        """Refuse, because nothing runs."""
        self._refuse("cancel()")

    def savepoint(self, directory: str | None) -> CompletableFuture[str]:
        """Refuse, because nothing runs."""
        self._refuse("trigger_savepoint()")

    def stop_with_savepoint(self, directory: str | None, end_of_time: bool) -> CompletableFuture[str]:
        """Refuse, because nothing runs."""
        self._refuse("stop_with_savepoint()")

    def accumulators(self) -> dict[str, Any]:
        """Return no accumulators, because nothing runs."""
        return {}

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Refuse, because nothing runs."""
        refuse_results("get_job_execution_result()")

    def _refuse(self, method: str) -> NoReturn:
        raise BindingError(
            f"{method} is for a run, and a program that is deployed as a pipeline does not run while its script is executed."
            " Ask the pipeline instead: checkpoint() takes a checkpoint, stop(force=False) stops with one, and"
            " start(from_checkpoint=...) goes on from one."
        )
