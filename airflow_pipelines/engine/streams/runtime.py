"""The process of a stream program, as a circuit uses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.engine.streams.statistics import StreamStatistics
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages, TaskMetrics

END_S = 10.0
Dropped: TypeAlias = frozenset[str | tuple[str, str]]
"""State that is discarded: uids of operators, or uids with the name of a state."""
Metrics: TypeAlias = Mapping[tuple[str, int], TaskMetrics]
"""Metrics by uid of the operator and number of the task."""


class Worker(Protocol):
    """A process that runs a stream program. It holds the state from :meth:`open` on, and each step changes it."""

    @property
    def database(self) -> Path:
        """The folder of the process for the database with its state by key. It is removed when the process has ended."""

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        """Resume where another process of the program has stopped. Its state by key is in :attr:`database`.

        :param rest: all saved state besides that by key; None to start from the beginning
        :param pages: the state by key of a release that kept it in pages
        :param dropped: the parts of the saved state to discard
        :param now_ms: processing time in milliseconds; None to continue at that of the last step
        :returns: the information that is available before the first step
        """

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        """Run the program over its inputs.

        :param now_ms: processing time in milliseconds
        :param feeds: the inputs in arrival order
        :param jobs: the Spark jobs for chains with a lot of work; None to run them in the process of the program
        """

    def take_checkpoint(self, folder: Path) -> StateChanges:
        """Write the state for a checkpoint. Sinks prepare what they have written.

        :param folder: the folder, which does not exist, for links to the files of the database
        :returns: all other state
        """

    def committed(self) -> None:
        """Acknowledge that the result of the last :meth:`take_checkpoint` is durable. Sinks make their output visible."""

    def metrics(self) -> Metrics | None:
        """Return all current metrics, or None while a step runs, which reports them itself. May be called from any thread.

        :raises StreamProgramError: if the process no longer runs
        """

    def close(self, wait_s: float) -> None:
        """End the process. May be called from any thread.

        :param wait_s: the time in seconds that a running step may still take
        """


class StreamStateLostError(Exception):
    """The error of a stream program whose state is ahead of the newest step, because a step has failed."""


class StreamProgramFailure(Exception):
    """The failure of a stream program outside of a step: when it was opened, or at a checkpoint. It no longer answers.

    :param message: the failure, and what is saved
    :param trace: the traceback of the program's own code, for a log
    """

    def __init__(self, message: str, trace: str | None = None) -> None:
        super().__init__(message)
        self.trace = trace


class StreamRuntime:
    """The runner of one stream program for one circuit. It knows whether the program's state is that of the circuit's newest step.

    :param start: the function that starts the process
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._worker: Worker | None = None
        self._answers = False
        self._is_ahead = False
        self._has_prepared = False
        self._bootstrapped: Set[str] | None = None
        self.dropped: Dropped = frozenset()
        """The parts of the saved state that a change of the program discards."""
        self.fresh_inputs: Set[str] = frozenset()
        """The uids of the relation inputs that are new, or restart with a change of the program.

        A bootstrap gives them the contents of their relations.
        """
        self.latest = Stepped()
        """The result of the newest step."""
        self._statistics = StreamStatistics()
        self._end_is_shown = False

    @property
    def statistics(self) -> StreamStatistics:
        """The program's statistics. Steps report their metrics at most once a second, so the current ones are requested."""
        if self._worker is not None and self._answers:
            # A process that has ended has reported its last metrics already.
            with suppress(StreamProgramError):
                self._statistics.take_metrics(self._worker.metrics())
        return self._statistics

    @property
    def warnings(self) -> list[str]:
        """The warnings about the program that its steps have reported."""
        return self._statistics.warnings

    @property
    def has_end_to_show(self) -> bool:
        """True if all inputs have ended, and sinks need one more checkpoint to make their last output visible."""
        return self.latest.has_ended and not self._end_is_shown and not self._is_ahead

    @property
    def is_open(self) -> bool:
        """True if the program was opened."""
        return self._worker is not None

    @property
    def bootstrapped(self) -> Set[str] | None:
        """The inputs that get the contents of their relations during a bootstrap; None at other times."""
        return self._bootstrapped

    def bootstrap(self, inputs: Set[str] | None) -> None:
        """Begin or end an evaluation of relations from the beginning.

        :param inputs: uids of the inputs that get the contents of their relations; None for the end
        """
        self._bootstrapped = inputs

    def open(
        self, rest: bytes | None, pages: Iterable[StoredPages], link_files: Callable[[Path], None], now_ms: int | None
    ) -> None:
        """Start the program from its saved state.

        :param rest: see :meth:`Worker.open`
        :param pages: see :meth:`Worker.open`
        :param link_files: the function that brings the files of its database to a folder
        :param now_ms: see :meth:`Worker.open`
        """
        self._worker = self._start()
        link_files(self._worker.database)
        self.latest = self._worker.open(rest, pages, self.dropped, now_ms)
        self._answers = True
        self._statistics.take(self.latest)

    def close(self, wait_s: float = END_S) -> None:
        """End the process. May be called from any thread.

        :param wait_s: the time in seconds that a running step may still take, and that functions may take to close
        """
        if self._worker is not None:
            self._worker.close(wait_s)

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None = None) -> Stepped:
        """Run the program over its inputs.

        :param now_ms: processing time in milliseconds
        :param feeds: the inputs in arrival order
        :param jobs: the Spark jobs for chains with a lot of work; None to run them in the process of the program
        """
        self._is_ahead = True
        self.latest = self._opened.step(now_ms, feeds, jobs)
        self._statistics.take(self.latest)
        return self.latest

    def mark_published(self) -> None:
        """Record that the newest step has been published as the circuit's current one."""
        self._is_ahead = False

    def take_checkpoint(self) -> tuple[StateChanges, Path]:
        """Let the program write its state for a checkpoint.

        :returns: all state besides that by key, and a folder with the files of its database, which belongs to the caller
        :raises StreamStateLostError: if the newest step failed, so that the state belongs to no step
        """
        if self._is_ahead:
            raise StreamStateLostError(
                "The state of the stream program cannot be saved after a step that failed. The next start goes on from the newest"
                " checkpoint, and reads again what came after it."
            )
        self._has_prepared = True
        database = self._opened.database
        folder = database.with_name(f"{database.name}.checkpoint")
        shutil.rmtree(folder, ignore_errors=True)  # the last one may have failed
        return self._opened.take_checkpoint(folder), folder

    def committed(self) -> None:
        """Acknowledge that the state saved last is durable."""
        if self._has_prepared:
            self._has_prepared = False
            self._opened.committed()
            self._end_is_shown = self.latest.has_ended

    @property
    def _opened(self) -> Worker:
        if self._worker is None:
            raise RuntimeError("the stream program was not opened")
        return self._worker
