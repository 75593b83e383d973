from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_pipelines.hooks.conditions import Condition, LagCondition
from airflow_pipelines.sensors import PipelineCompletionTokenSensor, PipelineLagSensor, PipelineStatusSensor
from airflow_pipelines.triggers.pipeline import PipelineTrigger
from tests.fixtures.airflow import ScriptedService
from tests.sensors.test_base import SENSORS

COMMON: dict[str, Any] = {"task_id": "wait", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 300}


@pytest.mark.parametrize(("sensor", "arguments"), SENSORS)
def test_every_sensor_can_start_in_the_triggerer(sensor: Any, arguments: dict[str, Any]) -> None:
    with DAG("d", schedule=None) as dag:
        made = sensor(**COMMON, **arguments, start_from_trigger=True)
    task = DagSerialization.from_dict(DagSerialization.to_dict(dag)).get_task("wait")
    assert task.start_from_trigger is True
    start = made.start_trigger_args
    assert start is not None
    assert start.trigger_cls == f"{PipelineTrigger.__module__}.{PipelineTrigger.__qualname__}"
    assert start.next_method == "execute_complete"
    # Airflow's own limit is a minute later than the trigger's, whose message is what people read.
    assert start.timeout == timedelta(seconds=360)
    trigger = PipelineTrigger(**start.trigger_kwargs or {})
    assert Condition.from_wire(trigger.condition) == made.condition()
    assert trigger.first_delay_s == 0


def test_one_that_is_not_asked_to_starts_on_a_worker() -> None:
    made = PipelineStatusSensor(**COMMON, status="RUNNING", deferrable=True)
    assert made.start_from_trigger is False
    assert made.start_trigger_args is None


def test_rendered_kinds_of_arguments_are_what_the_trigger_gets() -> None:
    made = PipelineLagSensor(**COMMON, max_records="10", start_from_trigger=True)
    assert made.start_trigger_args is not None
    kwargs = made.start_trigger_args.trigger_kwargs or {}
    assert Condition.from_wire(kwargs["condition"]) == LagCondition(max_records=10)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"status": "RUNNING", "pipeline_name": "{{ params.name }}"}, "takes no templates"),
        ({"status": "RUNING"}, "known: "),
        ({"status": "RUNNING", "pipeline_name": ""}, "pipeline_name is empty"),
        ({"status": "RUNNING", "execution_timeout": timedelta(minutes=5)}, "limited by timeout"),
    ],
)
def test_what_cannot_start_without_a_worker_is_an_error_of_the_dags_file(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=f"task 'wait'.*{why}"):
        PipelineStatusSensor(**COMMON | arguments, start_from_trigger=True)


def test_a_token_of_another_task_needs_a_worker() -> None:
    before = PipelineStatusSensor(**COMMON | {"task_id": "before"}, status="RUNNING")
    for token in ("{{ ti.xcom_pull('before') }}", before.output):
        with pytest.raises(ValueError, match="task 'wait'"):
            PipelineCompletionTokenSensor(**COMMON, token=token, start_from_trigger=True)


def test_the_time_limit_is_airflows_less_the_minute(scripted: ScriptedService) -> None:
    scripted.up("Paused")
    made = PipelineStatusSensor(**COMMON, status="RUNNING", start_from_trigger=True)
    assert made.start_trigger_args is not None
    trigger: Any = PipelineTrigger(**made.start_trigger_args.trigger_kwargs or {})
    # As the triggerer sets it; the 300 s are over, the minute is not.
    trigger.timeout_after = datetime.now(UTC) + timedelta(seconds=60)

    async def first() -> Any:
        return await anext(trigger.run())

    event = asyncio.run(asyncio.wait_for(first(), 10)).payload
    assert event["outcome"] == "timeout"
    assert "last seen: PAUSED" in event["message"]
