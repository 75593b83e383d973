"""The condition on a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from airflow_pipelines.hooks.conditions.comparison import Comparison
from airflow_pipelines.hooks.conditions.condition import PollOutcome, RuntimeCondition, Verdict, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request

_LATER: Final = ("input_connector_", "output_connector_", "stream_")
"""The prefixes of metrics that may appear while a pipeline runs: with the first rows that are pushed, or the first listener."""


@dataclass(frozen=True)
class MetricCondition(RuntimeCondition):
    """The condition that a metric compares with a value, such as ``records_input_buffered < 1000``.

    :param metric: the metric's name, as in the pipeline's ``/metrics``
    :param operator: the comparison's sign
    :param value: the value to compare with
    :param labels: the labels of the series to compare; the comparison has to hold for each series of that name that has them
    """

    kind = "metric"
    metric: str
    operator: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._comparison()
        if not self.metric:
            raise ValueError("metric is empty")
        if isinstance(self.value, (bool, str)):
            raise TypeError(f"value is {self.value!r}, which is no number")

    @property
    def goal(self) -> str:
        """The goal, with the comparison."""
        return f"{self._series} {self._comparison()}"

    @property
    def _series(self) -> str:
        labels = ", ".join(f"{name}={value!r}" for name, value in sorted(self.labels.items()))
        return f"{self.metric}{{{labels}}}" if labels else self.metric

    def _comparison(self) -> Comparison:
        return Comparison(self.operator, self.value)

    def request(self) -> Request:
        """Request the metrics."""
        return Request("/metrics", {"format": "json"})

    def _judge_answer(self, seen: Observation, answer: Any, memory: Mapping[str, Any] | None) -> Verdict:
        names = {str(entry["key"]): entry for entry in answer}
        if self.metric not in names and not self.metric.startswith(_LATER):
            message = f"there is no metric {self.metric!r}; known: {', '.join(sorted(names))}"
            return Verdict(PollOutcome.FAILED, message, {"status": seen.status.name})
        series = [one for one in names.get(self.metric, {}).get("values", []) if self.labels.items() <= one["labels"].items()]
        if not series:
            return pending(seen, f"there is no {self._series} yet")
        comparison = self._comparison()
        values = ", ".join(f"{one['value']:g}" for one in series)
        if all(comparison.holds(one["value"]) for one in series):
            return Verdict(PollOutcome.REACHED, f"{self._series} is {values}", {"metric": self.metric, "series": series})
        return pending(seen, f"{self._series} is {values}")
