"""DAGs that ask a person; ``test_dag_test.py`` carries them out, and Airflow finds them in its folder."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_pipelines.operators import GatedModifyOperator, ReviewPipelineChangeOperator
from airflow_pipelines.sensors import PipelineStatusSensor

NEW = "create table t (a int); create materialized view v as select a + 1 as a from t;"
COMMON: dict[str, Any] = {"task_id": "change", "pipeline_name": "p", "retries": 0, "poke_interval": 0.01}
SOON = timedelta(seconds=1)
LATE = timedelta(minutes=2)
"""The end of a wait that something should have ended before. Airflow takes away the alarm of pytest's own limit."""

with DAG("nobody_answers", schedule=None) as nobody_answers:
    GatedModifyOperator(sql=NEW, response_timeout=SOON, **COMMON)

with DAG("nobody_answers_is_a_rejection", schedule=None) as rejected:
    GatedModifyOperator(sql=NEW, response_timeout=SOON, on_timeout="reject", **COMMON)

with DAG("nobody_answers_is_an_approval", schedule=None) as approved:
    GatedModifyOperator(sql=NEW, response_timeout=SOON, on_timeout="approve", **COMMON)

with DAG("nobody_reviews", schedule=None) as nobody_reviews:
    ReviewPipelineChangeOperator(response_timeout=SOON, **COMMON)

with DAG("somebody_answers", schedule=None) as somebody_answers:
    GatedModifyOperator(sql=NEW, response_timeout=LATE, **COMMON)

with DAG("waits_for_a_status", schedule=None) as waits_for_a_status:
    PipelineStatusSensor(status="PAUSED", timeout=LATE.total_seconds(), **COMMON)

with DAG("takes_too_long", schedule=None) as takes_too_long:
    PipelineStatusSensor(
        status="PAUSED",
        timeout=600,
        execution_timeout=SOON,
        **COMMON | {"retries": 1, "retry_delay": timedelta(0)},
    )
