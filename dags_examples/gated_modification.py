"""Change a pipeline while it runs, once a person has approved exactly that change.

Use it for pipelines that others depend on. The task shows what the new program would change, in *Required Actions* and on the
pipeline's page: the SQL of both sides, which views are evaluated anew from how many rows, what state is dropped. The pipeline
runs on until somebody answers; then it is down for a restart with its state kept. Whoever rejects, or nobody within a day,
leaves all as it is.

By itself it adds a column to a view of ``quick_start``; run that first. Other programs and pipelines are parameters of the run.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param, chain, task

from airflow_pipelines.operators import GatedModifyOperator

# [START program]
SQL = """
create table orders (
    customer varchar,
    amount decimal(10, 2)
) with ('append_only' = 'true', 'materialized' = 'true');

create materialized view revenue as
select customer, count(*) as orders, sum(amount) as amount, max(amount) as largest
from orders
group by customer;
"""
# [END program]


@task
def tell(change: dict[str, str]) -> str:
    """Summarise the change, which the rest of such a DAG would go on with."""
    return f"{change['pipeline']}: {change['decision']} by {change['decided_by']}, down for {change['outage_s']} s"


# [START dag]
with DAG(
    dag_id="gated_modification",
    schedule=None,
    catchup=False,
    params={
        "pipeline": Param("quick_start", type="string", description="The pipeline to change, which runs"),
        "sql": Param(SQL, type="string", format="multiline", description="Its new program"),
    },
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    change = GatedModifyOperator(
        task_id="change",
        pipeline_name="{{ params.pipeline }}",
        sql="{{ params.sql }}",
        on_reject="keep",
        on_timeout="keep",
        response_timeout=timedelta(days=1),
        deferrable=True,
    )
    chain(change, tell(change.output))
# [END dag]
