"""Keep a second pipeline ready that follows the first one's checkpoints, and have it take over.

Use it where a pipeline must be back within seconds although its machine is lost, by letting the two run on different
connections (``pipeline_conn_id``), which share only the object store. ``standby_prepare`` deploys and starts both and copies a
checkpoint, which ``scheduled_checkpoint_sync`` does from then on by schedule. ``standby_failover`` stops what is left of the
first one, so that never two of them write, and activates the second: it pulls the newest copy once more and runs from there.

What the first one has processed since its newest copy it would read again from its sources; rows that were pushed since then
are pushed again by who pushed them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, chain

from airflow_pipelines.operators import (
    ActivatePipelineOperator,
    CheckpointPipelineOperator,
    DeployPipelineOperator,
    IngestOperator,
    QueryPipelineOperator,
    StartPipelineOperator,
    StopPipelineOperator,
    SyncCheckpointOperator,
)

# [START program]
SQL = """
create table visits (
    page varchar
) with ('append_only' = 'true', 'materialized' = 'true');

create materialized view pages as
select page, count(*) as visits
from visits
group by page;
"""


def copies(**sync: object) -> dict[str, object]:
    """Return the configuration of a storage with an object store."""
    return {"storage": {"backend": {"name": "file", "config": {"sync": sync}}}}


# A bucket has one owner, so the second pipeline reads the first one's and has one of its own.
FIRST = copies(bucket="{{ params.bucket }}/first")
SECOND = copies(bucket="{{ params.bucket }}/second", read_bucket="{{ params.bucket }}/first", pull_interval=5)
# [END program]

PARAMS = {"bucket": Param("/tmp/airflow-pipelines-standby", type="string", description="A URL that fsspec knows, or a folder")}
COMMON: dict[str, Any] = {
    "schedule": None,
    "catchup": False,
    "max_active_runs": 1,
    "default_args": {"retries": 1, "retry_delay": timedelta(seconds=5)},
    "doc_md": __doc__,
    "tags": ["example", "airflow-pipelines"],
}

# [START prepare]
with DAG("standby_prepare", params=PARAMS, **COMMON) as prepare:
    chain(
        DeployPipelineOperator(task_id="deploy_first", pipeline_name="standby_first", sql=SQL, runtime_config=FIRST),
        StartPipelineOperator(task_id="start_first", pipeline_name="standby_first", timeout=300),
        # Its rows are added once for each DAG run, also when the task is retried or cleared.
        IngestOperator(
            task_id="push",
            pipeline_name="standby_first",
            table="visits",
            rows=[{"page": "home"}, {"page": "home"}, {"page": "help"}],
            wait=True,
        ),
        CheckpointPipelineOperator(task_id="checkpoint", pipeline_name="standby_first"),
        SyncCheckpointOperator(task_id="copy", pipeline_name="standby_first"),
        DeployPipelineOperator(task_id="deploy_second", pipeline_name="standby_second", sql=SQL, runtime_config=SECOND),
        StartPipelineOperator(task_id="start_second", pipeline_name="standby_second", initial="standby", timeout=300),
    )
# [END prepare]

# [START failover]
with DAG("standby_failover", **COMMON) as failover:
    chain(
        StopPipelineOperator(task_id="stop_first", pipeline_name="standby_first", mode="force"),
        # Also when the first one cannot be reached any more: whoever runs this DAG has decided that it is gone.
        ActivatePipelineOperator(task_id="take_over", pipeline_name="standby_second", trigger_rule="all_done", timeout=300),
        QueryPipelineOperator(task_id="ask", pipeline_name="standby_second", query="select page, visits from pages order by page"),
    )
# [END failover]
