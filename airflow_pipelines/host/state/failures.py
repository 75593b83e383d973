"""The problem (an error of the contract) for the failure that ended an incarnation."""

from __future__ import annotations

import json
from typing import Any

from airflow_pipelines.connectors.base import FatalConnectorFailure
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.spark.failures import failure_text
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.storage.problems import storage_problem
from airflow_pipelines.engine.storage.remote_calls import SyncError
from airflow_pipelines.engine.streams.runtime import StreamProgramFailure
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.streams import STREAM_PROGRAM


def _describe_kept(failure: StepError) -> str:
    if failure.view == STREAM_PROGRAM:
        return "Nothing of the step was kept, except for what sinks had written by then that need no commit."
    return "Nothing of the step was kept."


def as_problem(failure: Exception, pipeline: str | None = None) -> Problem:
    """Return the problem for the failure that ended an incarnation.

    Its body is the contract's deployment error (``message, error_code, details``).

    :param failure: the failure that ended the incarnation
    :param pipeline: the pipeline's name, if a message needs it
    """
    if isinstance(failure, Problem):
        return failure
    if isinstance(failure, StepError):
        cause = f"{failure.condition}: {failure.message}"
        where = f" in {failure.expression}" if failure.expression else ""
        failing_row = failure.failing_row
        details: dict[str, Any] = {"view": failure.view, "condition": failure.condition, "expression": failure.expression}
        row = ""
        if failing_row is not None:
            details |= {"relation": failing_row.relation, "row": dict(failing_row.row)}
            row = f", for example for the row {json.dumps(dict(failing_row.row), ensure_ascii=False)} of {failing_row.relation}"
        text = f"The step failed while evaluating {failure.view}: {cause}{where}{row}. {_describe_kept(failure)}"
        return Problem(ErrorCode.WORKER_PANIC, text, details)
    if isinstance(failure, StreamProgramFailure):
        return Problem(ErrorCode.WORKER_PANIC, f"{str(failure).rstrip('.')}.")
    if isinstance(failure, FatalConnectorFailure):
        return Problem(ErrorCode.WORKER_PANIC, f"The pipeline cannot go on: {failure}")
    if isinstance(failure, ProgramErrors):
        messages = [message.to_wire() for message in failure.messages]
        return Problem(ErrorCode.START_FAILED_DUE_TO_FAILED_COMPILATION, str(failure), {"messages": messages})
    if isinstance(failure, StorageError):
        return storage_problem(failure, pipeline)
    if isinstance(failure, SyncError):
        return Problem(ErrorCode.CHECKPOINT_FETCH_ERROR, str(failure))
    return Problem(ErrorCode.WORKER_PANIC, f"The pipeline's worker failed: {failure_text(failure)}")
