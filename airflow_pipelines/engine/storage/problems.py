"""The REST contract's error code for each problem of a pipeline's storage."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem

_CODES: Final = {
    StorageProblem.FULL: ErrorCode.STORAGE_FULL,
    StorageProblem.READ_ONLY: ErrorCode.STORAGE_READ_ONLY,
    StorageProblem.DAMAGED: ErrorCode.STORAGE_DAMAGED,
    StorageProblem.MISSING: ErrorCode.STORAGE_MISSING,
    StorageProblem.REPLACED: ErrorCode.STORAGE_DAMAGED,
    StorageProblem.LOCKED: ErrorCode.STORAGE_LOCKED,
    StorageProblem.UNUSABLE: ErrorCode.STORAGE_ERROR,
}

STORAGE_CODES: Final = frozenset(_CODES.values())
"""The error codes of storage that cannot be used. The message says everything."""


def storage_problem(error: StorageError, pipeline: str | None) -> Problem:
    """Return the REST error for an error of a storage.

    :param error: the error
    :param pipeline: the name of the pipeline, if it is known
    :returns: a Problem with the path, the advice and the checkpoints to go back to in its details
    """
    where = "" if pipeline is None else f"The storage of pipeline {pipeline} cannot be used. "
    details = {
        "path": str(error.path),
        "problem": error.problem.value,
        "advice": error.advice,
        "checkpoints": [checkpoint.to_wire() for checkpoint in error.older],
    }
    return Problem(_CODES[error.problem], f"{where}{error}", details)
