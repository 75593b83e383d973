"""What happens to a pipeline that a test runs: a DAG that each checkpoint starts, and a wait that needs no worker."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, task

from airflow_pipelines.assets import watched_pipeline
from airflow_pipelines.sensors import PipelineViewSensor

with DAG(dag_id="after_checkpoints", schedule=[watched_pipeline("shop", events=["checkpoint"], poll_interval_s=1)]):

    @task
    def told(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """The events' payloads."""
        return [event.extra["payload"] for events in triggering_asset_events.values() for event in events]

    told()

with DAG(dag_id="wait_without_a_worker", schedule=None):
    PipelineViewSensor(
        task_id="enough",
        pipeline_name="shop",
        query="select count(*) as n from totals",
        operator=">=",
        value=2,
        poke_interval=1,
        timeout=60,
        start_from_trigger=True,
    )
