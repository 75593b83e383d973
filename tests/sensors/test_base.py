from __future__ import annotations

import time
from typing import Any

import pytest
from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, TaskDeferred

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import Condition, TokenCondition
from airflow_pipelines.sensors import (
    PipelineApprovalSensor,
    PipelineCheckpointSensor,
    PipelineCompletionSensor,
    PipelineCompletionTokenSensor,
    PipelineConnectorEndSensor,
    PipelineIdleSensor,
    PipelineLagSensor,
    PipelineMetricSensor,
    PipelineStatusSensor,
    PipelineSyncSensor,
    PipelineViewSensor,
)
from airflow_pipelines.sensors.base import PipelineSensor
from airflow_pipelines.triggers.pipeline import PipelineTrigger
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "wait", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 5}


def stats(received: int, processed: int, *, complete: bool = False) -> dict[str, Any]:
    metrics = {
        "total_input_records": received,
        "total_processed_records": processed,
        "total_completed_records": processed,
        "total_completed_steps": 4,
        "pipeline_complete": complete,
        "incarnation_uuid": "i",
    }
    return {"global_metrics": metrics}


def deferral(sensor: BaseSensorOperator) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        sensor.execute({})
    return raised.value


SENSORS: list[tuple[type[PipelineSensor], dict[str, Any]]] = [
    (PipelineStatusSensor, {"status": "RUNNING"}),
    (PipelineCompletionTokenSensor, {"token": "t"}),
    (PipelineIdleSensor, {"idle_interval_s": 1.0}),
    (PipelineCompletionSensor, {}),
    (PipelineApprovalSensor, {}),
    (PipelineCheckpointSensor, {"newer_than": "2026-01-01"}),
    (PipelineSyncSensor, {"newer_than": "01900000-0000-7000-8000-000000000001"}),
    (PipelineConnectorEndSensor, {"connector": "orders.files"}),
    (PipelineLagSensor, {"max_records": 10, "connector": "orders.topic"}),
    (PipelineMetricSensor, {"metric": "rss_bytes", "operator": "<", "value": 10}),
    (PipelineViewSensor, {"query": "select count(*) from v", "operator": ">", "value": 3}),
]


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_template_fields_are_attributes(sensor: type[PipelineSensor], arguments: dict[str, Any]) -> None:
    made = sensor(**COMMON, **arguments)
    assert set(sensor.template_fields) <= set(vars(made))
    assert {"pipeline_name", "pipeline_conn_id"} <= set(sensor.template_fields)


def test_each_finds_what_it_waits_for(scripted: ScriptedService) -> None:
    scripted.up("Running")
    scripted.answers["GET", "completion_status"] = {"status": "complete", "step": 3, "durable": False}
    scripted.answers["GET", "stats"] = [stats(3, 2), stats(3, 3, complete=True)]
    assert PipelineStatusSensor(**COMMON, status=PipelineStatus.RUNNING).execute({}) == {"status": "RUNNING"}
    assert PipelineStatusSensor(**COMMON, status=["PAUSED", PipelineStatus.RUNNING]).execute({}) == {"status": "RUNNING"}
    assert PipelineCompletionTokenSensor(**COMMON, token="t").execute({}) == {
        "status": "complete",
        "step": 3,
        "durable": False,
    }
    idle = PipelineIdleSensor(**COMMON, idle_interval_s=0.05).execute({})
    assert idle == {
        "total_input_records": 3,
        "total_processed_records": 3,
        "total_completed_records": 3,
        "total_completed_steps": 4,
    }
    assert PipelineCompletionSensor(**COMMON).execute({}) == idle


def test_a_deferrable_one_looks_once_and_leaves(scripted: ScriptedService) -> None:
    scripted.up("Initializing")
    sensor = PipelineStatusSensor(**COMMON | {"timeout": 60}, status="RUNNING", deferrable=True, pipeline_conn_id="c")
    before = time.time()
    deferred = deferral(sensor)
    assert scripted.asked("GET") == [""]
    assert isinstance(deferred.trigger, PipelineTrigger)
    _, arguments = deferred.trigger.serialize()
    assert arguments["pipeline_conn_id"] == "c"
    assert arguments["first_delay_s"] == 10.0
    assert before + 60 <= arguments["deadline"] <= time.time() + 60
    # Airflow's own limit comes later, so that the trigger's message is what people read.
    assert deferred.timeout is not None
    assert deferred.timeout.total_seconds() == 120
    assert deferred.method_name == "execute_complete"


