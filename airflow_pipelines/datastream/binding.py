"""Binding of a program to the pipeline that it is deployed in: ``execute`` then describes the program and runs nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus
from airflow_pipelines.datastream.program_description import Execution, describe
from airflow_pipelines.streams.errors import StreamProgramError

BINDING_FOLDER = "AIRFLOW_PIPELINES_STREAM_BINDING"
"""The environment variable that names the folder to which a program writes its description."""
DESCRIPTION, PLAN = "description.json", "plan"
"""The files in that folder."""
_PACKAGE = str(Path(__file__).parents[1])


class BindingError(StreamProgramError):
    """A request that a program deployed as a pipeline cannot make."""


def is_binding() -> bool:
    """Return True if programs of this process are bound to a pipeline instead of being run."""
    return BINDING_FOLDER in os.environ


def note_execution() -> None:
    """Record that the program calls ``execute``.

    :raises BindingError: if it has done so before
    """
    _EXECUTIONS.append(_find_caller())
    if len(_EXECUTIONS) > 1:
        raise BindingError(executed_twice(_EXECUTIONS))


def bind_execution(execution: Execution) -> JobExecutionResult:
    """Write the description of a program.

    :param execution: the execution that the program asks for
    :returns: the result of a run that took no time and has no accumulators
    """
    folder = Path(os.environ[BINDING_FOLDER])
    program = describe(execution, Path.cwd())
    (folder / PLAN).write_bytes(program.plan)
    (folder / DESCRIPTION).write_text(json.dumps(program.to_json()))
    return JobExecutionResult(JobID.generate(), 0)


_EXECUTIONS: list[str] = []
_WARNINGS: list[str] = []


def executions() -> Sequence[str]:
    """Return the places where this process called ``execute``: file and line of each call, including refused ones."""
    return tuple(_EXECUTIONS)


def warn(message: str) -> None:
    """Record a warning for the author of the program, which does not prevent its deployment.

    :param message: one or two sentences
    """
    _WARNINGS.append(message)


def warnings() -> Sequence[str]:
    """Return the warnings for the author of the program."""
    return tuple(_WARNINGS)


def executed_twice(places: Sequence[str]) -> str:
    """Return the message that a program cannot be executed more than once.

    :param places: the places where it was executed
    :returns: a sentence
    """
    return (
        f"The program calls execute() {len(places)} times, at {' and at '.join(places)}. A pipeline runs one program: add all"
        " sinks, and then call execute() once."
    )


def _find_caller() -> str:
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    shown = file.relative_to(Path.cwd()) if file.is_absolute() and file.is_relative_to(Path.cwd()) else file
    return f"{shown}:{frame.f_lineno}"


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

    def __init__(self, result: JobExecutionResult) -> None:
        self._result = result

    def job_id(self) -> JobID:
        """Return the id of the job."""
        return self._result.job_id

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
