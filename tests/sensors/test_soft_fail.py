"""``soft_fail`` skips for a pipeline that is stopped on purpose and for a wait that took too long, and for nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)

from airflow_pipelines.sdk.errors import PipelineConnectionError
from airflow_pipelines.sensors import PipelineMetricSensor, PipelineStatusSensor
from airflow_pipelines.sensors.base import PipelineSensor
from airflow_pipelines.triggers.pipeline import PipelineTrigger
from tests.fixtures.airflow import ScriptedService
from tests.sensors.test_base import SENSORS

SOFT: dict[str, Any] = {"task_id": "wait", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 0.03, "soft_fail": True}
ERROR = {"message": "division by zero", "error_code": "RuntimeError.WorkerPanic", "details": {}}
AWAY = 502, {"error_code": "BadGateway", "message": "away", "details": {}}

PARAMETERS = [pytest.param(sensor, arguments, id=sensor.__name__) for sensor, arguments in SENSORS]
ANSWERED_BY_THE_STATUS = {"PipelineStatusSensor", "PipelineApprovalSensor"}
"""A pipeline that is stopped may come to what these wait for."""


def resumed(sensor: type[PipelineSensor], arguments: dict[str, Any], **changed: Any) -> Any:
    """Resume a sensor with the event of its trigger, which polls the pipeline until it has one."""
    made = sensor(**SOFT, **arguments, start_from_trigger=True)
    assert made.start_trigger_args is not None
    trigger = PipelineTrigger(**(made.start_trigger_args.trigger_kwargs or {}) | {"poll_interval_s": 0.01} | changed)

    async def first() -> Any:
        return (await anext(trigger.run())).payload

    return made.resume_execution("execute_complete", {"event": asyncio.run(first())}, {})


@pytest.mark.parametrize(("sensor", "arguments"), PARAMETERS)
def test_a_pipeline_that_has_failed_or_is_missing_fails_it(
    scripted: ScriptedService, sensor: type[PipelineSensor], arguments: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match="there is no such pipeline"):
        sensor(**SOFT, **arguments).execute({})
    scripted.pipeline(deployment_error=ERROR)
    with pytest.raises(AirflowFailException, match=r"with an error: RuntimeError\.WorkerPanic: division by zero"):
        sensor(**SOFT, **arguments).execute({})


@pytest.mark.parametrize(("sensor", "arguments"), PARAMETERS)
def test_it_does_so_in_the_triggerer(scripted: ScriptedService, sensor: type[PipelineSensor], arguments: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="there is no such pipeline"):
        resumed(sensor, arguments)
    scripted.pipeline(deployment_error=ERROR)
    with pytest.raises(AirflowFailException, match="division by zero"):
        resumed(sensor, arguments)


@pytest.mark.parametrize(("sensor", "arguments"), PARAMETERS)
def test_one_that_was_stopped_on_purpose_skips_it_and_the_log_says_why(
    scripted: ScriptedService, sensor: type[PipelineSensor], arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.pipeline()
    why = "STOPPED" if sensor.__name__ in ANSWERED_BY_THE_STATUS else "STOPPED: it was stopped, or never started"
    with pytest.raises(AirflowSkipException, match=why):
        sensor(**SOFT, **arguments).execute({})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "This task is skipped" in line]
    assert why in line


def test_it_is_skipped_for_that_in_the_triggerer(scripted: ScriptedService, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.pipeline()
    with pytest.raises(AirflowSkipException, match="stopped, or never started"):
        resumed(PipelineMetricSensor, {"metric": "rss_bytes", "operator": "<", "value": 1})
    assert "This task is skipped: waiting for" in capsys.readouterr().out


def test_a_wait_that_took_too_long_skips_it_unless_nobody_saw_the_pipeline(scripted: ScriptedService) -> None:
    awaited = {"status": "RUNNING"}
    scripted.up("Paused")
    with pytest.raises(AirflowSkipException, match="Last seen: PAUSED"):
        PipelineStatusSensor(**SOFT, **awaited).execute({})
    with pytest.raises(AirflowSkipException, match="last seen: PAUSED"):
        resumed(PipelineStatusSensor, awaited, deadline=1.0)
    scripted.answers["GET", ""] = AWAY
    with pytest.raises(AirflowSensorTimeout, match="the service is away"):
        PipelineStatusSensor(**SOFT, **awaited).execute({})
    with pytest.raises(AirflowSensorTimeout, match="the service is away"):
        resumed(PipelineStatusSensor, awaited, deadline=1.0)
    with pytest.raises(PipelineConnectionError):
        resumed(PipelineStatusSensor, awaited, outage_budget_s=0)


def test_a_wait_that_no_triggerer_has_worked_on_fails_it() -> None:
    with pytest.raises(AirflowSensorTimeout):
        PipelineStatusSensor(**SOFT, status="RUNNING").resume_execution("__fail__", {"error": "Trigger timeout"}, {})


def test_never_fail_skips_for_whatever_it_is_and_says_so(scripted: ScriptedService, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = SOFT | {"soft_fail": False, "never_fail": True}
    with pytest.raises(AirflowSkipException, match="there is no such pipeline"):
        PipelineStatusSensor(**arguments, status="RUNNING").execute({})
    assert "This task is skipped: waiting for status RUNNING" in capsys.readouterr().out
