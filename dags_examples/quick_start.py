"""The smallest whole: deploy a pipeline, start it, push rows and ask it.

Begin here. The pipeline lives on after the run, and the next run finds it as it is: it deploys nothing, starts nothing, and
counts what it pushes on top of what came before. ``gated_modification`` changes this pipeline while it runs,
``event_driven_consumer`` runs when it has taken a checkpoint. Nothing has to be set up: without a connection the pipelines are
in ``~/.airflow_pipelines``.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, chain

from airflow_pipelines.operators import DeployPipelineOperator, IngestOperator, QueryPipelineOperator, StartPipelineOperator

# [START program]
SQL = """
create table orders (
    customer varchar,
    amount decimal(10, 2)
) with ('append_only' = 'true', 'materialized' = 'true');

create materialized view revenue as
select customer, count(*) as orders, sum(amount) as amount
from orders
group by customer;
"""
# [END program]

# [START dag]
with DAG(
    dag_id="quick_start",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={"pipeline_name": "quick_start", "retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    chain(
        # A pipeline that has been changed since, as gated_modification does, stays as it is.
        DeployPipelineOperator(task_id="deploy", sql=SQL, if_exists="keep"),
        StartPipelineOperator(task_id="start", timeout=300),
        # Its rows are added once for each DAG run, also when the task is retried or cleared.
        IngestOperator(
            task_id="push",
            table="orders",
            rows=[{"customer": "anna", "amount": "12.50"}, {"customer": "bob", "amount": "5.00"}],
            wait=True,
        ),
        QueryPipelineOperator(task_id="ask", query="select customer, orders, amount from revenue order by customer"),
    )
# [END dag]

if __name__ == "__main__":
    dag.test()
