"""A pipeline between Kafka and a lake: it reads a topic, maintains a view, and keeps a Delta table equal to the view.

The pipeline lives on between the runs of this DAG, and beyond them: the first run deploys and starts it, later ones find it running
and change nothing. Each run waits until the pipeline has read what the topic has, looks whether the table has what the view had,
and makes few large files of the table's many small ones while the pipeline goes on writing. Give it the schedule that the
maintenance needs.

What you set: the connection ``orders_kafka`` (host and port of a broker; records of the topic ``orders`` are JSON objects such as
``{"id": 1, "customer": "anna", "amount": 12.5}``) and the connection ``orders_lake``, whose extra ``folder`` is a path or a URL
below which the table ``totals`` is made. Where pipelines run: ``pip install 'airflow-pipelines[kafka,delta]'``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Connection, chain, task

from airflow_pipelines.operators.change import DeployPipelineOperator
from airflow_pipelines.operators.data import CompletionTokenOperator, QueryPipelineOperator
from airflow_pipelines.operators.lifecycle import StartPipelineOperator
from airflow_pipelines.sensors import PipelineCompletionTokenSensor, PipelineIdleSensor

PIPELINE = "orders_to_lake"

# [START program]
SQL = """
create table orders (
    id bigint,
    customer varchar,
    amount decimal(10, 2)
) with ('connectors' = '[{
    "name": "topic",
    "transport": {"name": "kafka_input", "config": {
        "topic": "orders",
        "bootstrap.servers": "${conn:orders_kafka.host}:${conn:orders_kafka.port}",
        "start_from": "earliest"}},
    "format": {"name": "json", "config": {"update_format": "raw"}}
}]');

create materialized view totals with ('connectors' = '[{
    "name": "lake",
    "index": "by_customer",
    "enable_output_buffer": true,
    "max_output_buffer_time_millis": 1000,
    "transport": {"name": "delta_table_output", "config": {
        "uri": "${conn:orders_lake.extra.folder}/totals",
        "write": "merged",
        "mode": "truncate"}}
}]') as
select customer, count(*) as orders, sum(amount) as amount
from orders
group by customer;

create index by_customer on totals(customer);
"""
# [END program]


# [START maintenance]
@task(retries=3)
def compare_and_compact(view: dict[str, Any]) -> dict[str, Any]:
    """Look whether the table has what the view had, or more, and make few large files of many small ones.

    While a step of the pipeline changes the same files, Delta refuses to have them made anew: then the task tries again.
    """
    from deltalake import DeltaTable

    table = DeltaTable(f"{Connection.get('orders_lake').extra_dejson['folder']}/totals")
    orders = {row["customer"]: row["orders"] for row in table.to_pyarrow_table().to_pylist()}
    missing = {row["customer"]: row["orders"] for row in view["rows"] if orders.get(row["customer"], 0) < row["orders"]}
    if missing:
        raise ValueError(f"the view has orders that the table has not: {missing}")
    files = table.optimize.compact()
    return {"customers": len(orders), "files_before": files["numFilesRemoved"], "files_after": files["numFilesAdded"]}


# [END maintenance]

# [START dag]
with DAG(
    dag_id=PIPELINE,
    description="Keep a Delta table equal to a view of a topic of Kafka, and look after the table's files",
    schedule=None,
    catchup=False,
    max_active_runs=1,
    default_args={"pipeline_name": PIPELINE, "retries": 1, "retry_delay": timedelta(seconds=5)},
    doc_md=__doc__,
    tags=["example", "airflow-pipelines"],
) as dag:
    # A run that finds the pipeline with this program leaves it as it is. With another one it is to be stopped first, as in
    # fraud_stream.py. "exactly_once" keeps a journal, so that each record counts once in the table, whatever is killed when.
    deploy = DeployPipelineOperator(
        task_id="deploy",
        sql=SQL,
        runtime_config={"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 60}},
        secret_conn_ids=["orders_kafka", "orders_lake"],
    )
    start = StartPipelineOperator(task_id="start", timeout=300)
    # Of a topic that never rests nobody can say that all was read; then leave this out.
    caught_up = PipelineIdleSensor(task_id="caught_up", deferrable=True, poke_interval=1, timeout=600)
    view = QueryPipelineOperator(task_id="view", query="select customer, orders from totals")
    # All that the view shows was received before, so that the table has it when this was delivered, whatever comes meanwhile.
    received = CompletionTokenOperator(task_id="received", table="orders", connector="topic")
    delivered = PipelineCompletionTokenSensor(
        task_id="delivered", token="{{ ti.xcom_pull('received')['token'] }}", deferrable=True, poke_interval=1, timeout=600
    )
    chain(deploy, start, caught_up, view, received, delivered, compare_and_compact(view.output))
# [END dag]

if __name__ == "__main__":
    dag.test()
