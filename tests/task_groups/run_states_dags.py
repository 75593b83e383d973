"""DAGs whose runs end in all ways; ``test_run_states.py`` carries them out, and Airflow finds them in its folder."""

from __future__ import annotations

from airflow.sdk import DAG, chain

from airflow_pipelines.operators import CheckPipelineOperator, IngestOperator, QueryPipelineOperator
from airflow_pipelines.task_groups import managed_pipeline, pipeline_transaction

SQL = "create table t (a int);"
COMMON = {"pipeline_name": "p", "retries": 0}


def _block() -> None:
    chain(
        QueryPipelineOperator(task_id="ask", query="select 1", **COMMON),
        CheckPipelineOperator(task_id="check", query="select 2", **COMMON),
        QueryPipelineOperator(task_id="report", query="select 3", **COMMON),
    )


with (
    DAG("batch_stopped", schedule=None) as stopped,
    managed_pipeline(pipeline_name="p", sql=SQL, task_arguments={"retries": 0}),
):
    _block()

with (
    DAG("batch_deleted", schedule=None) as deleted,
    managed_pipeline(pipeline_name="p", sql=SQL, afterwards="delete", task_arguments={"retries": 0}),
):
    _block()

with DAG("batch_after_another_task", schedule=None) as after_another:
    before = QueryPipelineOperator(task_id="before", query="select 0", **COMMON)
    with managed_pipeline(pipeline_name="p", sql=SQL, task_arguments={"retries": 0}) as group:
        _block()
    before >> group

with (
    DAG("batch_whose_failure_is_dealt_with", schedule=None) as dealt_with,
    managed_pipeline(pipeline_name="p", sql=SQL, task_arguments={"retries": 0}),
):
    chain(
        CheckPipelineOperator(task_id="check", query="select 2", **COMMON),
        QueryPipelineOperator(task_id="report", query="select 3", trigger_rule="all_done", **COMMON),
    )

with (
    DAG("transaction_undone", schedule=None) as undone,
    pipeline_transaction("load", pipeline_name="p", on_failure="undo", retries=0),
):
    chain(
        IngestOperator(task_id="one", table="t", rows=[{"a": 1}], **COMMON),
        IngestOperator(task_id="two", table="t", rows=[{"a": 2}], **COMMON),
    )
