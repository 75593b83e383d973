"""The following of a pipeline that is up: its log and its progress."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.contract.stats import PipelineStatistics, StreamOperatorMetrics
from airflow_pipelines.running.statistics_text import waiting_texts
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelinesError
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.sdk.wire import is_ending
from airflow_pipelines.streams.elements import MAX_TIMESTAMP

POLL_S = 0.2
STATISTICS_S = 1.0
LAST_LINES_S = 1.0
"""The number of seconds without a new log line after which the log of a pipeline that has ended counts as complete."""
LAST_LINES_LIMIT_S = 10.0
_COUNTING_TRIES = 3
_UNREADY = 503
"""The HTTP status of a request that the pipeline cannot answer at the moment."""


class End(Enum):
    """The outcome of following a pipeline."""

    COMPLETE = "all inputs have ended, and all is processed"
    STOPPED = "somebody stopped it"
    FAILED = "it stopped with an error"
    UNDELIVERED = "an output has failed"


class Screen(Protocol):
    """The place where log lines and progress are shown."""

    def line(self, text: str) -> None:
        """Show a line of the log.

        :param text: the line
        """

    def progress(self, statistics: PipelineStatistics) -> None:
        """Show the pipeline's progress.

        :param statistics: the statistics of the pipeline
        """


class LogFollower:
    """A reader of the new lines of a pipeline's log, in a thread of its own."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        following = pipeline.logs(from_end=True)
        # The first line marks the beginning of the log: no later line is missed.
        next(following, None)
        threading.Thread(target=self._read, args=(following,), name="log", daemon=True).start()

    def drain(self) -> Iterator[str]:
        """Yield the lines that have arrived since the last call."""
        while not self._lines.empty():
            yield self._lines.get()

    def _read(self, following: Generator[str, None, None]) -> None:
        try:
            for line in following:
                self._lines.put(line)
        except PipelinesError as error:
            self._lines.put(f"(the log cannot be followed any more: {error})")


@dataclass
class Following:
    """A loop that follows one pipeline until it ends.

    :param pipeline: the pipeline
    :param log: the new lines of its log
    :param screen: the place where lines and progress are shown
    """

    pipeline: Pipeline
    log: LogFollower
    screen: Screen
    failed_outputs: Mapping[str, str] = field(default_factory=dict)
    """The reasons why outputs have failed, by their names, once a failure has ended the loop."""
    _next_statistics: float = 0.0

    def until_end(self) -> End:
        """Follow the pipeline until all inputs have ended, an output has failed, or the pipeline stops.

        :returns: the outcome
        :raises PipelinesError: when the service cannot be reached any more
        """
        while True:
            self._show_lines()
            status = self.pipeline.status()
            if status in (PipelineStatus.STOPPED, PipelineStatus.NOT_FOUND):
                self.last_lines()
                return End.FAILED if status is PipelineStatus.STOPPED and self.pipeline.deployment_error() else End.STOPPED
            if (end := self._end_of_inputs_or_output()) is not None:
                return end
            time.sleep(POLL_S)

    def what_waits(self) -> list[str]:
        """Find the operators of a stream program that wait for an event time that will not come any more.

        Operators count their waiting keys only while event time stands still, so this may need several attempts.

        :returns: a sentence for each operator with timers that have not fired; empty if the pipeline cannot be asked
        """
        for look in range(_COUNTING_TRIES):
            if look:
                time.sleep(STATISTICS_S)
            try:
                operators = (self.pipeline.stats().stream_metrics or {}).values()
            except PipelineAPIError:
                # The pipeline has ended well; missing statistics do not matter.
                continue
            texts = waiting_texts(operators)
            if texts or _is_counted(operators):
                return texts
        return []

    def last_lines(self) -> None:
        """Show the remaining log lines of a pipeline that has ended."""
        limit = time.monotonic() + LAST_LINES_LIMIT_S
        quiet = time.monotonic() + LAST_LINES_S
        while time.monotonic() < min(quiet, limit):
            if self._show_lines():
                quiet = time.monotonic() + LAST_LINES_S
            time.sleep(POLL_S / 4)

    def _show_lines(self) -> bool:
        lines = list(self.log.drain())
        for line in lines:
            self.screen.line(line)
        return bool(lines)

    def _end_of_inputs_or_output(self) -> End | None:
        """Show the progress if it is due, and return the outcome if the pipeline has reached its end."""
        if time.monotonic() < self._next_statistics:
            return None
        self._next_statistics = time.monotonic() + STATISTICS_S
        try:
            statistics = self.pipeline.stats()
        except PipelineAPIError as error:
            # Of a pipeline that is ending the next look at its status says why.
            if error.status_code != _UNREADY and not is_ending(error):
                raise
            return None
        self.screen.progress(statistics)
        metrics = statistics.global_metrics
        if metrics is not None and metrics.pipeline_complete:
            return End.COMPLETE
        self.failed_outputs = statistics.failed_outputs
        return End.UNDELIVERED if self.failed_outputs else None


def _is_counted(operators: Collection[StreamOperatorMetrics]) -> bool:
    """Return True if the number of waiting keys is known.

    It is known once tasks have counted them, or once event time has reached its end, where no key waits. All tasks count at the
    same time, except those without keys and those with too many.

    :param operators: the metrics of the operators
    """
    tasks = [task for operator in operators for task in operator.tasks or ()]
    return any(task.waiting_keys is not None for task in tasks) or all(task.watermark == MAX_TIMESTAMP for task in tasks)
