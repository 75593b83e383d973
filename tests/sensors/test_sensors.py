"""What the sensors find, and what the flat imports give."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from airflow.sdk.exceptions import AirflowFailException
from uuid6 import uuid7

from airflow_pipelines import sensors
from airflow_pipelines.sensors import (
    PipelineApprovalSensor,
    PipelineCheckpointSensor,
    PipelineConnectorEndSensor,
    PipelineLagSensor,
    PipelineMetricSensor,
    PipelineSyncSensor,
    PipelineViewSensor,
)
from airflow_pipelines.sensors.base import PipelineSensor
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "wait", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 5}
NEW = str(UUID(int=uuid7().int))


def stats(*, ended: bool, lag: int | None) -> dict[str, Any]:
    connector = {
        "total_records": 7,
        "buffered_records": 0,
        "buffered_bytes": 0,
        "end_of_input": ended,
        "lag": None if lag is None else {"records": lag, "bytes": None, "seconds": None},
    }
    metrics = {"total_input_records": 7, "total_completed_records": 7, "incarnation_uuid": "i"}
    return {"global_metrics": metrics, "inputs": [{"endpoint_name": "orders.files", "fatal_error": None, "metrics": connector}]}


def test_each_new_one_finds_what_it_waits_for(scripted: ScriptedService) -> None:
    scripted.up(storage_status_details={"checkpoints": [{"uuid": NEW, "steps": 3, "processed_records": 7, "size": 1}]})
    scripted.answers["GET", "checkpoints/remote"] = [[], [{"uuid": NEW}]]
    scripted.answers["GET", "metrics"] = [[{"key": "rss_bytes", "values": [{"value": 5, "labels": {}}]}]]
    scripted.answers["GET", "query"] = [{"__row_found": 1, "n": 2}, {"__row_found": 1, "n": 4}]
    found = PipelineCheckpointSensor(**COMMON, newer_than=datetime(2026, 1, 1, tzinfo=UTC)).execute({})
    assert found["checkpoint"] == NEW
    assert found["processed_records"] == 7
    assert PipelineSyncSensor(**COMMON, newer_than="2026-01-01").execute({})["checkpoint"] == NEW
    assert PipelineMetricSensor(**COMMON, metric="rss_bytes", operator="<", value="10").execute({})["series"][0]["value"] == 5
    view = PipelineViewSensor(**COMMON, query="select count(*) as n from v", operator=">", value=3)
    assert view.execute({}) == {"row": {"n": 4}}
    scripted.answers["GET", "stats"] = [stats(ended=False, lag=20), stats(ended=False, lag=3), stats(ended=True, lag=None)]
    assert PipelineLagSensor(**COMMON, max_records="5").execute({})["lag"]["orders.files"]["records"] == 3
    end = PipelineConnectorEndSensor(**COMMON, connector="orders.files").execute({})
    assert end == {"connector": "orders.files", "total_records": 7}
    scripted.up("AwaitingApproval", deployment_runtime_status_details={"approval_diff": {"a": 1}, "programs": {"new": 2}})
    assert PipelineApprovalSensor(**COMMON).execute({})["programs"] == {"new": 2}


@pytest.mark.parametrize(
    ("sensor", "arguments", "name"),
    [
        (PipelineCheckpointSensor, {"newer_than": None}, "newer_than"),
        (PipelineSyncSensor, {"newer_than": "None"}, "newer_than"),
        (PipelineCheckpointSensor, {"newer_than": "last week"}, "newer_than"),
        (PipelineConnectorEndSensor, {"connector": ""}, "connector"),
        (PipelineLagSensor, {"max_records": "None"}, "max_records"),
        (PipelineLagSensor, {"max_seconds": "-1"}, "max_seconds"),
        (PipelineLagSensor, {"max_records": 1, "connector": "None"}, "connector"),
        (PipelineMetricSensor, {"metric": "", "operator": "<", "value": 1}, "metric"),
        (PipelineMetricSensor, {"metric": "m", "operator": "<", "value": "None"}, "value"),
        (PipelineMetricSensor, {"metric": "m", "operator": "<", "value": 1, "labels": {"endpoint": ""}}, "labels"),
        (PipelineViewSensor, {"query": "None"}, "query"),
        (PipelineViewSensor, {"query": "select 1", "operator": "<", "value": "None"}, "value"),
    ],
)
def test_what_is_lost_on_the_way_fails_the_task_for_good(
    scripted: ScriptedService, sensor: Any, arguments: dict[str, Any], name: str
) -> None:
    scripted.up()
    with pytest.raises(AirflowFailException, match=name):
        sensor(**COMMON, **arguments).execute({})
    assert scripted.calls == []


def test_what_can_never_be_right_is_an_error_of_the_dags_file() -> None:
    with pytest.raises(ValueError, match="known: <, <="):
        PipelineMetricSensor(**COMMON, metric="m", operator="=>", value=1)
    with pytest.raises(ValueError, match="give both or neither"):
        PipelineViewSensor(**COMMON, query="select 1", operator=">")
    with pytest.raises(ValueError, match="a limit is needed"):
        PipelineLagSensor(**COMMON, connector="orders.files")


def test_all_sensors_can_be_imported_from_the_folder() -> None:
    for name in sensors.__all__:
        assert issubclass(getattr(sensors, name), PipelineSensor)
    with pytest.raises(AttributeError, match="no attribute 'PipelineMoonSensor'"):
        _ = sensors.PipelineMoonSensor


@pytest.mark.processes
def test_a_module_is_loaded_when_one_of_its_names_is_used() -> None:
    code = (
        "import sys, airflow_pipelines.sensors as s\n"
        "before = {name for name in sys.modules if name.startswith('airflow')}\n"
        "from airflow_pipelines.sensors import PipelineIdleSensor\n"
        "print(sorted(before), 'airflow_pipelines.sensors.checkpoint' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip().endswith("['airflow_pipelines', 'airflow_pipelines.sensors'] False")
