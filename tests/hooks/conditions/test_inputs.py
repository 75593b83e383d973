from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import ConnectorEndCondition, LagCondition, PollOutcome, Verdict
from tests.hooks.conditions.polls import seen


def connector(name: str, *, ended: bool = False, lag: Any = None, buffered: int = 0, error: str | None = None) -> dict[str, Any]:
    metrics = {"total_records": 5, "buffered_records": buffered, "buffered_bytes": 10 * buffered, "end_of_input": ended, "lag": lag}
    return {"endpoint_name": name, "fatal_error": error, "metrics": metrics}


def stats(*inputs: dict[str, Any], received: int = 9, completed: int = 9, incarnation: str = "i") -> dict[str, Any]:
    metrics = {"total_input_records": received, "total_completed_records": completed, "incarnation_uuid": incarnation}
    return {"global_metrics": metrics, "inputs": list(inputs)}


def judged(condition: Any, answer: dict[str, Any], memory: Any = None) -> Verdict:
    verdict: Verdict = condition.judge(seen(answer=answer), memory)
    json.dumps(verdict.result)
    return verdict


def test_the_end_of_one_connector_waits_for_no_other() -> None:
    condition = ConnectorEndCondition("orders.files")
    endless = connector("clicks.topic")
    assert judged(condition, stats(endless, connector("orders.files"))).outcome is PollOutcome.PENDING
    # The connector has ended, and what came in until then is completed step by step while others bring more.
    pending = judged(condition, stats(endless, connector("orders.files", ended=True), received=20, completed=9))
    assert pending.outcome is PollOutcome.PENDING
    assert "9 of 20" in pending.message
    still = judged(condition, stats(endless, connector("orders.files", ended=True), received=90, completed=19), pending.memory)
    assert still.outcome is PollOutcome.PENDING
    done = judged(condition, stats(endless, connector("orders.files", ended=True), received=90, completed=20), still.memory)
    assert done.outcome is PollOutcome.REACHED
    assert done.result == {"connector": "orders.files", "total_records": 5}


def test_the_counters_of_another_incarnation_are_not_compared() -> None:
    condition = ConnectorEndCondition("orders.files")
    ended = connector("orders.files", ended=True)
    memory = judged(condition, stats(ended, received=20, completed=9)).memory
    after = judged(condition, stats(ended, received=30, completed=25, incarnation="other"), memory)
    assert after.outcome is PollOutcome.PENDING


@pytest.mark.parametrize("condition", [ConnectorEndCondition("orders.file"), LagCondition(max_records=1, connector="orders.file")])
def test_a_connector_that_is_not_there_ends_the_wait(condition: Any) -> None:
    verdict = judged(condition, stats(connector("orders.files"), connector("clicks.topic")))
    assert verdict.outcome is PollOutcome.FAILED
    assert "known: clicks.topic, orders.files" in verdict.message


@pytest.mark.parametrize("condition", [ConnectorEndCondition("orders.files"), LagCondition(max_records=1)])
def test_a_connector_that_has_given_up_ends_the_wait(condition: Any) -> None:
    verdict = judged(condition, stats(connector("orders.files", error="the file is gone")))
    assert verdict.outcome is PollOutcome.FAILED
    assert "the file is gone" in verdict.message


def test_lag_counts_what_is_read_and_not_processed() -> None:
    condition = LagCondition(max_records=10)
    near = {"records": 4, "bytes": None, "seconds": None}
    assert judged(condition, stats(connector("a.t", lag=near, buffered=6))).outcome is PollOutcome.REACHED
    beyond = judged(condition, stats(connector("a.t", lag=near, buffered=7)))
    assert beyond.outcome is PollOutcome.PENDING
    assert "a.t is 11 records behind" in beyond.message


def test_every_input_and_every_limit_has_to_be_kept() -> None:
    condition = LagCondition(max_records=10, max_seconds=5)
    good, late = {"records": 1, "bytes": 1, "seconds": 2.0}, {"records": 1, "bytes": 1, "seconds": 6.5}
    assert judged(condition, stats(connector("a.t", lag=good), connector("b.t", lag=late))).outcome is PollOutcome.PENDING
    assert judged(condition, stats(connector("a.t", lag=good), connector("b.t", lag=good))).outcome is PollOutcome.REACHED
    only = LagCondition(max_records=10, max_seconds=5, connector="a.t")
    assert judged(only, stats(connector("a.t", lag=good), connector("b.t", lag=late))).outcome is PollOutcome.REACHED


def test_what_is_not_known_is_never_taken_for_nothing() -> None:
    condition = LagCondition(max_seconds=5)
    assert judged(condition, stats()).outcome is PollOutcome.PENDING
    assert judged(condition, stats(connector("a.http"))).outcome is PollOutcome.PENDING
    records_only = judged(condition, stats(connector("a.t", lag={"records": 0, "bytes": None, "seconds": None})))
    assert records_only.outcome is PollOutcome.PENDING
    assert "not known how far behind: a.t in seconds" in records_only.message
    # An input that has ended is behind nothing; one that says nothing is left out beside one that does.
    assert judged(condition, stats(connector("a.f", ended=True), connector("b.http"))).outcome is PollOutcome.REACHED


def test_a_lag_needs_a_limit() -> None:
    with pytest.raises(ValueError, match="give max_records, max_bytes or max_seconds"):
        LagCondition(connector="a.t")
    assert LagCondition(max_records=0).goal == "a lag of at most 0 records"
