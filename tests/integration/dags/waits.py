"""Waits for a row, in the triggerer."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from airflow_pipelines.sensors import PipelineViewSensor

PARAMS = {"row": Param(type="string"), "connection": Param("airflow_pipelines_default", type="string")}

with DAG("waits", schedule=None, params=PARAMS, max_active_runs=8):
    PipelineViewSensor(
        task_id="wait",
        pipeline_name="waits",
        pipeline_conn_id="{{ params.connection }}",
        query="select name from names where name = '{{ params.row }}'",
        deferrable=True,
        poke_interval=1,
        timeout=300,
    )
