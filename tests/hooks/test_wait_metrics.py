from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException, TaskDeferred
from airflow.sdk.observability import stats

from airflow_pipelines.hooks.conditions import StatusCondition
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.sdk.errors import PipelineFailedError, PipelineTimeoutError
from airflow_pipelines.sensors import PipelineStatusSensor
from airflow_pipelines.triggers.pipeline import PipelineTrigger
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "t", "pipeline_name": "p", "status": "RUNNING", "poke_interval": 0.01}
RUNNING = StatusCondition(("RUNNING",))


class Counted(dict[str, list[Any]]):
    """What was counted, by metric."""

    def add(self, metric: str, value: Any) -> None:
        self.setdefault(metric, []).append(value)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The metrics of a test."""
    found = Counted()
    monkeypatch.setattr(stats, "incr", lambda metric, *_, tags=None, **__: found.add(metric, tags))
    monkeypatch.setattr(stats, "timing", lambda metric, duration, **_: found.add(metric, duration.total_seconds()))
    return found


def waited(condition: str, outcome: str, counted: Counted) -> float:
    """The seconds of the only wait that was counted."""
    assert set(counted) == {f"airflow_pipelines.wait.{condition}.{outcome}", f"airflow_pipelines.wait.{condition}.duration"}
    assert counted[f"airflow_pipelines.wait.{condition}.{outcome}"] == [{"condition": condition, "outcome": outcome}]
    (seconds,) = counted[f"airflow_pipelines.wait.{condition}.duration"]
    return float(seconds)


def test_a_sensors_wait_is_counted(scripted: ScriptedService, counted: Counted) -> None:
    scripted.up("Paused")
    polls: list[float] = []

    def looked_at() -> dict[str, Any]:
        polls.append(time.monotonic())
        return scripted.up("Running" if polls[-1] > polls[0] + 0.1 else "Paused")

    scripted.answers["GET", ""] = looked_at
    PipelineStatusSensor(**COMMON, timeout=10).execute({})
    assert 0.1 <= waited("status", "reached", counted) < 10


@pytest.mark.parametrize(
    ("pipeline", "arguments", "error", "outcome"),
    [
        ("Paused", {}, AirflowSensorTimeout, "timeout"),
        ("Paused", {"soft_fail": True}, AirflowSkipException, "timeout"),
        (None, {}, AirflowFailException, "failed"),
        (None, {"soft_fail": True}, AirflowFailException, "failed"),
    ],
)
def test_a_wait_that_ended_badly_is_counted_as_that(
    scripted: ScriptedService, counted: Counted, pipeline: str | None, arguments: dict[str, Any], error: Any, outcome: str
) -> None:
    if pipeline is not None:
        scripted.up(pipeline)
    with pytest.raises(error):
        PipelineStatusSensor(**COMMON, **arguments, timeout=0.03).execute({})
    waited("status", outcome, counted)


def test_a_deferred_wait_is_counted_by_the_triggerer_once(scripted: ScriptedService, counted: Counted) -> None:
    scripted.up("Paused")
    with pytest.raises(TaskDeferred) as deferred:
        PipelineStatusSensor(**COMMON, timeout=10, deferrable=True).execute({})
    assert counted == {}
    scripted.up("Running")
    _, arguments = deferred.value.trigger.serialize()
    trigger = PipelineTrigger(**arguments | {"first_delay_s": 0})

    async def first() -> Any:
        return await anext(trigger.run())

    assert asyncio.run(first()).payload["outcome"] == "reached"
    waited("status", "reached", counted)


def test_the_waits_of_operators_in_place_are_counted(scripted: ScriptedService, counted: Counted) -> None:
    scripted.up()
    PipelineHook().wait("p", RUNNING, timeout_s=1, poll_interval_s=0.01)
    waited("status", "reached", counted)
    counted.clear()
    scripted.up("Paused")
    with pytest.raises(PipelineTimeoutError):
        PipelineHook().wait("p", RUNNING, timeout_s=0.02, poll_interval_s=0.01)
    waited("status", "timeout", counted)
    counted.clear()
    with pytest.raises(PipelineFailedError):
        PipelineHook().wait("nobody", RUNNING, timeout_s=1, poll_interval_s=0.01)
    waited("status", "failed", counted)
