"""What ends an incarnation outside of a view's evaluation: told in short, logged in full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.engine.spark.failures import refused_write
from airflow_pipelines.engine.storage.errors import StorageError, StorageProblem, storage_access
from airflow_pipelines.host.state.failures import as_problem
from airflow_pipelines.host.state.pipeline_log import PipelineLog

TEXT = """An error occurred while calling o94.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to s3a://key:hunter2@bucket/x. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
\t... 9 more
"""


class OfJava(Py4JJavaError):
    """An error as py4j raises it, without the JVM that would be asked for its text."""

    def __init__(self) -> None:
        Exception.__init__(self, TEXT)

    def __str__(self) -> str:
        return TEXT


@pytest.mark.parametrize(
    ("number", "code", "advice"),
    [
        (errno.ENOSPC, "RuntimeError.StorageFull", "Make room"),
        (errno.EDQUOT, "RuntimeError.StorageFull", "larger quota"),
        (errno.EROFS, "RuntimeError.StorageReadOnly", "Mount its file system for writing"),
        (errno.EACCES, "RuntimeError.StorageReadOnly", "write permission"),
        (errno.ENOENT, "RuntimeError.StorageMissing", "Put it back from a backup"),
        (errno.EIO, "RuntimeError.StorageDamaged", "Restore it from a backup"),
        (errno.EMFILE, "RuntimeError.StorageError", "choose another folder"),
    ],
)
def test_a_problem_of_the_storage_has_its_code_path_and_advice(number: int, code: str, advice: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.log"
    with pytest.raises(StorageError) as raised, storage_access(journal):
        raise OSError(number, os.strerror(number))
    problem = as_problem(raised.value, "orders")
    assert (http_status(problem.code), problem.code) == (500, code)
    assert problem.message.startswith(
        f"The storage of pipeline orders cannot be used. {journal} cannot be used: {os.strerror(number)}. "
    )
    assert advice in problem.message
    assert problem.details["path"] == str(journal)
    assert advice in problem.details["advice"]


def test_a_java_error_is_told_by_its_innermost_cause() -> None:
    error = as_problem(OfJava()).body()
    assert error["error_code"] == "RuntimeError.WorkerPanic"
    assert error["message"] == "The pipeline's worker failed: IOException: No space left on device"


def test_a_full_disk_that_java_met_is_a_problem_of_the_storage(tmp_path: Path) -> None:
    refused = refused_write(tmp_path, OfJava())
    assert refused is not None
    assert (refused.problem, refused.path) == (StorageProblem.FULL, tmp_path)
    assert f"{tmp_path} cannot be used: No space left on device. Make room" in str(refused)
    assert refused_write(tmp_path, ValueError("No space left on device")) is None


def test_the_log_has_the_whole_stack_without_secrets(tmp_path: Path) -> None:
    log = PipelineLog(tmp_path / "pipeline.log", "p")
    log.failure("it failed", cause=OfJava())
    log.close()
    text = (tmp_path / "pipeline.log").read_text()
    assert "Caused by: java.io.IOException: No space left on device" in text
    assert "FileDispatcherImpl.write0" in text
    assert "hunter2" not in text
    assert "s3a://***@bucket/x" in text


def test_an_error_of_pythons_is_told_as_it_is() -> None:
    assert as_problem(OSError("disk full")).message == "The pipeline's worker failed: OSError: disk full"
