"""A change of the example's pipeline that a person decides about: what the comment in student_grades.py suggests."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, chain
from student_grades import AUTUMN, PIPELINE

from airflow_pipelines.operators.approval import ReviewPipelineChangeOperator
from airflow_pipelines.operators.change import ModifyPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator

with DAG(dag_id="review_change", schedule=None, default_args={"pipeline_name": PIPELINE}) as dag:
    chain(
        ModifyPipelineOperator(task_id="modify", sql=AUTUMN),
        StartPipelineOperator(task_id="start", timeout=120),
        # [START review]
        ReviewPipelineChangeOperator(
            task_id="review",
            subject="May the averages go back to the autumn?",
            response_timeout=timedelta(hours=1),
            deferrable=True,
            timeout=120,
        ),
        # [END review]
        StopPipelineOperator(task_id="stop", timeout=120),
    )
