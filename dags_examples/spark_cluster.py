"""Run a pipeline as a Spark application of its own, on a Spark cluster.

Use it for pipelines that need more than one machine, or that must not share memory with others. The application is submitted
with Airflow's Spark connection, is named after the pipeline, and outlives the task that started it.

What you set: the connection ``spark_cluster`` of type ``spark`` (host and port of a master, such as ``spark://spark-master``
and 7077), and the connection ``pipelines_on_cluster`` of type ``airflow_pipelines`` whose extras are ``deployer`` =
``dedicated``, ``spark_conn_id`` = ``spark_cluster`` and ``home``, a folder that this machine and the cluster's workers share.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, chain

from airflow_pipelines.operators import (
    DeployPipelineOperator,
    IngestOperator,
    QueryPipelineOperator,
    StartPipelineOperator,
    StopPipelineOperator,
)

# [START program]
SQL = """
create table readings (
    sensor bigint,
    celsius double
) with ('append_only' = 'true', 'materialized' = 'true');

create materialized view hottest as
select sensor, max(celsius) as celsius
from readings
group by sensor;
"""
# [END program]

# [START dag]
with DAG(
    dag_id="spark_cluster",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={
        "pipeline_name": "spark_cluster",
        "pipeline_conn_id": "pipelines_on_cluster",
        "retries": 1,
        "retry_delay": timedelta(seconds=5),
    },
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    chain(
        DeployPipelineOperator(task_id="deploy", sql=SQL),
        StartPipelineOperator(task_id="start", timeout=300, deferrable=True),
        # Its rows are added once for each DAG run, also when the task is retried or cleared.
        IngestOperator(
            task_id="push",
            table="readings",
            rows=[{"sensor": 1, "celsius": 20.5}, {"sensor": 1, "celsius": 22.0}, {"sensor": 2, "celsius": 18.0}],
            wait=True,
        ),
        QueryPipelineOperator(task_id="ask", query="select sensor, celsius from hottest order by sensor"),
        StopPipelineOperator(task_id="stop", timeout=300),
    )
# [END dag]

if __name__ == "__main__":
    dag.test()
