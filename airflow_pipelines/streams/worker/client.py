"""The process of a program, from the side of its parent."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.processes import ChildProcess, ProcessSettings
from airflow_pipelines.streams.worker.messages import (
    AllMetrics,
    AskMetrics,
    Close,
    Committed,
    Done,
    Failure,
    Feed,
    JobReplies,
    Open,
    OpenEnd,
    Request,
    RunJobs,
    StateChanges,
    Step,
    Stepped,
    StoredPages,
    TakeChanges,
    TaskMetrics,
)

_MODULE = "airflow_pipelines.streams.worker"
R = TypeVar("R")


class WorkerClosedError(StreamProgramError):
    """An error raised for a request to a program's process that this process has closed."""


class ProgramFailedError(StreamProgramError):
    """An error raised because a function of a program has raised one.

    :param failure: the failure
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        place = f" ({failure.place})" if failure.place else ""
        notes = "".join(f"\n{note}" for note in failure.notes)
        super().__init__(f"{failure.type}: {failure.message}{place}{notes}\n\n{failure.traceback.rstrip()}")


class OtherProcesses(Protocol):
    """Other processes in which tasks of a program may run."""

    @property
    def jobs_from(self) -> int:
        """The minimum number of elements of a chain in a step for which it is worth sending the chain there."""
        ...

    def run(self, jobs: Sequence[bytes]) -> Sequence[bytes]:
        """Call :func:`~airflow_pipelines.streams.worker.chain_task.run_chain_job` for each job.

        :param jobs: the jobs
        :returns: the replies, in the order of the jobs
        """
        ...


class WorkerProcess:
    """A program that runs in its own process, which starts at once.

    :param program: a :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` as bytes
    :param settings: the settings with which the process is started
    :param on_line: a function that receives the name of the stream, ``stdout`` or ``stderr``, and each line that the program
        prints, from other threads
    :param memory_bytes: the memory limit in bytes; None for no limit
    """

    def __init__(
        self,
        program: bytes,
        settings: ProcessSettings,
        on_line: Callable[[str, str], None],
        memory_bytes: int | None = None,
    ) -> None:
        self._program = program
        self._folders = settings.paths
        self._references = settings.references
        self._memory_bytes = memory_bytes
        self._child = ChildProcess(_MODULE, settings, partial(on_line, "stdout"), partial(on_line, "stderr"))
        self._lock = threading.Lock()
        self._is_closing = False
        self._ended: StreamProgramError | None = None

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._child.pid

    def open(
        self,
        rest: bytes | None = None,
        pages: Iterable[StoredPages] = (),
        dropped: frozenset[str | tuple[str, str]] = frozenset(),
        *,
        schemas: Mapping[str, bytes] | None = None,
        now_ms: int | None = None,
        attempt: int = 0,
        database: str,
    ) -> Stepped:
        """Open the program, at its beginning or from stored state.

        :param rest: the ``rest`` of the last :class:`StateChanges`; None to begin
        :param pages: the state of a release that kept it in pages; read while they are sent
        :param dropped: state that the program no longer has and that may be dropped: uids of operators, or these with the name of a
            state
        :param schemas: the Arrow schemas in IPC format of the relations that the program makes, by uid; needed for those whose
            sinks do not know theirs
        :param now_ms: processing time; None to continue at the time of the last step
        :param attempt: the number of the attempt, from 0, one more for each restart
        :param database: the folder for the database with the state by key
        :returns: the reply before the first step
        :raises ProgramFailedError: if the program cannot resume from this state, or one of its functions raises
        """
        opening = Open(
            self._program,
            database,
            rest,
            dropped,
            schemas or {},
            now_ms,
            self._folders,
            self._memory_bytes,
            attempt,
            self._references,
        )
        return self._ask(Stepped, _opening(opening, pages))

    def step(self, now_ms: int, feeds: Sequence[Feed], others: OtherProcesses | None = None) -> Stepped:
        """Run one step.

        :param now_ms: processing time
        :param feeds: the feeds, in the order in which they arrived
        :param others: the processes in which chains with many elements may run; None for none
        :returns: the output of the step
        :raises ProgramFailedError: if a function of the program raises
        """
        jobs_from = None if others is None else others.jobs_from
        return self._ask(Stepped, (Step(now_ms, feeds, jobs_from),), others)

    def take_checkpoint(self, folder: str) -> StateChanges:
        """Prepare the written output for commit, and return the state for a checkpoint.

        :param folder: the folder, which does not exist, for links to the files of the database
        :returns: the state
        :raises ProgramFailedError: if some state cannot be pickled
        """
        return self._ask(StateChanges, (TakeChanges(folder),))

    def notify_checkpoint_complete(self) -> None:
        """Tell the program that the changes that were taken last are durable, so that it may make its output visible.

        :raises ProgramFailedError: if a sink fails to do so
        """
        self._ask(Done, (Committed(),))

    def metrics(self) -> Mapping[tuple[str, int], TaskMetrics] | None:
        """Return the current metrics. May be called by any thread.

        :returns: metrics by uid of the operator and number of the task; None while another request is running, whose reply will
            bring them
        :raises StreamProgramError: if the process no longer runs
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._exchange(AllMetrics, (AskMetrics(),)).metrics
        finally:
            self._lock.release()

    def close(self, kill_after_s: float = 10.0) -> None:
        """End the process. Its functions are closed, and output that was not committed is dropped.

        May be called by any thread, and again.

        :param kill_after_s: the number of seconds after which it is killed; they include the step that is running
        """
        deadline = time.monotonic() + kill_after_s
        if self._lock.acquire(timeout=max(0.0, kill_after_s)):
            try:
                if not self._is_closing and self._ended is None:
                    self._ask_to_end(deadline)
            finally:
                self._is_closing = True
                self._lock.release()
        self._is_closing = True
        self._child.kill()
        with self._lock:
            self._child.close(0)

    def _ask_to_end(self, deadline: float) -> None:
        with contextlib.suppress(OSError):  # the process is gone already
            self._child.connection.send(Close())
            if self._child.connection.poll(max(0.0, deadline - time.monotonic())):
                self._child.close(max(0.0, deadline - time.monotonic()))

    def _ask(self, expected: type[R], requests: Iterable[Any], others: OtherProcesses | None = None) -> R:
        with self._lock:
            return self._exchange(expected, requests, others)

    def _exchange(
        self,
        expected: type[R],
        requests: Iterable[Any],
        others: OtherProcesses | None = None,
    ) -> R:
        if self._ended is not None:
            raise self._ended
        if self._is_closing:
            raise WorkerClosedError("The process of the stream program was closed.")
        answer = self._answer(requests)
        while isinstance(answer, RunJobs) and others is not None:
            answer = self._answer((JobReplies(others.run(answer.jobs)),))
        if isinstance(answer, Failure):
            raise ProgramFailedError(answer)
        if not isinstance(answer, expected):
            raise StreamProgramError(f"The process of the stream program answered {type(answer).__name__} for {expected.__name__}.")
        return answer

    def _answer(self, requests: Iterable[Any]) -> Any:
        try:
            for request in requests:
                self._send(request)
        except Exception:
            # The process waits for the rest of the request, and would take the next request for it.
            self._is_closing = True
            self._child.kill()
            raise
        try:
            return self._child.receive()
        except (EOFError, OSError):
            raise self._end() from None

    def _send(self, request: Any) -> None:
        try:
            self._child.connection.send(request)
        except OSError:
            raise self._end() from None

    def _end(self) -> StreamProgramError:
        """Return the error to raise when the process has ended, or no longer responds.

        :returns: the error to raise
        """
        if self._is_closing:
            return WorkerClosedError("The process of the stream program was closed while it worked.")
        self._ended = self._child.diagnose_end()
        return self._ended


def _opening(opening: Open, pages: Iterable[StoredPages]) -> Iterator[Request | StoredPages | OpenEnd]:
    yield opening
    yield from pages
    yield OpenEnd()
