"""The process of a stream program as a circuit uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Protocol, TypeAlias

from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.client import TakePages
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages, TaskMetrics

END_S = 10.0
Dropped: TypeAlias = frozenset[str | tuple[str, str]]
"""State that is not used: uids of operators, or uids with the name of a state."""
Metrics: TypeAlias = Mapping[tuple[str, int], TaskMetrics]
"""By uid of the operator and number of the task."""


class Worker(Protocol):
    """A process that runs a stream program. Its state is in it from :meth:`open` on, and changes with each step."""

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        """Begin where another process of the program has stopped.

        :param rest: all that was kept besides pages; None for the beginning
        :param pages: the pages
        :param dropped: what of this is not used
        :param now_ms: processing time; None goes on at that of the last step
        :returns: what is known before the first step
        """

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        """Run the program over what is fed to it.

        :param now_ms: processing time
        :param feeds: in the order in which it has arrived
        :param jobs: where chains run that have very much to do; None for in the process of the program
        """

    def changes(self, take: TakePages) -> StateChanges:
        """What has changed in the state since the last call; sinks prepare what they have written.

        :param take: gets the pages that have changed, some at a time
        :returns: what else has changed
        """

    def committed(self) -> None:
        """What the last call of :meth:`changes` gave is durable: sinks make their output visible."""

    def metrics(self) -> Metrics | None:
        """All metrics as they are now; None while a step runs, which tells them itself. May be called from any thread.

        :raises StreamProgramError: when the process runs no more
        """

    def close(self, wait_s: float) -> None:
        """End the process. May be called from any thread.

        :param wait_s: how long a step that it runs may go on
        """


class StreamStateLostError(Exception):
    """The state of a stream program is ahead of the newest step, because a step has failed."""


class StreamProgramFailure(Exception):
    """A stream program failed outside of a step: when it was opened, or at a checkpoint. It answers nothing more.

    :param message: what failed, and what is saved
    :param trace: the traceback of the program's own code, for a log
    """

    def __init__(self, message: str, trace: str | None = None) -> None:
        super().__init__(message)
        self.trace = trace


class StreamRuntime:
    """Runs one stream program for one circuit, and knows whether its state is that of the circuit's newest step.

    :param start: starts the process
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._worker: Worker | None = None
        self._answers = False
        self._is_ahead = False
        self._has_prepared = False
        self._bootstrapped: Set[str] | None = None
        self.dropped: Dropped = frozenset()
        """What of the saved state a change of the program drops."""
        self.fresh_inputs: Set[str] = frozenset()
        """Uids of the relation inputs that are new or begin anew with a change of the program: a bootstrap gives them the contents
        of their relations."""
        self.latest = Stepped()
        """What the newest step gave."""
        self._statistics = StreamStatistics()
        self._end_is_shown = False

    @property
    def statistics(self) -> StreamStatistics:
        """What the program says of itself. Steps tell their figures at most once a second, so it is asked for the last ones."""
        if self._worker is not None and self._answers:
            # One that runs no more has said what it had to say.
            with suppress(StreamProgramError):
                self._statistics.take_metrics(self._worker.metrics())
        return self._statistics

    @property
    def warnings(self) -> list[str]:
        """What somebody may want to change of the program, as far as its steps have told."""
        return self._statistics.warnings

    @property
    def has_end_to_show(self) -> bool:
        """Whether all inputs have ended, and sinks wait for a checkpoint to make visible what they have written since the last."""
        return self.latest.has_ended and not self._end_is_shown and not self._is_ahead

    @property
    def is_open(self) -> bool:
        """Whether the program runs."""
        return self._worker is not None

    @property
    def bootstrapped(self) -> Set[str] | None:
        """While relations are evaluated anew, the inputs that get the contents of their relations; else None."""
        return self._bootstrapped

    def bootstrap(self, inputs: Set[str] | None) -> None:
        """Begin or end an evaluation of relations from their beginning.

        :param inputs: uids of the inputs that get the contents of their relations; None for the end
        """
        self._bootstrapped = inputs

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], now_ms: int | None) -> None:
        """Start the program where its saved state ends.

        :param rest: see :meth:`Worker.open`
        :param pages: see :meth:`Worker.open`
        :param now_ms: see :meth:`Worker.open`
        """
        self._worker = self._start()
        self.latest = self._worker.open(rest, pages, self.dropped, now_ms)
        self._answers = True
        self._statistics.take(self.latest)

    def close(self, wait_s: float = END_S) -> None:
        """End the process. May be called from any thread.

        :param wait_s: how long a step that it runs may go on, and functions may take to close
        """
        if self._worker is not None:
            self._worker.close(wait_s)

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None = None) -> Stepped:
        """Run the program over what is fed to it.

        :param now_ms: processing time
        :param feeds: in the order in which it has arrived
        :param jobs: where chains run that have very much to do; None for in the process of the program
        """
        self._is_ahead = True
        self.latest = self._opened.step(now_ms, feeds, jobs)
        self._statistics.take(self.latest)
        return self.latest

    def published(self) -> None:
        """The newest step is the circuit's current one."""
        self._is_ahead = False

    def changes(self, take: TakePages) -> StateChanges:
        """What has changed in the state since the last call.

        :param take: gets the pages that have changed, some at a time
        :returns: what else has changed
        :raises StreamStateLostError: when the newest step failed, so that the state is that of no step
        """
        if self._is_ahead:
            raise StreamStateLostError(
                "The state of the stream program cannot be saved after a step that failed. The next start goes on from the newest"
                " checkpoint, and reads again what came after it."
            )
        self._has_prepared = True
        return self._opened.changes(take)

    def committed(self) -> None:
        """What was saved last is durable."""
        if self._has_prepared:
            self._has_prepared = False
            self._opened.committed()
            self._end_is_shown = self.latest.has_ended

    @property
    def _opened(self) -> Worker:
        if self._worker is None:
            raise RuntimeError("the stream program was not opened")
        return self._worker
