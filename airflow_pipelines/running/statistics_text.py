"""The progress of a pipeline in one line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from airflow_pipelines.contract.stats import PipelineStatistics, StreamOperatorMetrics
from airflow_pipelines.streams.progress_text import Progress, ProgressText


class StatisticsText:
    """A formatter of statistics that are read one after the other."""

    def __init__(self) -> None:
        self._progress = ProgressText()

    def line(self, statistics: PipelineStatistics, now_s: float) -> str:
        """Return the statistics as one line.

        :param statistics: the newest ones
        :param now_s: the time at which they were read, in seconds of a monotonic clock
        """
        return self._progress.line(_progress(statistics), now_s) + _warnings(statistics)


def _progress(statistics: PipelineStatistics) -> Progress:
    metrics = statistics.global_metrics
    return Progress(
        0 if metrics is None else metrics.total_processed_records or 0,
        0 if metrics is None else metrics.buffered_input_records or 0,
        statistics.stream_watermark,
        statistics.stream_state_bytes or 0,
    )


def _warnings(statistics: PipelineStatistics) -> str:
    """Return the number of warnings and the newest one."""
    warnings = statistics.warnings or ()
    return f", {len(warnings)} warning{'' if len(warnings) == 1 else 's'}: {warnings[-1]}" if warnings else ""


def waiting_texts(operators: Iterable[StreamOperatorMetrics]) -> list[str]:
    """Describe the operators of a stream program that wait for event time.

    :param operators: the metrics of the operators
    :returns: a sentence for each operator that has pending timers of event time
    """
    return [
        f"{operator.name}: event time stands at {_event_time(operator.watermark)}, and the timers of {operator.waiting_keys} keys"
        " wait: an input that it reads has not ended, such as a relation whose tables have no connectors, or that stays open"
        for operator in operators
        if operator.waiting_keys
    ]


def _event_time(watermark: int | None) -> str:
    if watermark is None:
        return "its beginning"
    try:
        return datetime.fromtimestamp(watermark / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{watermark} ms"
