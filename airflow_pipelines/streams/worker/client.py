"""The process of a program, as its parent uses it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

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
from airflow_pipelines.streams.worker.page_parts import in_parts

_MODULE = "airflow_pipelines.streams.worker"
TakePages: TypeAlias = Callable[[StoredPages], None]
R = TypeVar("R")


class WorkerClosedError(StreamProgramError):
    """The process of a program was closed by this one, and is asked for something."""


class ProgramFailedError(StreamProgramError):
    """A function of a program has raised an error.

    :param failure: what is known of it
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
        """A chain that gets fewer elements in a step is not worth the way there."""
        ...

    def run(self, jobs: Sequence[bytes]) -> Sequence[bytes]:
        """Call :func:`~airflow_pipelines.streams.worker.chain_task.run_chain_job` for each job.

        :param jobs: the jobs
        :returns: what it gave, in the order of the jobs
        """
        ...


class WorkerProcess:
    """Runs a program in a process of its own, which starts at once.

    :param program: what :class:`~airflow_pipelines.streams.worker.bound.BoundProgram` gave as bytes
    :param settings: how the process is started
    :param on_line: is given the name of the stream, ``stdout`` or ``stderr``, and each line that the program prints, by other
        threads
    :param memory_bytes: how much memory it may have; None for no limit
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
        """The number of the process."""
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
    ) -> Stepped:
        """Begin, or go on.

        :param rest: what :class:`StateChanges` had last; None to begin
        :param pages: all pages that were not told to be gone; read while they are sent
        :param dropped: state that the program no longer has and that may go: uids of operators, or these with the name of a state
        :param schemas: Arrow schemas in IPC format of the relations that the program makes, by uid; needed for those whose sinks
            do not know theirs
        :param now_ms: processing time; None goes on at the time of the last step
        :param attempt: from 0, one more for each restart
        :returns: what is known before the first step
        :raises ProgramFailedError: when the program cannot go on from this, or one of its functions raises
        """
        opening = Open(
            self._program, rest, dropped, schemas or {}, now_ms, self._folders, self._memory_bytes, attempt, self._references
        )
        return self._ask(Stepped, _opening(opening, pages))

    def step(self, now_ms: int, feeds: Sequence[Feed], others: OtherProcesses | None = None) -> Stepped:
        """One step.

        :param now_ms: processing time
        :param feeds: what has come in, in the order in which it came
        :param others: where chains may run that have much to do; None for nowhere
        :returns: what came out
        :raises ProgramFailedError: when a function of the program raises
        """
        jobs_from = None if others is None else others.jobs_from
        return self._ask(Stepped, (Step(now_ms, feeds, jobs_from),), others)

    def changes(self, take: TakePages) -> StateChanges:
        """Make ready to commit what was written, and tell what has changed.

        :param take: gets the pages that have changed since the last time, some at a time
        :returns: what else has changed
        :raises ProgramFailedError: when something cannot be kept
        """
        with self._lock:
            return self._asked(StateChanges, (TakeChanges(),), take=take)

    def committed(self) -> None:
        """The changes that were taken last are durable: the program may make visible what it has written.

        :raises ProgramFailedError: when a sink cannot
        """
        self._ask(Done, (Committed(),))

    def metrics(self) -> Mapping[tuple[str, int], TaskMetrics] | None:
        """All metrics as they are now. May be called by any thread.

        :returns: by uid of the operator and number of the task; None while it is asked something else, which it will tell after
        :raises StreamProgramError: when it runs no more
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._asked(AllMetrics, (AskMetrics(),)).metrics
        finally:
            self._lock.release()

    def close(self, kill_after_s: float = 10.0) -> None:
        """End the process: its functions are closed, and what was not committed is dropped. May be called by any thread, and again.

        :param kill_after_s: how long it may take, with the step that it is in; then it is killed
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
        with contextlib.suppress(OSError):  # it is gone already
            self._child.connection.send(Close())
            if self._child.connection.poll(max(0.0, deadline - time.monotonic())):
                self._child.close(max(0.0, deadline - time.monotonic()))

    def _ask(self, expected: type[R], requests: Iterable[Any], others: OtherProcesses | None = None) -> R:
        with self._lock:
            return self._asked(expected, requests, others)

    def _asked(
        self,
        expected: type[R],
        requests: Iterable[Any],
        others: OtherProcesses | None = None,
        take: TakePages | None = None,
    ) -> R:
        if self._ended is not None:
            raise self._ended
        if self._is_closing:
            raise WorkerClosedError("The process of the stream program was closed.")
        answer = self._answer(requests)
        while isinstance(answer, RunJobs) and others is not None:
            answer = self._answer((JobReplies(others.run(answer.jobs)),))
        while isinstance(answer, StoredPages) and take is not None:
            answer = self._after(answer, take)
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
            # It waits for the rest of what is asked, and would take the next request for that.
            self._is_closing = True
            self._child.kill()
            raise
        try:
            return self._child.receive()
        except (EOFError, OSError):
            raise self._end() from None

    def _after(self, pages: StoredPages, take: TakePages) -> Any:
        """The message that follows some pages, once these were taken."""
        try:
            take(pages)
        except Exception:
            # It sends the others, which nobody wants.
            self._is_closing = True
            self._child.kill()
            raise
        return self._answer(())

    def _send(self, request: Any) -> None:
        try:
            self._child.connection.send(request)
        except OSError:
            raise self._end() from None

    def _end(self) -> StreamProgramError:
        """The process has ended, or does not talk any more.

        :returns: the error to raise
        """
        if self._is_closing:
            return WorkerClosedError("The process of the stream program was closed while it worked.")
        self._ended = self._child.ended()
        return self._ended


def _opening(opening: Open, pages: Iterable[StoredPages]) -> Iterator[Request | StoredPages | OpenEnd]:
    yield opening
    yield from in_parts(pages)
    yield OpenEnd()
