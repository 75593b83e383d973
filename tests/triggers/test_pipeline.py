from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout
from airflow.triggers.base import TriggerEvent

from airflow_pipelines.hooks.conditions import Condition, IdleCondition, StatusCondition, TokenCondition
from airflow_pipelines.hooks.configuration import first_delay_s, outage_budget_s
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelineTimeoutError
from airflow_pipelines.triggers.pipeline import PipelineTrigger, result_of, sensor_result_of
from tests.fixtures.airflow import ScriptedService


def trigger(condition: Condition, **changes: Any) -> PipelineTrigger:
    arguments: dict[str, Any] = {
        "pipeline_name": "p",
        "condition": condition.to_wire(),
        "pipeline_conn_id": "c",
        "poll_interval_s": 0.01,
        "first_delay_s": 0.0,
        "deadline": None,
        "outage_budget_s": 0.02,
    }
    return PipelineTrigger(**arguments | changes)


def run(one: PipelineTrigger) -> dict[str, Any]:
    async def events() -> list[TriggerEvent]:
        return [event async for event in one.run()]

    (event,) = asyncio.run(events())
    return dict(event.payload)


def test_it_is_made_again_from_what_it_serializes() -> None:
    one = trigger(IdleCondition(2.0), deadline=123.0, memory={"since": 1.0, "records": 2, "incarnation": "i"})
    path, arguments = one.serialize()
    assert path == "airflow_pipelines.triggers.pipeline.PipelineTrigger"
    assert PipelineTrigger(**arguments).serialize() == (path, arguments)


def test_airflow_can_store_what_it_serializes() -> None:
    from airflow.sdk.serde import deserialize, serialize

    _, arguments = trigger(StatusCondition(("RUNNING",)), memory={"since": 1.0}).serialize()
    again = deserialize(serialize(arguments))
    assert Condition.from_wire(again["condition"]) == StatusCondition(("RUNNING",))


def test_it_fires_when_the_condition_holds(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = [scripted.up("Initializing"), scripted.up("Running")]
    assert run(trigger(StatusCondition(("RUNNING",)))) == {
        "outcome": "reached",
        "message": "RUNNING",
        "result": {"status": "RUNNING"},
    }


def test_it_sleeps_before_its_first_poll(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted.up("Running")
    slept: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        slept.append((seconds, len(scripted.calls)))

    monkeypatch.setattr("airflow_pipelines.triggers.pipeline.asyncio", SimpleNamespace(sleep=sleep))
    for _ in range(20):
        run(trigger(StatusCondition(("RUNNING",)), first_delay_s=30.0, poll_interval_s=5.0))
    firsts = [seconds for seconds, _ in slept]
    assert slept[0][1] == 0
    assert all(30.0 <= seconds <= 35.0 for seconds in firsts)
    assert len(set(firsts)) > 1, "waits that begin together poll at different times"


def test_it_goes_on_from_what_the_task_saw(scripted: ScriptedService) -> None:
    scripted.up()
    metrics = {"total_input_records": 5, "total_processed_records": 5, "incarnation_uuid": "i"}
    scripted.answers["GET", "stats"] = {"global_metrics": metrics}
    memory = {"incarnation": "i", "records": 5, "since": time.time() - 60}
    assert run(trigger(IdleCondition(30.0), memory=memory))["outcome"] == "reached"


def test_it_tells_a_failure_with_the_deployment_error(scripted: ScriptedService) -> None:
    scripted.pipeline(deployment_error={"error_code": "HostLost", "message": "gone"})
    event = run(trigger(TokenCondition("t")))
    assert event["outcome"] == "failed"
    assert "HostLost: gone" in event["message"]
    with pytest.raises(AirflowFailException, match="HostLost: gone"):
        result_of(event)


def test_it_ends_in_time_and_says_what_it_saw(scripted: ScriptedService) -> None:
    scripted.up("Initializing")
    event = run(trigger(StatusCondition(("RUNNING",)), deadline=time.time() + 0.05))
    assert event["outcome"] == "timeout"
    assert event["message"] == "waiting for status RUNNING of pipeline 'p': time is up, last seen: INITIALIZING"
    with pytest.raises(AirflowSensorTimeout, match="last seen: INITIALIZING"):
        sensor_result_of(event)
    with pytest.raises(PipelineTimeoutError, match="last seen: INITIALIZING"):
        result_of(event)


def test_a_service_that_is_away_too_long_is_worth_a_retry(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = (502, {"message": "bad gateway", "error_code": ""})
    event = run(trigger(StatusCondition(("RUNNING",))))
    assert event["outcome"] == "unreachable"
    with pytest.raises(PipelineConnectionError, match="the service has been away for"):
        result_of(event)


def test_a_refusal_is_not_worth_one(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = (401, {"message": "wrong key", "error_code": "Unauthorized"})
    event = run(trigger(StatusCondition(("RUNNING",))))
    assert event["outcome"] == "error"
    with pytest.raises(AirflowFailException, match="wrong key"):
        result_of(event)


def test_killing_it_changes_nothing(scripted: ScriptedService) -> None:
    scripted.up()
    asyncio.run(trigger(TokenCondition("t")).on_kill())
    assert scripted.calls == []


def test_an_event_of_another_version_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="does not know"):
        result_of({"status": "success"})


def test_the_first_delay_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_delay_s() == 10.0
    monkeypatch.setenv("AIRFLOW__AIRFLOW_PIPELINES__DEFERRAL_FIRST_DELAY", "0.5")
    assert first_delay_s() == 0.5


def test_the_budget_for_outages_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outage_budget_s() == 180.0
    monkeypatch.setenv("AIRFLOW__AIRFLOW_PIPELINES__OUTAGE_BUDGET", "60")
    assert outage_budget_s() == 60.0


def test_a_connection_that_does_not_exist_is_not_worth_a_retry() -> None:
    event = run(trigger(StatusCondition(("RUNNING",)), pipeline_conn_id="nowhere"))
    assert event["outcome"] == "error"
    with pytest.raises(AirflowFailException, match="no connection 'nowhere'"):
        result_of(event)
