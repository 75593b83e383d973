"""How far a stream program has come, in one line for people: the same wherever it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airflow_pipelines.common.readable import readable_duration, readable_size
from airflow_pipelines.streams.elements import MAX_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a program has come.

    :param elements: number of elements that were read
    :param waiting: number of those that no step has taken yet
    :param event_time: the watermark in milliseconds; None without one
    :param state_bytes: size of the state
    """

    elements: int
    waiting: int = 0
    event_time: int | None = None
    state_bytes: int = 0


class ProgressText:
    """Says what is worth knowing of a program of which one progress after the other comes to be known.

    :param began_s: when it began, on a clock that never goes back; None where that is not known
    """

    def __init__(self, began_s: float | None = None) -> None:
        self._last = None if began_s is None else (began_s, 0)

    def line(self, progress: Progress, now_s: float) -> str:
        """The line.

        :param progress: how far the program has come
        :param now_s: when that was so, on the same clock
        :returns: text without an end of line
        """
        parts = [f"{progress.elements:,} elements", f"{self._rate(progress.elements, now_s):,.0f}/s"]
        if progress.waiting:
            parts.append(f"{progress.waiting:,} waiting")
        if progress.event_time is not None:
            parts.append(_event_time(progress.event_time))
        if progress.state_bytes:
            parts.append(f"state {readable_size(progress.state_bytes)}")
        return ", ".join(parts)

    def _rate(self, elements: int, now_s: float) -> float:
        last, self._last = self._last, (now_s, elements)
        if last is None:
            return 0.0
        # After a restart the elements count anew.
        return max(elements - last[1], 0) / max(now_s - last[0], 0.001)


def _event_time(watermark: int) -> str:
    if watermark >= MAX_TIMESTAMP:
        return "event time at its end"
    return f"event time {readable_duration(time.time() - watermark / 1000)} behind"