def test_a_deferrable_one_that_need_not_wait_does_not_leave(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert PipelineStatusSensor(**COMMON, status="RUNNING", deferrable=True).execute({}) == {"status": "RUNNING"}


def test_both_modes_wait_for_the_same(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "completion_status"] = {"status": "inprogress", "step": None}
    deferred = deferral(PipelineCompletionTokenSensor(**COMMON, token="t", deferrable=True))
    _, arguments = deferred.trigger.serialize()
    assert Condition.from_wire(arguments["condition"]) == TokenCondition("t")
    deferred = deferral(PipelineCompletionTokenSensor(**COMMON, token="t", checkpoint=True, deferrable=True))
    assert Condition.from_wire(deferred.trigger.serialize()[1]["condition"]) == TokenCondition("t", checkpoint=True)


def test_the_idle_interval_starts_before_the_deferral(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3, 3)
    _, arguments = deferral(PipelineIdleSensor(**COMMON, deferrable=True)).trigger.serialize()
    assert arguments["memory"]["records"] == 3


def test_rescheduling_keeps_the_idle_interval(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "stats"] = stats(3, 3)
    store: dict[str, Any] = {}

    class State:
        get = staticmethod(store.get)
        set = staticmethod(store.__setitem__)

    arguments = COMMON | {"mode": "reschedule", "idle_interval_s": 0.2}
    context: Any = {"task_state_store": State}
    assert PipelineIdleSensor(**arguments).poke(context) is False
    (earlier,) = store.values()
    earlier["memory"]["since"] -= 0.2
    # A rescheduled task is another process with a new sensor.
    assert PipelineIdleSensor(**arguments).poke(context)


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_pipeline_that_failed_fails_the_task_for_good(scripted: ScriptedService, deferrable: bool) -> None:
    scripted.pipeline(deployment_error={"error_code": "HostLost", "message": "gone\nlast words"})
    for sensor, arguments in SENSORS:
        for soft_fail in (False, True):
            with pytest.raises(AirflowFailException, match="HostLost: gone\nlast words"):
                sensor(**COMMON, **arguments, deferrable=deferrable, soft_fail=soft_fail).execute({})


def test_the_time_limit_says_what_was_awaited_and_seen(scripted: ScriptedService) -> None:
    scripted.up("Paused")
    sensor = PipelineStatusSensor(**COMMON | {"timeout": 0.03}, status="RUNNING")
    with pytest.raises(AirflowSensorTimeout, match=r"waiting for status RUNNING of pipeline 'p'.*Last seen: PAUSED"):
        sensor.execute({})


def test_passing_trouble_does_not_keep_a_task_from_leaving(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = (500, {"error_code": "InternalError", "message": "stumbled"})
    sensor = PipelineStatusSensor(**COMMON, status="RUNNING", deferrable=True)
    assert isinstance(deferral(sensor).trigger, PipelineTrigger)


def test_resuming_reads_the_event() -> None:
    sensor = PipelineStatusSensor(**COMMON, status="RUNNING", deferrable=True)
    event = {"outcome": "reached", "message": "RUNNING", "result": {"status": "RUNNING"}}
    assert sensor.execute_complete({}, event) == {"status": "RUNNING"}
    with pytest.raises(AirflowSensorTimeout, match="too late"):
        sensor.execute_complete({}, {"outcome": "timeout", "message": "too late", "result": {}})


def test_an_empty_token_is_an_error_of_the_dag(scripted: ScriptedService) -> None:
    scripted.up()
    with pytest.raises(AirflowFailException, match="token is empty"):
        PipelineCompletionTokenSensor(**COMMON, token="").execute({})


def test_killing_the_task_leaves_the_pipeline_alone(scripted: ScriptedService) -> None:
    scripted.up()
    PipelineIdleSensor(**COMMON).on_kill()
    assert scripted.calls == []
