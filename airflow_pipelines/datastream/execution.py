"""Runs of a program in this process, with checkpoints, restarts, savepoints, and another thread for asynchronous runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig
from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus
from airflow_pipelines.datastream.snapshot_files import CheckpointFiles, write_savepoint
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback
from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.restarts import RestartDecisions, RestartPolicy
from airflow_pipelines.streams.snapshots import Snapshot

_log = logging.getLogger("airflow_pipelines.datastream")


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run.

    :param tasks: the settings of its operators
    :param checkpoint_interval: ms between checkpoints, 0 for none
    :param checkpoints: the storage of checkpoints, and the number that may fail
    :param restarts: the restart policy after a failure; None for no restart
    :param savepoints: the folder for savepoints; None if the program set none
    :param start: the snapshot to start from; None to start afresh
    """

    tasks: TaskSettings = field(default_factory=TaskSettings)
    checkpoint_interval: int = 0
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    restarts: RestartPolicy | None = None
    savepoints: str | None = None
    start: Snapshot | None = None


class LocalJob:
    """A run of a program.

    :param plan: the plan to run
    :param settings: the settings of the run
    :param dependencies: the context that is entered before functions are opened, and left before anybody is notified that the run
        has ended
    """

    def __init__(self, plan: Plan, settings: RunSettings, dependencies: AbstractContextManager[None]) -> None:
        self._id = JobID.generate()
        self._plan = plan
        self._settings = settings
        self._status = JobStatus.CREATED
        with ExitStack() as resources:
            resources.enter_context(dependencies)
            self._runner = self._make_runner(settings.tasks, settings.start)
            self._resources = resources.pop_all()
        self._checkpoint: Snapshot | None = settings.start
        self._last_checkpoint = time.monotonic()
        self._files = CheckpointFiles.of(settings.checkpoints, self._id)
        self._failed_checkpoints = 0
        self._requests: list[tuple[CompletableFuture[str], str, bool, bool]] = []
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._ended: CompletableFuture[None] = CompletableFuture()
        self._result: CompletableFuture[JobExecutionResult] = CompletableFuture()
        self._restarts = RestartDecisions(settings.restarts)
        self._progress: Callable[[LocalRunner], None] = _say_nothing

    def _make_runner(self, tasks: TaskSettings, start: Snapshot | None) -> LocalRunner:
        return LocalRunner(self._plan, tasks, snapshot=start)

    def run(self, progress: Callable[[LocalRunner], None] | None = None) -> JobExecutionResult:
        """Run until the inputs end, or the run is cancelled.

        :param progress: the function to call after each step; optional
        :returns: the result of the run
        """
        self._progress = progress or self._progress
        began = time.monotonic()
        try:
            with self._resources:
                self._run_with_restarts()
        except BaseException as error:  # noqa: BLE001 (raised again)
            self._status = JobStatus.FAILED
            self._end(error)
            raise error.with_traceback(user_traceback(error)) from error.__cause__
        self._status = JobStatus.CANCELED if self._cancelled.is_set() and not self._runner.has_ended else JobStatus.FINISHED
        result = JobExecutionResult(self._id, int((time.monotonic() - began) * 1000), self._runner.metrics())
        self._result.set_result(result)
        self._end(None)
        return result

    def _run_with_restarts(self) -> None:
        attempt = 0
        while True:
            try:
                self._status = JobStatus.RUNNING
                self._runner.run(self._after_step)
                self._close_runner()
                return
            except Exception as error:
                self._runner.abort()
                delay = self._restarts.delay_after_failure()
                if delay is None:
                    raise
                attempt += 1
                self._status = JobStatus.RESTARTING
                _log.warning("The program failed and is started again (attempt %s): %s: %s", attempt, type(error).__name__, error)
                if self._cancelled.wait(delay):
                    return
                self._runner = self._make_runner(replace(self._settings.tasks, attempt=attempt), self._checkpoint)
                if self._cancelled.is_set():
                    self._runner.cancel()

    def _close_runner(self) -> None:
        if self._runner.is_cancelled and not self._runner.has_ended:
            self._runner.close()
        else:
            self._answer_requests()
            if self._files is not None and self._settings.checkpoint_interval:
                # A restart from the newest checkpoint must not write again what the end has made visible.
                self._take_checkpoint()
            self._runner.finish()

    def _after_step(self) -> None:
        self._progress(self._runner)
        interval = self._settings.checkpoint_interval
        if interval and (time.monotonic() - self._last_checkpoint) * 1000 >= interval:
            self._take_checkpoint()
        self._answer_requests()

    def _take_checkpoint(self) -> None:
        snapshot = self._runner.snapshot()
        self._last_checkpoint = time.monotonic()
        try:
            if self._files is not None:
                self._files.write(snapshot)
        except OSError as error:
            self._failed_checkpoints += 1
            if self._failed_checkpoints > self._settings.checkpoints.get_tolerable_checkpoint_failure_number():
                raise
            _log.warning("A checkpoint cannot be written, and the program goes on without it: %s", error)
            return
        self._failed_checkpoints = 0
        self._commit(snapshot)

    def _commit(self, snapshot: Snapshot) -> None:
        self._checkpoint = snapshot
        self._runner.notify_checkpoint_complete()
        self._last_checkpoint = time.monotonic()

    def _write_savepoint(self, directory: str) -> str:
        snapshot = self._runner.snapshot()
        path = write_savepoint(snapshot, directory)
        self._commit(snapshot)
        return path

    def _answer_requests(self) -> None:
        with self._lock:
            requests, self._requests = self._requests, []
        for future, directory, stop, to_the_end in requests:
            try:
                if to_the_end:
                    self._runner.drain()
                future.set_result(self._write_savepoint(directory))
            except Exception as error:  # noqa: BLE001 (belongs to who asked)
                future.set_exception(error)
                continue
            if stop:
                self._runner.cancel()

    def _end(self, error: BaseException | None) -> None:
        if self._files is not None:
            self._files.end(self._status)
        with self._lock:
            requests, self._requests = self._requests, []
        for future, *_ in requests:
            future.set_exception(StreamProgramError("The program ended before the savepoint was written."))
        if error is not None:
            self._result.set_exception(error)
        self._ended.set_result(None)

    def start(self) -> None:
        """Run in another thread."""
        threading.Thread(target=self._run_quietly, name=f"stream-program-{self._id}", daemon=True).start()

    def _run_quietly(self) -> None:
        try:
            self.run()
        except BaseException:  # noqa: BLE001 (the future of the result has it)
            _log.debug("The program failed", exc_info=True)

    # requests of a client

    def job_id(self) -> JobID:
        """Return the id of the run."""
        return self._id

    def status(self) -> JobStatus:
        """Return the status of the run."""
        return self._status

    def cancel(self) -> CompletableFuture[None]:
        """Stop without a savepoint."""
        self._cancelled.set()
        self._runner.cancel()
        return self._ended

    def savepoint(self, directory: str | None) -> CompletableFuture[str]:
        """Write a savepoint."""
        return self._request(directory, stop=False, to_the_end=False)

    def stop_with_savepoint(self, directory: str | None, end_of_time: bool) -> CompletableFuture[str]:
        """Write a savepoint and stop."""
        return self._request(directory, stop=True, to_the_end=end_of_time)

    def _request(self, directory: str | None, *, stop: bool, to_the_end: bool) -> CompletableFuture[str]:
        folder = directory or self._settings.savepoints
        future: CompletableFuture[str] = CompletableFuture()
        if folder is None:
            future.set_exception(
                StreamProgramError("No folder for the savepoint: name one, or call set_default_savepoint_directory().")
            )
        elif self._status.is_terminal_state():
            future.set_exception(StreamProgramError("The program has ended: there is nothing to save."))
        else:
            with self._lock:
                self._requests.append((future, folder, stop, to_the_end))
        return future

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators of functions."""
        return self._runner.metrics()

    def result(self) -> CompletableFuture[JobExecutionResult]:
        """Return the future of the result, which completes when the run ends."""
        return self._result


def _say_nothing(runner: LocalRunner) -> None:  # noqa: ARG001
    return
