"""What a stream program has said of itself since it was started."""

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
        """Take in what a step says: the metrics that have changed, and warnings that are new.

        :param stepped: what the step gave
        """
        if not stepped.metrics and not stepped.warnings:
            return
        with self._lock:
            self._metrics.update(stepped.metrics)
            for warning in stepped.warnings:
                # One that comes again is the newest.
                self._warnings.pop(warning, None)
                self._warnings[warning] = None
            while len(self._warnings) > MAX_WARNINGS:
                del self._warnings[next(iter(self._warnings))]

    def take_metrics(self, metrics: Mapping[tuple[str, int], TaskMetrics] | None) -> None:
        """Take in metrics.

        :param metrics: by uid of the operator and number of the task; None for nothing new
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
