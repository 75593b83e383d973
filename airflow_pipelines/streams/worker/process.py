"""The process in which a program runs. It answers one request after the other until it is told to end, or its parent has ended."""

from __future__ import annotations

import gc
import logging
import resource
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.local import YOUNG_OBJECTS
from airflow_pipelines.streams.processes import connect_to_parent
from airflow_pipelines.streams.references import give_references
from airflow_pipelines.streams.state.database import DatabaseSettings, StateDatabase
from airflow_pipelines.streams.worker.bound import BoundProgram
from airflow_pipelines.streams.worker.failure import failure_of
from airflow_pipelines.streams.worker.job_place import LOG_FORMAT
from airflow_pipelines.streams.worker.messages import (
    AllMetrics,
    AskMetrics,
    Close,
    Done,
    Failure,
    JobReplies,
    Open,
    OpenEnd,
    Reply,
    Request,
    RunJobs,
    Step,
    StoredPages,
    TakeChanges,
)
from airflow_pipelines.streams.worker.moving import FailedElsewhereError
from airflow_pipelines.streams.worker.rest import Rest
from airflow_pipelines.streams.worker.run import ProgramRun
from airflow_pipelines.streams.worker.stored_state import StoredState


def main() -> None:
    """Answer requests until the end."""
    connection = connect_to_parent()
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    program = _Program(connection)
    try:
        while True:
            request: Request = connection.recv()
            connection.send(program.answer(request))
            if isinstance(request, Close):
                return
    except EOFError:
        program.abort()


class _Program:
    """The program of this process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._run: ProgramRun | None = None
        self._failure: Failure | None = None
        self._folders: tuple[str, ...] = ()
        self._database: StateDatabase | None = None

    def answer(self, request: Request) -> Reply:
        """Return the reply to a request."""
        if self._failure is not None:
            return Done() if isinstance(request, Close) else self._failure
        try:
            return self._open(request) if isinstance(request, Open) else self._answer(request)
        except EOFError:
            raise
        except FailedElsewhereError as error:
            self._failure = error.failure
            self.abort()
            return self._failure
        except BaseException as error:  # noqa: BLE001 (whatever a function raises ends the program, not its process)
            self._failure = failure_of(error, self._folders)
            self.abort()
            return self._failure

    def _open(self, request: Open) -> Reply:
        pages = _pages(self._connection)
        try:
            self._folders = request.folders
            give_references(request.references)
            if request.memory_bytes is not None:
                resource.setrlimit(resource.RLIMIT_AS, (request.memory_bytes, request.memory_bytes))
            bound = BoundProgram.from_bytes(request.program)
            self._folders = (*request.folders, bound.folder)
            rest = None if request.rest is None else Rest.from_bytes(request.rest)
            self._database = StateDatabase(Path(request.database), DatabaseSettings(cache_bytes=bound.settings.cache_bytes))
            self._run = ProgramRun(bound, request, StoredState(rest, self._database, request.dropped), pages)
        finally:
            for _ in pages:
                pass  # drain the remaining pages, which must not be taken for requests
        gc.collect()
        gc.freeze()  # the program and its libraries stay: later collections need not look at them
        return self._run.make_opening_reply()

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, Close):
            self.close()
            return Done()
        run = self._run
        if run is None:
            raise StreamProgramError("The program was not opened.")
        if isinstance(request, Step):
            if request.jobs_from is not None:
                return run.large_step(request.now_ms, request.feeds, self._run_jobs, request.jobs_from)
            return run.step(request.now_ms, request.feeds)
        if isinstance(request, TakeChanges):
            return run.take_checkpoint(Path(request.folder))
        if isinstance(request, AskMetrics):
            return AllMetrics(run.metrics())
        run.notify_checkpoint_complete()
        return Done()

    def _run_jobs(self, jobs: Sequence[bytes]) -> Sequence[bytes]:
        self._connection.send(RunJobs(jobs))
        answer = self._connection.recv()
        if isinstance(answer, JobReplies):
            return answer.replies
        raise EOFError  # the parent has abandoned the step

    def close(self) -> None:
        """Close all functions."""
        run, self._run = self._run, None
        if run is not None:
            run.close()
        self._close_database()

    def abort(self) -> None:
        """Close all functions after an error."""
        run, self._run = self._run, None
        if run is not None:
            run.abort()
        self._close_database()

    def _close_database(self) -> None:
        if self._database is not None:
            self._database.close()


def _pages(connection: Connection) -> Iterator[StoredPages]:
    while not isinstance(message := connection.recv(), OpenEnd):
        yield message
