from __future__ import annotations

from airflow_pipelines.engine.streams.statistics import MAX_WARNINGS, StreamStatistics
from airflow_pipelines.streams.worker.messages import Stepped, TaskMetrics


def test_what_a_step_does_not_mention_stays() -> None:
    statistics = StreamStatistics()
    statistics.take(Stepped(metrics={("a", 0): TaskMetrics(5), ("a", 1): TaskMetrics(6)}))
    statistics.take(Stepped(read=3))
    statistics.take(Stepped(metrics={("a", 1): TaskMetrics(7, 1, 10, {"late": 1})}))
    assert statistics.metrics == {("a", 0): TaskMetrics(5), ("a", 1): TaskMetrics(7, 1, 10, {"late": 1})}


def test_the_newest_warnings_are_kept_once_each() -> None:
    statistics = StreamStatistics()
    statistics.take(Stepped(warnings=["idle", "late"]))
    statistics.take(Stepped(warnings=["idle"]))
    assert statistics.warnings == ["late", "idle"]
    statistics.take(Stepped(warnings=[f"warning {number}" for number in range(MAX_WARNINGS - 1)]))
    assert len(statistics.warnings) == MAX_WARNINGS
    assert statistics.warnings[0] == "idle"
