"""A pipeline with a Spark application of its own, submitted with a Spark connection of Airflow."""

from __future__ import annotations

from airflow.sdk import DAG, chain

from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.data import IngestOperator, QueryPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors.pipeline import PipelineCompletionTokenSensor

PROGRAM = """
create table t (a int) with ('materialized' = 'true');
create materialized view v as select a, count(*) as n from t group by a;
"""

with DAG(
    dag_id="dedicated_host", schedule=None, default_args={"pipeline_name": "dedicated", "pipeline_conn_id": "dedicated"}
) as dag:
    chain(
        DeployPipelineOperator(task_id="deploy", sql=PROGRAM),
        StartPipelineOperator(task_id="start", deferrable=True, timeout=240),
        # Every task is a process of its own, so from here on the one that submitted the host is gone.
        IngestOperator(task_id="push", table="t", rows=[{"a": 1}, {"a": 1}, {"a": 2}]),
        PipelineCompletionTokenSensor(
            task_id="processed", token="{{ ti.xcom_pull('push')['token'] }}", poke_interval=1, timeout=120
        ),
        QueryPipelineOperator(task_id="ask", query="select a, n from v order by a"),
        StopPipelineOperator(task_id="stop", timeout=120),
    )
