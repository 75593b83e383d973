"""Run a pipeline as a batch: read files to their end, check and read the result, and let nothing run on.

Use it where an input has an end: a nightly delivery, a backfill, a report. The pipeline is deployed and started before the
tasks of the group and stopped after them, whether they fail or not. Each run begins anew here (``if_exists="replace"``); with
the default the next run goes on where this one ended, so that it reads only what has come since.
"""

from __future__ import annotations

import json
from pathlib import Path

from airflow.sdk import DAG, chain

from airflow_pipelines.operators import CheckPipelineOperator, QueryPipelineOperator
from airflow_pipelines.sensors import PipelineCompletionSensor
from airflow_pipelines.task_groups import managed_pipeline

DATA = Path(__file__).parent / "batch_load_data"

# [START program]
CONNECTOR = json.dumps(
    [
        {
            "name": "csv",
            "transport": {"name": "file_input", "config": {"path": str(DATA / "sales.csv")}},
            "format": {"name": "csv", "config": {"headers": True}},
        }
    ]
).replace("'", "''")

SQL = f"""
create table sales (
    day date,
    shop varchar,
    amount decimal(10, 2)
) with ('append_only' = 'true', 'connectors' = '{CONNECTOR}');

create materialized view by_shop as
select shop, count(*) as days, sum(amount) as amount
from sales
group by shop;
"""
# [END program]

# [START dag]
BATCH = managed_pipeline("batch", pipeline_name="batch_load", sql=SQL, if_exists="replace", task_arguments={"retries": 1})

with (
    DAG(
        dag_id="batch_load",
        schedule=None,
        catchup=False,
        max_active_runs=1,
        default_args={"pipeline_name": "batch_load"},
        doc_md=__doc__,
        tags=["example", "airflow-pipelines"],
    ) as dag,
    BATCH,
):
    chain(
        PipelineCompletionSensor(task_id="all_is_read", deferrable=True, poke_interval=2, timeout=1800),
        CheckPipelineOperator(task_id="no_shop_sold_less_than_nothing", view="by_shop", condition="amount >= 0"),
        QueryPipelineOperator(task_id="report", query="select shop, days, amount from by_shop order by shop"),
    )
# [END dag]

if __name__ == "__main__":
    dag.test()
