"""A stream program in Python and SQL in one pipeline, changed while its state is kept.

The stream program in ``fraud_stream_program/fraud.py`` watches each account's payments and makes alerts of them; SQL reads them.
The DAG deploys both, waits until a file of payments is processed, lowers the amount that counts as large, has exactly that change
approved, and pushes one more payment: it is an alert only because the pipeline still knows what it saw before the change.

The folder ``fraud_stream_program`` is named in ``.airflowignore``: its files belong to the pipeline's processes, not to Airflow's.
What you can set: the folder of store, state and logs with the environment variable ``AIRFLOW_PIPELINES_HOME`` or the connection
``airflow_pipelines_default`` (no connection is needed).
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, chain

from airflow_pipelines.operators.approval import ApprovePipelineOperator
from airflow_pipelines.operators.change import DeployPipelineOperator, ModifyPipelineOperator
from airflow_pipelines.operators.data import IngestOperator, QueryPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator, StopPipelineOperator
from airflow_pipelines.sensors import PipelineCompletionSensor, PipelineCompletionTokenSensor

PIPELINE = "fraud_stream"
PROGRAM = Path(__file__).parent / "fraud_stream_program"

# [START program]
CONNECTOR = json.dumps(
    [
        {
            "name": "csv",
            "transport": {"name": "file_input", "config": {"path": str(PROGRAM / "payments.csv")}},
            "format": {"name": "csv", "config": {"headers": True}},
        }
    ]
).replace("'", "''")

SQL = f"""
create table payments (
    id bigint,
    account varchar,
    amount double,
    second bigint
) with ('append_only' = 'true', 'materialized' = 'true', 'connectors' = '{CONNECTOR}');

-- alerts is what the stream program makes.
create materialized view alerts_by_account as
select account, count(*) as alerts, max(amount) as largest
from alerts
group by account;
"""
# [END program]

ALERTS = "select account, alerts, largest from alerts_by_account order by account"
# 600 seconds have not passed since Dora's tiny payment in the file, which the pipeline saw before its program changed.
LATER = {"id": 6, "account": "dora", "amount": 300.0, "second": 500}

# [START dag]
with DAG(
    dag_id=PIPELINE,
    description="Deploy a stream program with SQL, process a file, change the program with approval and its state kept",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={"pipeline_name": PIPELINE, "retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    # [START deploy]
    # The path is relative to this file's folder; fraud.py comes with rules.py, which it imports. "replace" makes each run of this
    # DAG begin anew; for one that holds one program only, the default "modify" is what you want.
    deploy = DeployPipelineOperator(
        task_id="deploy",
        sql=SQL,
        stream_program="fraud_stream_program/fraud.py",
        stream_arguments=["--large", "500"],
        if_exists="replace",
    )
    # [END deploy]
    start = StartPipelineOperator(task_id="start", timeout=300)
    file_processed = PipelineCompletionSensor(task_id="file_processed", deferrable=True, poke_interval=1, timeout=120)
    first_alerts = QueryPipelineOperator(task_id="first_alerts", query=ALERTS)

    # [START change]
    stop_to_modify = StopPipelineOperator(task_id="stop_to_modify")
    modify = ModifyPipelineOperator(task_id="modify", stream_arguments=["--large", "250"])
    # What the start shows, in its log and to the task that approves: which operators change and which state they keep.
    start_changed = StartPipelineOperator(task_id="start_changed", bootstrap_policy="await_approval", timeout=300)
    approve = ApprovePipelineOperator(
        task_id="approve", expected_programs="{{ ti.xcom_pull('start_changed')['programs'] | tojson }}", timeout=300
    )
    # [END change]

    # Its rows are added once for each DAG run, also when the task is retried or cleared.
    push = IngestOperator(task_id="push", table="payments", rows=[LATER])
    pushed = PipelineCompletionTokenSensor(
        task_id="pushed", token="{{ ti.xcom_pull('push')['token'] }}", poke_interval=1, timeout=120
    )
    second_alerts = QueryPipelineOperator(task_id="second_alerts", query=ALERTS)
    stop = StopPipelineOperator(task_id="stop")

    chain(deploy, start, file_processed, first_alerts)
    chain(first_alerts, stop_to_modify, modify, start_changed, approve, push, pushed, second_alerts, stop)
# [END dag]

if __name__ == "__main__":
    dag.test()
