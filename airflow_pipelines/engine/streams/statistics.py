"""The metrics and warnings that a stream program has reported since it was started."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from airflow_pipelines.streams.worker.messages import Stepped, TaskMetrics

MAX_WARNINGS: Final = 20


class StreamStatistics:
    """The newest metrics of all tasks, and the newest warnings. May be read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._metrics: dict[tuple[str, int], TaskMetrics] = {}
        self._warnings: dict[str, None] = {}

    def take(self, stepped: Stepped) -> None:
        """Record a step's report: the metrics that have changed, and new warnings.

        :param stepped: the result of the step
        """
        if not stepped.metrics and not stepped.warnings:
            return
        with self._lock:
            self._metrics.update(stepped.metrics)
            for warning in stepped.warnings:
                # A repeated warning becomes the newest.
                self._warnings.pop(warning, None)
                self._warnings[warning] = None
            while len(self._warnings) > MAX_WARNINGS:
                del self._warnings[next(iter(self._warnings))]

    def take_metrics(self, metrics: Mapping[tuple[str, int], TaskMetrics] | None) -> None:
        """Record metrics.

        :param metrics: the metrics by uid of the operator and number of the task; None for nothing new
        """
        with self._lock:
            self._metrics.update(metrics or {})

    @property
    def metrics(self) -> dict[tuple[str, int], TaskMetrics]:
        """The newest metrics by uid of the operator and number of the task."""
        with self._lock:
            return dict(self._metrics)

    @property
    def warnings(self) -> list[str]:
        """The newest warnings, oldest first."""
        with self._lock:
            return list(self._warnings)
