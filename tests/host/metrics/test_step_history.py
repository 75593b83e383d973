"""What the steps of a pipeline have cost."""

from __future__ import annotations

from airflow_pipelines.engine.step_stats import OperatorStats, StepStats
from airflow_pipelines.host.metrics.step_history import KEPT, StepHistory


def step(number: int) -> StepStats:
    hidden = OperatorStats("v", "v (sums)", "accumulators", 10, 7, 2.5)
    last = OperatorStats("v", "v", "linear", 7, 3, 1.5)
    return StepStats(number, 5.0, 10, (hidden, last), {"t": 10})


def test_rows_are_those_of_views_and_tables_and_times_those_of_all_operators() -> None:
    history = StepHistory()
    for number in range(KEPT + 5):
        history.add(step(number))
    assert [stats.step for stats in history.recent] == list(range(5, KEPT + 5))
    assert history.rows == {"t": 10 * (KEPT + 5), "v": 3 * (KEPT + 5)}
    assert history.milliseconds == {"v": 4.0 * (KEPT + 5)}
