"""One pipeline for each entry of a list that is known only when the DAG runs.

Use it for tenants, regions or customers that have the same program with other names: Airflow makes a task for each of them,
which succeeds, fails and is tried again by itself. All of them share one warm Spark application unless the connection says
otherwise.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, chain, task

from airflow_pipelines.operators import DeployPipelineOperator, IngestOperator, QueryPipelineOperator, StartPipelineOperator

# [START program]
SQL = """
create table orders (
    id bigint not null primary key,
    amount decimal(10, 2)
) with ('materialized' = 'true');

create materialized view revenue as
select '{region}' as region, count(*) as orders, sum(amount) as amount
from orders;
"""
# [END program]


@task
def regions() -> list[dict[str, Any]]:
    """Return today's pipelines, which may come from a database, a file, or another task."""
    return [
        {"pipeline_name": f"many_{region}", "sql": SQL.format(region=region), "rows": [{"id": 1, "amount": amount}]}
        for region, amount in (("north", "10.00"), ("south", "20.00"))
    ]


@task
def programs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the arguments of the tasks that deploy the pipelines."""
    return [{"pipeline_name": each["pipeline_name"], "sql": each["sql"]} for each in found]


@task
def pushes(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the arguments of the tasks that push rows."""
    return [{"pipeline_name": each["pipeline_name"], "rows": each["rows"]} for each in found]


@task
def total(answers: list[dict[str, Any]]) -> dict[str, str]:
    """One table of all answers."""
    return {row["region"]: row["amount"] for answer in answers for row in answer["rows"]}


# [START dag]
with DAG(
    dag_id="many_pipelines",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    found = regions()
    deploy = DeployPipelineOperator.partial(task_id="deploy").expand_kwargs(programs(found))
    names = deploy.output.map(lambda deployed: deployed["pipeline"])
    start = StartPipelineOperator.partial(task_id="start", timeout=300).expand(pipeline_name=names)
    push = IngestOperator.partial(task_id="push", table="orders", wait=True).expand_kwargs(pushes(found))
    ask = QueryPipelineOperator.partial(task_id="ask", query="select region, amount from revenue").expand(pipeline_name=names)
    chain(start, push, ask)
    total(ask.output)
# [END dag]

if __name__ == "__main__":
    dag.test()
