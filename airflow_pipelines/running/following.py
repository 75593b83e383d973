"""Follows a pipeline that is up: its log, and how far it has come."""

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
from airflow_pipelines.streams.elements import MAX_TIMESTAMP

POLL_S = 0.2
STATISTICS_S = 1.0
LAST_LINES_S = 1.0
"""For how long nothing more must have come of the log of a pipeline that has ended."""
LAST_LINES_LIMIT_S = 10.0
_COUNTING_TRIES = 3
_UNREADY = 503
"""The status of what a pipeline cannot be asked at the moment."""


class End(Enum):
    """How following a pipeline has ended."""

    COMPLETE = "all inputs have ended, and all is processed"
    STOPPED = "somebody stopped it"
    FAILED = "it stopped with an error"
    UNDELIVERED = "an output has failed"


class Screen(Protocol):
    """Where lines and progress are shown."""

    def line(self, text: str) -> None:
        """Show a line of the log.

        :param text: the line
        """

    def progress(self, statistics: PipelineStatistics) -> None:
        """Show how far the pipeline has come.

        :param statistics: what it says of itself
        """


class LogLines:
    """The lines that a pipeline's log gains from now on, read in a thread of its own."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        following = pipeline.logs(from_end=True)
        # The first line says that the log begins: from here on nothing is missed.
        next(following, None)
        threading.Thread(target=self._read, args=(following,), name="log", daemon=True).start()

    def arrived(self) -> Iterator[str]:
        """The lines that have come since the last call."""
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
    """Follows one pipeline until it ends.

    :param pipeline: the pipeline
    :param log: what its log gains
    :param screen: where it is shown
    """

    pipeline: Pipeline
    log: LogLines
    screen: Screen
    failed_outputs: Mapping[str, str] = field(default_factory=dict)
    """Why outputs have failed, by their names, once that has ended the following."""
    _next_statistics: float = 0.0

    def until_end(self) -> End:
        """Follow until all inputs have ended, an output has failed, or the pipeline stops.

        :return: which of them
        :raises PipelinesError: when the service cannot be asked any more
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
        """Find out which operators of a stream program wait for event time that nothing moves any more. They count that when event
        time stands still, so that it may take several looks.

        :return: a sentence for each operator with timers that have not fired; none when the pipeline cannot be asked
        """
        for look in range(_COUNTING_TRIES):
            if look:
                time.sleep(STATISTICS_S)
            try:
                operators = (self.pipeline.stats().stream_metrics or {}).values()
            except PipelineAPIError:
                # It has ended well, whatever may be said of it besides.
                continue
            found = waiting_texts(operators)
            if found or _is_counted(operators):
                return found
        return []

    def last_lines(self) -> None:
        """Show what still comes of the log of a pipeline that has ended."""
        limit = time.monotonic() + LAST_LINES_LIMIT_S
        quiet = time.monotonic() + LAST_LINES_S
        while time.monotonic() < min(quiet, limit):
            if self._show_lines():
                quiet = time.monotonic() + LAST_LINES_S
            time.sleep(POLL_S / 4)

    def _show_lines(self) -> bool:
        found = list(self.log.arrived())
        for line in found:
            self.screen.line(line)
        return bool(found)

    def _end_of_inputs_or_output(self) -> End | None:
        """Show how far the pipeline has come, when it is time to, and find out whether that is as far as it comes."""
        if time.monotonic() < self._next_statistics:
            return None
        self._next_statistics = time.monotonic() + STATISTICS_S
        try:
            statistics = self.pipeline.stats()
        except PipelineAPIError as error:
            if error.status_code != _UNREADY:
                raise
            return None
        self.screen.progress(statistics)
        metrics = statistics.global_metrics
        if metrics is not None and metrics.pipeline_complete:
            return End.COMPLETE
        self.failed_outputs = statistics.failed_outputs
        return End.UNDELIVERED if self.failed_outputs else None


def _is_counted(operators: Collection[StreamOperatorMetrics]) -> bool:
    """Tell whether it is known how many keys wait: tasks have counted them, or event time has come to its end, where none do.

    All tasks count at the same time, but for those without keys or with too many.

    :param operators: what they say of themselves
    """
    tasks = [task for operator in operators for task in operator.tasks or ()]
    return any(task.waiting_keys is not None for task in tasks) or all(task.watermark == MAX_TIMESTAMP for task in tasks)
