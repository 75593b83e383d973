"""Run a DAG when something happens to a pipeline, rather than by the clock.

Use it for what follows a pipeline at its own pace: this one runs after each checkpoint of ``quick_start``, so that what it
reads can no longer be lost. Other events are ``sync``, ``idle``, ``failure`` and ``program_change``. The watcher runs in the
triggerer; one that is restarted goes on where it was, and tells each event once.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, chain, task

from airflow_pipelines.assets import watched_pipeline
from airflow_pipelines.operators import QueryPipelineOperator

# [START asset]
CHECKPOINTS = watched_pipeline("quick_start", events=["checkpoint"], poll_interval_s=5)
# [END asset]


@task
def what_happened(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
    """Return the checkpoints since the last run, with their figures."""
    return [event.extra["payload"] for event in triggering_asset_events[CHECKPOINTS]]


# [START dag]
with DAG(
    dag_id="event_driven_consumer",
    schedule=[CHECKPOINTS],
    catchup=False,
    max_active_runs=1,
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    chain(
        what_happened(),
        QueryPipelineOperator(
            task_id="ask", pipeline_name="quick_start", query="select customer, orders from revenue order by customer"
        ),
    )
# [END dag]
