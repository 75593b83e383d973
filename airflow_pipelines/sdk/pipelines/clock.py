"""The clock of a pipeline that is driven from outside, as tests of programs with NOW() want it."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.sdk.pipelines.base import PipelineBase


class PipelineClock(PipelineBase):
    """Moving the clock."""

    def advance_clock(self, delta_ms: int | None = None) -> dict[str, Any]:
        """Move a clock that stands still until it is told (``dev_tweaks={"now_http_driven": True}``).

        :param delta_ms: milliseconds to move it by; None moves it by one tick (``clock_resolution_usecs``)
        :returns: the new time: ``now_ms``, milliseconds since the epoch, and ``now``, the same as text. All views follow it
            already.
        :raises ValueError: when ``delta_ms`` is negative
        :raises PipelineAPIError: when the clock goes by itself, or the pipeline is not running
        """
        if delta_ms is not None and delta_ms < 0:
            raise ValueError(f"a clock cannot go back: delta_ms is {delta_ms}")
        answer: dict[str, Any] = self.client.post(self._path("clock", "advance"), json={"delta_ms": delta_ms})
        return answer
