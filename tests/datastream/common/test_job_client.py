from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_client import JobClient
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus


class _Job:
    def __init__(self) -> None:
        self.id = JobID.generate()
        self.calls: list[Any] = []
        self.ended: CompletableFuture[JobExecutionResult] = CompletableFuture()

    def job_id(self) -> JobID:
        return self.id

    def status(self) -> JobStatus:
        return JobStatus.RUNNING

    def cancel(self) -> CompletableFuture[None]:
        self.calls.append("cancel")
        return CompletableFuture.completed(None)

    def savepoint(self, directory: str | None) -> CompletableFuture[str]:
        self.calls.append(("savepoint", directory))
        return CompletableFuture.completed("/s/1")

    def stop_with_savepoint(self, directory: str | None, end_of_time: bool) -> CompletableFuture[str]:
        self.calls.append(("stop", directory, end_of_time))
        return CompletableFuture.completed("/s/2")

    def accumulators(self) -> dict[str, Any]:
        return {"n": 3}

    def result(self) -> CompletableFuture[JobExecutionResult]:
        return self.ended


def test_asks_the_job_that_was_started() -> None:
    job = _Job()
    client = JobClient(job)
    assert client.get_job_id() == job.id
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"n": 3}
    assert client.trigger_savepoint().result() == "/s/1"
    assert client.stop_with_savepoint(True, "/s").result() == "/s/2"
    client.cancel().result()
    assert job.calls == [("savepoint", None), ("stop", "/s", True), "cancel"]
    ending = client.get_job_execution_result()
    assert not ending.done()
    job.ended.set_result(JobExecutionResult(job.id, 5, {"n": 4}))
    assert ending.result().get_accumulator_result("n") == 4
    with pytest.raises(TypeError, match="advance_to_end_of_event_time takes True or False, not '/s'"):
        client.stop_with_savepoint("/s")  # type: ignore[arg-type]


def test_results_say_what_is_left() -> None:
    result = JobExecutionResult(JobID("a1"), 12, {"b": 1, "a": 2})
    assert (result.get_job_id(), result.get_net_runtime(), result.get_all_accumulator_results()) == (
        JobID("a1"),
        12,
        {"b": 1, "a": 2},
    )
    assert result.get_accumulator_result("c") is None
    assert result.is_job_execution_result()
    assert result.get_job_execution_result() is result
    assert str(result) == "Job a1 ran 12 ms; accumulators:\n- a: 2\n- b: 1"


def test_futures_are_converted_with_their_errors() -> None:
    source: Future[int] = Future()
    text = CompletableFuture.of(source, str)
    assert not text.done()
    source.set_result(5)
    assert text.result() == "5"
    failed: Future[int] = Future()
    failed.set_exception(KeyError("gone"))
    assert isinstance(CompletableFuture.of(failed, str).exception(), KeyError)


def test_status_tells_what_is_final() -> None:
    assert {status for status in JobStatus if status.is_terminal_state() and not status.is_globally_terminal_state()} == {
        JobStatus.SUSPENDED
    }
    assert {status.name for status in JobStatus if status.is_globally_terminal_state()} == {"FAILED", "CANCELED", "FINISHED"}
