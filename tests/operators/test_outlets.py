from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from airflow.sdk import Asset

from airflow_pipelines.operators.lifecycle import PausePipelineOperator
from airflow_pipelines.sensors import PipelineIdleSensor, PipelineStatusSensor, PipelineViewSensor
from tests.fixtures.airflow import ScriptedService

ASSET = Asset("airflow-pipelines://airflow_pipelines_default/p")
COMMON: dict[str, Any] = {"task_id": "t", "pipeline_name": "p", "outlets": [ASSET]}


def context() -> Any:
    return {"outlet_events": {ASSET: SimpleNamespace(extra={"mine": 1})}}


def test_a_sensors_outlets_say_what_it_found(scripted: ScriptedService) -> None:
    scripted.up()
    metrics = {
        "total_input_records": 3,
        "total_processed_records": 3,
        "total_completed_records": 3,
        "total_completed_steps": 4,
        "incarnation_uuid": "i",
    }
    scripted.answers["GET", "stats"] = {"global_metrics": metrics}
    found = context()
    PipelineIdleSensor(**COMMON, idle_interval_s=0.02, poke_interval=0.01).execute(found)
    extra = found["outlet_events"][ASSET].extra
    assert extra["pipeline"] == "p"
    assert extra["total_processed_records"] == 3
    assert extra["mine"] == 1


def test_what_was_deferred_says_it_too(scripted: ScriptedService) -> None:
    scripted.up("Paused")
    event = {"outcome": "reached", "message": "PAUSED", "result": {"status": "PAUSED"}}
    for task in (PausePipelineOperator(**COMMON), PipelineStatusSensor(**COMMON, status="PAUSED")):
        found = context()
        task.execute_complete(found, event)
        assert found["outlet_events"][ASSET].extra == {"mine": 1, "pipeline": "p", "status": "PAUSED"}


def test_rows_are_left_to_the_xcom(scripted: ScriptedService) -> None:
    scripted.up()
    scripted.answers["GET", "query"] = {"__row_found": 1, "a": 1}
    found = context()
    PipelineViewSensor(**COMMON, query="select 1 as a").execute(found)
    assert found["outlet_events"][ASSET].extra == {"mine": 1, "pipeline": "p"}
