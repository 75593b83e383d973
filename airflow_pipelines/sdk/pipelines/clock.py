"""The externally driven clock of a pipeline, for tests of programs with NOW()."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.sdk.pipelines.base import PipelineBase


class PipelineClock(PipelineBase):
    """The method that moves the clock."""

    def advance_clock(self, delta_ms: int | None = None) -> dict[str, Any]:
        """Move a clock that stands still between requests (``dev_tweaks={"now_http_driven": True}``).

        :param delta_ms: milliseconds to move it by; None moves it by one tick (``clock_resolution_usecs``)
        :returns: the new time: ``now_ms``, milliseconds since the epoch, and ``now``, the same as text. All views reflect it
            already.
        :raises ValueError: when ``delta_ms`` is negative
        :raises PipelineAPIError: when the clock runs by itself, or the pipeline is not running
        """
        if delta_ms is not None and delta_ms < 0:
            raise ValueError(f"a clock cannot go back: delta_ms is {delta_ms}")
        answer: dict[str, Any] = self.client.post(self._path("clock", "advance"), json={"delta_ms": delta_ms})
        return answer
