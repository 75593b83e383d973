from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import MetricCondition, PollOutcome
from tests.hooks.conditions.polls import seen


def metrics(*series: tuple[float, dict[str, str]], name: str = "records_input_buffered") -> list[dict[str, Any]]:
    return [
        {"key": "rss_bytes", "values": [{"value": 1, "labels": {}}]},
        {"key": name, "values": [{"value": value, "labels": labels} for value, labels in series]},
    ]


@pytest.mark.parametrize(
    ("operator", "holds"), [("<", False), ("<=", True), ("==", True), ("!=", False), (">=", True), (">", False)]
)
def test_the_metric_is_compared(operator: str, holds: bool) -> None:
    verdict = MetricCondition("records_input_buffered", operator, 10).judge(seen(answer=metrics((10, {}))), None)
    assert (verdict.outcome is PollOutcome.REACHED) is holds
    assert "records_input_buffered is 10" in verdict.message


def test_it_has_to_hold_for_every_series_that_is_meant() -> None:
    answer = metrics((5, {"endpoint": "a.t"}), (50, {"endpoint": "b.t"}))
    assert MetricCondition("records_input_buffered", "<", 10).judge(seen(answer=answer), None).outcome is PollOutcome.PENDING
    found = MetricCondition("records_input_buffered", "<", 10, {"endpoint": "a.t"}).judge(seen(answer=answer), None)
    assert found.outcome is PollOutcome.REACHED
    assert found.result["series"] == [{"value": 5, "labels": {"endpoint": "a.t"}}]


def test_a_metric_that_does_not_exist_ends_the_wait_unless_it_may_come() -> None:
    answer = metrics((5, {}))
    gone = MetricCondition("record_input_buffered", "<", 10).judge(seen(answer=answer), None)
    assert gone.outcome is PollOutcome.FAILED
    assert "known: records_input_buffered, rss_bytes" in gone.message
    for later in ("stream_function_metric", "input_connector_records_total", "output_connector_queued_records"):
        assert MetricCondition(later, ">", 0).judge(seen(answer=answer), None).outcome is PollOutcome.PENDING
    other = MetricCondition("records_input_buffered", "<", 10, {"endpoint": "z.z"})
    assert other.judge(seen(answer=answer), None).outcome is PollOutcome.PENDING


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"operator is '=>'; known: < <= == != >= >"):
        MetricCondition("m", "=>", 1)
    with pytest.raises(ValueError, match="metric is empty"):
        MetricCondition("", ">", 1)
    text: Any = "many"
    with pytest.raises(TypeError, match="value is 'many'"):
        MetricCondition("m", ">", text)
