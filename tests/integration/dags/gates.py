"""Changes of a pipeline that runs, each made once a person has agreed: with one task, and with several plain ones."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param, chain

from airflow_pipelines.operators.approval import ApprovePipelineOperator
from airflow_pipelines.operators.change import ModifyPipelineOperator
from airflow_pipelines.operators.data import QueryPipelineOperator
from airflow_pipelines.operators.gated import GatedModifyOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.operators.plan import PlanPipelineOperator
from airflow_pipelines.operators.review_plan import ReviewPlanOperator

PARAMS = {"pipeline": Param(type="string"), "sql": Param(type="string"), "seconds": Param(600, type="integer")}
ARGUMENTS = {"pipeline_name": "{{ params.pipeline }}", "retry_delay": timedelta(seconds=1)}
QUERY = "select name, total from totals order by name"

for name, limit in (("gate", timedelta(hours=1)), ("hasty_gate", timedelta(seconds=1))):
    with DAG(name, schedule=None, params=PARAMS, default_args=ARGUMENTS, max_active_runs=8):
        chain(
            GatedModifyOperator(
                task_id="gate",
                sql="{{ params.sql }}",
                response_timeout=limit,
                on_reject="keep",
                on_timeout="keep",
                timeout=120,
                deferrable=True,
            ),
            QueryPipelineOperator(task_id="ask", query=QUERY),
        )

with DAG("plain_gate", schedule=None, params=PARAMS, default_args=ARGUMENTS):
    chain(
        PlanPipelineOperator(task_id="plan", sql="{{ params.sql }}", skip_unchanged=True),
        ReviewPlanOperator(task_id="decide", plan="{{ ti.xcom_pull('plan') | tojson }}"),
        PlanPipelineOperator(
            task_id="still",
            sql="{{ params.sql }}",
            expected_programs="{{ ti.xcom_pull('decide')['programs'] | tojson }}",
        ),
        StopPipelineOperator(task_id="stop", timeout=120),
        ModifyPipelineOperator(task_id="modify", sql="{{ params.sql }}"),
        StartPipelineOperator(task_id="start", timeout=120),
        ApprovePipelineOperator(
            task_id="approve", expected_programs="{{ ti.xcom_pull('decide')['programs'] | tojson }}", timeout=120
        ),
        QueryPipelineOperator(task_id="ask", query=QUERY),
    )
