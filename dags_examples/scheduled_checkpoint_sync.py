"""Keep a copy of a pipeline's state in an object store: every hour a checkpoint, then its copy, while the pipeline runs on.

Only files that the store does not have yet are copied, so the cost follows what changed in the hour; outdated copies go. The
pipeline is one that another DAG deployed with an object store in its storage configuration (student_grades does), and runs; while
somebody has it stopped, the runs of this DAG are skipped, and when it has failed or is not there they fail.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import DAG, Asset, Param

from airflow_pipelines.operators import CheckpointPipelineOperator, SyncCheckpointOperator
from airflow_pipelines.sensors import PipelineStatusSensor

# [START scheduled_sync]
with DAG(
    dag_id="scheduled_checkpoint_sync",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1),
    # A checkpoint holds the state of now; there is nothing to catch up on.
    catchup=False,
    max_active_runs=1,
    params={"pipeline": Param("student_grades", type="string", description="The pipeline whose state is kept")},
    default_args={"pipeline_name": "{{ params.pipeline }}", "retries": 2, "retry_delay": timedelta(minutes=1)},
    tags=["example", "airflow-pipelines"],
) as dag:
    # soft_fail: a pipeline that is stopped has taken a checkpoint when it stopped, so there is nothing to do. One that has failed,
    # or does not exist, is no reason to skip anything.
    running = PipelineStatusSensor(task_id="running", status="RUNNING", deferrable=True, timeout=60, soft_fail=True)
    # DAGs that read the copies can be scheduled on the asset; the event says which checkpoint it is.
    checkpoint = CheckpointPipelineOperator(task_id="checkpoint", outlets=[Asset("student_grades_checkpoint")])
    sync = SyncCheckpointOperator(
        task_id="sync",
        # What is neither among the newest two days' copies nor younger than a week goes.
        retention_min_count=48,
        retention_min_age=7,
        deferrable=True,
        timeout=1800,
    )

    running >> checkpoint >> sync
# [END scheduled_sync]
