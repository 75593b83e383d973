"""The progress of a stream program in one line for people, in the same form wherever the program runs."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airflow_pipelines.common.readable import readable_duration, readable_size
from airflow_pipelines.streams.elements import MAX_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a program.

    :param elements: the number of elements that were read
    :param waiting: the number of those that no step has taken yet
    :param event_time: the watermark in milliseconds; None without one
    :param state_bytes: the size of the state in bytes
    """

    elements: int
    waiting: int = 0
    event_time: int | None = None
    state_bytes: int = 0


class ProgressText:
    """A formatter for successive progress reports of one program.

    :param began_s: the time at which the program began, on a monotonic clock; None if it is not known
    """

    def __init__(self, began_s: float | None = None) -> None:
        self._last = None if began_s is None else (began_s, 0)

    def line(self, progress: Progress, now_s: float) -> str:
        """Return the line for a progress report.

        :param progress: the progress of the program
        :param now_s: the time of the report, on the same clock
        :returns: text without an end of line
        """
        parts = [f"{progress.elements:,} elements", f"{self._update_rate(progress.elements, now_s):,.0f}/s"]
        if progress.waiting:
            parts.append(f"{progress.waiting:,} waiting")
        if progress.event_time is not None:
            parts.append(_event_time(progress.event_time))
        if progress.state_bytes:
            parts.append(f"state {readable_size(progress.state_bytes)}")
        return ", ".join(parts)

    def _update_rate(self, elements: int, now_s: float) -> float:
        last, self._last = self._last, (now_s, elements)
        if last is None:
            return 0.0
        # After a restart the number of elements begins at 0 again.
        return max(elements - last[1], 0) / max(now_s - last[0], 0.001)


def _event_time(watermark: int) -> str:
    if watermark >= MAX_TIMESTAMP:
        return "event time at its end"
    return f"event time {readable_duration(time.time() - watermark / 1000)} behind"
