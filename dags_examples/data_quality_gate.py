"""Let what comes after a load run only when the views say that the data are good.

Use it between a pipeline and whoever trusts its views. The checks are questions to views that are maintained anyway, so they
cost a look and not a scan. A check that fails shows the offending rows in its error and as the XCom ``offending_rows``;
publishing is not run, and a support bundle of the moment is kept for whoever looks into it.

A run with a negative ``amount`` shows a gate that closes. ``bundles`` is the folder, or the URL, in which bundles are kept.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Param, chain

from airflow_pipelines.notifications.support_bundle import SupportBundleNotifier
from airflow_pipelines.operators import (
    CheckPipelineOperator,
    DeployPipelineOperator,
    IngestOperator,
    QueryPipelineOperator,
    StartPipelineOperator,
)

# [START program]
SQL = """
create table payments (
    id bigint not null primary key,
    account varchar,
    amount decimal(10, 2)
) with ('materialized' = 'true');

create materialized view balances as
select account, sum(amount) as balance
from payments
group by account;
"""
# [END program]

# [START dag]
BUNDLES = str(Path(tempfile.gettempdir(), "data_quality_gate"))
BUNDLE = SupportBundleNotifier(path="{{ params.bundles }}/{{ run_id }}/{{ ti.task_id }}-{{ ti.try_number }}.zip")

with DAG(
    dag_id="data_quality_gate",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    params={
        "amount": Param("25.00", type="string", description="The amount of Bob's payment"),
        "bundles": Param(BUNDLES, type="string", description="Where support bundles are kept"),
    },
    default_args={"pipeline_name": "data_quality_gate", "retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    deploy = DeployPipelineOperator(task_id="deploy", sql=SQL)
    start = StartPipelineOperator(task_id="start", timeout=300)
    push = IngestOperator(
        task_id="push",
        table="payments",
        rows=[{"id": 1, "account": "anna", "amount": "10.00"}, {"id": 2, "account": "bob", "amount": "{{ params.amount }}"}],
        wait=True,
    )
    # Either every row of a view satisfies a condition, or a query of offending rows finds none.
    closing = {"retries": 0, "on_failure_callback": BUNDLE}
    no_debts = CheckPipelineOperator(task_id="no_debts", view="balances", condition="balance >= 0", **closing)
    all_named = CheckPipelineOperator(task_id="all_named", query="select id from payments where account is null", **closing)
    publish = QueryPipelineOperator(task_id="publish", query="select account, balance from balances order by account")
    chain(deploy, start, push, [no_debts, all_named], publish)
# [END dag]

if __name__ == "__main__":
    dag.test()
