"""Load several tables so that readers see all of the load or nothing of it.

Use it when tables that belong together are loaded by several tasks: between the first row and the commit no view, query or
listener shows any of them. When a task of the group fails for good, ``on_failure="undo"`` has the pipeline go on from before
the load.

A run with the parameter ``country`` empty shows a load that fails: its check refuses the row after it was pushed.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param, chain, task

from airflow_pipelines.operators import (
    CheckPipelineOperator,
    DeployPipelineOperator,
    IngestOperator,
    QueryPipelineOperator,
    StartPipelineOperator,
)
from airflow_pipelines.task_groups import pipeline_transaction

# [START program]
SQL = """
create table customers (
    id bigint not null primary key,
    country varchar
) with ('materialized' = 'true');

create table orders (
    id bigint not null primary key,
    customer bigint,
    amount decimal(10, 2)
) with ('materialized' = 'true');

create materialized view revenue as
select country, sum(amount) as amount
from orders join customers on customers.id = orders.customer
group by country;
"""
# [END program]


@task(retries=0)
def check_delivery(country: str) -> None:
    """Refuse a delivery that is not complete. What other tasks have pushed meanwhile is not seen either."""
    if not country:
        raise ValueError("a customer of the delivery has no country")


# [START dag]
with DAG(
    dag_id="transactional_load",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    params={"country": Param("SE", type="string", description="Where the customer of the delivery is from")},
    default_args={"pipeline_name": "transactional_load", "retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    deploy = DeployPipelineOperator(task_id="deploy", sql=SQL)
    start = StartPipelineOperator(task_id="start", timeout=300)
    with pipeline_transaction("load", pipeline_name="transactional_load", on_failure="undo", timeout=300) as load:
        # Rows with a primary key: the same row pushed twice is still one row.
        customers = IngestOperator(task_id="customers", table="customers", rows=[{"id": 1, "country": "{{ params.country }}"}])
        orders = IngestOperator(task_id="orders", table="orders", rows=[{"id": 10, "customer": 1, "amount": "99.90"}])
        [customers, orders] >> check_delivery("{{ params.country }}")
    known = CheckPipelineOperator(task_id="all_countries_are_known", view="revenue", condition="country <> ''")
    ask = QueryPipelineOperator(task_id="ask", query="select country, amount from revenue order by country")
    chain(deploy, start, load, known, ask)
# [END dag]

if __name__ == "__main__":
    dag.test()
