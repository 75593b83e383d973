"""How far a pipeline has come, in one line."""

from __future__ import annotations

import time

from airflow_pipelines.contract.change_text import readable_size
from airflow_pipelines.contract.stats import PipelineStatistics

_END_OF_TIME_MS = 9_223_372_036_854_775_807
_UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (0.0, "s"))


class ProgressText:
    """Says what is worth knowing of statistics that come one after the other."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def line(self, statistics: PipelineStatistics, now_s: float) -> str:
        """The line.

        :param statistics: the newest ones
        :param now_s: when they were read, on a clock that never goes back
        """
        metrics = statistics.global_metrics
        processed = 0 if metrics is None else metrics.total_processed_records or 0
        parts = [f"{processed:,} elements", f"{self._rate(processed, now_s):,.0f}/s"]
        waiting = 0 if metrics is None else metrics.buffered_input_records or 0
        if waiting:
            parts.append(f"{waiting:,} waiting")
        watermark = statistics.stream_watermark
        if watermark is not None:
            parts.append(_event_time(watermark))
        state = statistics.stream_state_bytes
        if state:
            parts.append(f"state {readable_size(state)}")
        warnings = len(statistics.warnings or ())
        if warnings:
            parts.append(f"{warnings} warning{'' if warnings == 1 else 's'}: {(statistics.warnings or [''])[-1]}")
        return ", ".join(parts)

    def _rate(self, processed: int, now_s: float) -> float:
        last, self._last = self._last, (now_s, processed)
        if last is None:
            return 0.0
        # After a restart the counters begin anew.
        return max(processed - last[1], 0) / max(now_s - last[0], 0.001)


def _event_time(watermark: int) -> str:
    if watermark >= _END_OF_TIME_MS:
        return "event time at its end"
    behind = max(time.time() - watermark / 1000, 0.0)
    size, unit = next((size, unit) for size, unit in _UNITS if behind >= 2 * size)
    return f"event time {behind / (size or 1.0):,.1f} {unit} behind"
