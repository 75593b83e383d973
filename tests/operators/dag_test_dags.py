"""DAGs that ask a person; ``test_dag_test.py`` carries them out, and Airflow finds them in its folder."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Context

from airflow_pipelines.operators import GatedModifyOperator, ReviewPipelineChangeOperator
from airflow_pipelines.sensors import PipelineStatusSensor


class AskedWithinARequest(PipelineStatusSensor):
    """A task that is asked to end while it makes a request to Airflow."""

    def execute(self, context: Context) -> None:
        """Be asked, and wait for the end."""
        from airflow.sdk.execution_time.supervisor import set_supervisor_comms

        with set_supervisor_comms(None):  # as Airflow does it for each request
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LATE.total_seconds())


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

with DAG("is_asked_within_a_request", schedule=None) as is_asked_within_a_request:
    AskedWithinARequest(status="PAUSED", **COMMON)

with DAG("takes_too_long", schedule=None) as takes_too_long:
    PipelineStatusSensor(
        status="PAUSED",
        timeout=600,
        execution_timeout=SOON,
        **COMMON | {"retries": 1, "retry_delay": timedelta(0)},
    )
