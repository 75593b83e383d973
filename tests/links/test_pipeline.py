from __future__ import annotations

import importlib
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.bases.operatorlink import BaseOperatorLink
from airflow.serialization.serialized_objects import DagSerialization

from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink, SparkApplicationLink
from airflow_pipelines.operators.approval import ReviewPipelineChangeOperator
from airflow_pipelines.operators.change import ModifyPipelineOperator
from airflow_pipelines.operators.gated import GatedModifyOperator
from airflow_pipelines.operators.lifecycle import PausePipelineOperator, StartPipelineOperator
from airflow_pipelines.provider_info import get_provider_info
from airflow_pipelines.sensors import PipelineIdleSensor
from tests.fixtures.airflow import ScriptedService

KEY: Any = None
COMMON: dict[str, Any] = {"task_id": "t", "pipeline_name": "my shop", "pipeline_conn_id": "team/a"}


@pytest.mark.parametrize(
    ("base_url", "page"),
    [
        ("https://airflow.example.com/data/", "https://airflow.example.com/data/plugin/pipelines/data/airflow_pipelines/"),
        ("", "/plugin/pipelines/airflow_pipelines/"),
    ],
)
def test_a_task_leads_to_its_pipelines_page(monkeypatch: pytest.MonkeyPatch, base_url: str, page: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    task = PausePipelineOperator(**COMMON)
    assert PipelineLink().get_link(task, ti_key=KEY) == f"{page}#/pipelines/my%20shop?connection=team%2Fa"
    assert PipelineChangeLink().get_link(task, ti_key=KEY) == f"{page}#/pipelines/my%20shop?connection=team%2Fa&view=change"


def test_a_name_that_was_lost_leads_nowhere() -> None:
    for name in (None, ""):
        task = PausePipelineOperator(**COMMON)
        task.pipeline_name = name  # type: ignore[assignment]
        assert PipelineLink().get_link(task, ti_key=KEY) == PipelineChangeLink().get_link(task, ti_key=KEY) == ""


def test_a_started_pipeline_leads_to_sparks_page_where_there_is_one(scripted: ScriptedService) -> None:
    scripted.up(name="my shop")
    task = StartPipelineOperator(**COMMON)
    for told, link in (("http://host:4040", "http://host:4040"), (None, "")):
        scripted.answers["GET", "spark_application"] = {"id": "local-1", "name": "x", "web_url": told}
        assert SparkApplicationLink().get_link(task, ti_key=KEY) == link
    scripted.answers["GET", "spark_application"] = (503, {"error_code": "PipelineUnavailable", "message": "not yet"})
    assert SparkApplicationLink().get_link(task, ti_key=KEY) == ""


@pytest.mark.parametrize(
    ("task", "arguments", "links"),
    [
        (PausePipelineOperator, {}, {"Pipeline"}),
        (PipelineIdleSensor, {}, {"Pipeline"}),
        (StartPipelineOperator, {}, {"Pipeline", "Change", "Spark UI"}),
        (ModifyPipelineOperator, {"sql": "create table t (a int);"}, {"Pipeline", "Change"}),
        (ReviewPipelineChangeOperator, {}, {"Pipeline", "Change"}),
        (GatedModifyOperator, {"sql": "create table t (a int);"}, {"Pipeline", "Change"}),
    ],
)
def test_airflow_shows_them(task: Any, arguments: dict[str, Any], links: set[str]) -> None:
    with DAG("d", schedule=None) as dag:
        task(**COMMON, **arguments)
    shown = DagSerialization.from_dict(DagSerialization.to_dict(dag)).get_task("t").operator_extra_link_dict
    assert set(shown) == links


def test_the_provider_lists_them() -> None:
    for path in get_provider_info()["extra-links"]:
        module, _, name = path.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), name), BaseOperatorLink)
