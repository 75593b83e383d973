from __future__ import annotations

import time
from typing import Any

import pytest

from airflow_pipelines.contract.stats import PipelineStatistics
from airflow_pipelines.running.statistics_text import StatisticsText, waiting_texts


def statistics(processed: int, **others: Any) -> PipelineStatistics:
    metrics = {"total_processed_records": processed, "buffered_input_records": others.pop("buffered", 0)}
    return PipelineStatistics.from_dict({"global_metrics": metrics, **others})


def task(watermark: int | None, size: int) -> dict[str, Any]:
    return {"task": 0, "watermark": watermark, "state_bytes": size}


def test_the_rate_is_that_since_the_last_line() -> None:
    text = StatisticsText()
    assert text.line(statistics(1000), 10.0) == "1,000 elements, 0/s"
    assert text.line(statistics(5000, buffered=1234), 12.0) == "5,000 elements, 2,000/s, 1,234 waiting"
    assert text.line(statistics(10), 13.0) == "10 elements, 0/s", "after a restart counters begin anew"


@pytest.mark.parametrize(
    ("behind_s", "expected"), [(3, "3.0 s"), (119, "119.0 s"), (121, "2.0 min"), (7300, "2.0 h"), (4 * 86400, "4.0 days")]
)
def test_event_time_is_as_far_behind_as_the_slowest_operator(
    behind_s: float, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    late = int((1_800_000_000 - behind_s) * 1000)
    found = {"a": {"tasks": [task(late + 500_000, 100), task(None, 2000)]}, "b": {"tasks": [task(late, 0)]}, "c": {"tasks": []}}
    line = StatisticsText().line(statistics(1, stream_metrics=found), 0.0)
    assert line == f"1 elements, 0/s, event time {expected} behind, state 2.1 KiB"


def test_the_end_of_time_and_warnings_are_named() -> None:
    found = {"a": {"tasks": [task(2**63 - 1, 0)]}}
    line = StatisticsText().line(statistics(1, stream_metrics=found, warnings=["one", "split 3 is idle"]), 0.0)
    assert line == "1 elements, 0/s, event time at its end, 2 warnings: split 3 is idle"


def test_what_waits_for_event_time_is_named_with_its_place() -> None:
    waiting = {"name": "Count", "tasks": [task(4999, 0) | {"waiting_keys": 2}, task(6000, 0) | {"waiting_keys": 1}]}
    done = {"name": "Done", "tasks": [task(2**63 - 1, 0) | {"waiting_keys": 0}, task(None, 0)]}
    far = {"name": "Far", "tasks": [task(2**62, 0) | {"waiting_keys": 1}]}
    unknown = {"name": "New", "tasks": [task(None, 0) | {"waiting_keys": 1}]}
    found = statistics(1, stream_metrics={"a": waiting, "b": done, "c": far, "d": unknown}).stream_metrics
    assert found is not None
    texts = [text.split(" keys wait")[0] for text in waiting_texts(found.values())]
    assert texts == [
        "Count: event time stands at 1970-01-01 00:00:04.999+00:00, and the timers of 3",
        "Far: event time stands at 4611686018427387904 ms, and the timers of 1",
        "New: event time stands at its beginning, and the timers of 1",
    ]
