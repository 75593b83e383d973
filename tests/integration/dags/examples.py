"""Stream programs that run until their inputs end, each deployed, started, awaited and stopped by tasks."""

from __future__ import annotations

from airflow.sdk import DAG, TaskGroup, chain

from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors.pipeline import PipelineCompletionSensor

with DAG("examples", schedule=None, catchup=False):
    for name in ("fraud", "late_data"):
        with TaskGroup(name):
            chain(
                DeployPipelineOperator(task_id="deploy", pipeline_name=name, stream_program=f"examples/{name}.py"),
                StartPipelineOperator(task_id="start", pipeline_name=name, timeout=120),
                PipelineCompletionSensor(task_id="ended", pipeline_name=name, poke_interval=0.5, timeout=60),
                StopPipelineOperator(task_id="stop", pipeline_name=name),
            )
