"""The costs of a running pipeline's steps: the newest one by one, and the sums of all."""

from __future__ import annotations

from collections import deque
from typing import Final

from airflow_pipelines.engine.step_stats import StepStats

KEPT: Final = 100
"""The number of the newest steps that are kept."""


class StepHistory:
    """The steps since the pipeline was opened. One thread adds them, any other may read."""

    def __init__(self) -> None:
        self._recent: deque[StepStats] = deque(maxlen=KEPT)
        self._rows: dict[str, int] = {}
        self._milliseconds: dict[str, float] = {}

    def add(self, stats: StepStats) -> None:
        """Add the newest step."""
        self._recent.append(stats)
        for relation, rows in stats.table_rows.items():
            self._rows[relation] = self._rows.get(relation, 0) + rows
        for operator in stats.operators:
            self._milliseconds[operator.view] = self._milliseconds.get(operator.view, 0.0) + operator.duration_ms
            # The last of a view's operators produces the view itself.
            if operator.relation == operator.view:
                self._rows[operator.view] = self._rows.get(operator.view, 0) + operator.rows_out

    @property
    def recent(self) -> list[StepStats]:
        """The newest steps, oldest first."""
        return list(self._recent)

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows in the changes of each table and view, summed over all steps."""
        return dict(self._rows)

    @property
    def milliseconds(self) -> dict[str, float]:
        """The time that the operators of each view have taken, summed over all steps."""
        return dict(self._milliseconds)
