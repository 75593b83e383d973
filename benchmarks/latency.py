"""How long until a change of one row shows in a query, over REST, for a program of five chained and independent views."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.measure import Measurement, timed
from benchmarks.options import Options

TARGET_S = 0.1
PATIENCE_S = 60.0
CUSTOMERS = 1_000
WARM_UP = 5
# spend -> spend_by_country -> top_countries is a chain; the other two are independent of it and of each other.
PROGRAM = """
create table customers (id bigint not null primary key, country varchar) with ('materialized' = 'true');
create table orders (id bigint not null primary key, customer_id bigint, amount decimal(10,2), day date)
  with ('materialized' = 'true');
create materialized view spend as
  select customer_id, count(*) as orders, sum(amount) as total from orders group by customer_id;
create materialized view spend_by_country as
  select country, sum(total) as total, sum(orders) as orders
  from spend join customers on spend.customer_id = customers.id group by country;
create materialized view large_countries as select country, total from spend_by_country where total > 1000;
create materialized view large_orders as
  select orders.id, country, amount from orders join customers on orders.customer_id = customers.id where amount > 50;
create materialized view latest_day as select customer_id, max(day) as day from orders group by customer_id;
"""


def measure(options: Options) -> list[Measurement]:
    """Insert orders one at a time and ask until the last view of the chain knows them."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as home:
        client = PipelineClient(home=Path(home))
        try:
            return _measure(client, options.inserts)
        finally:
            client.close()
            subprocess.run([sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", home], check=True)


def _measure(client: PipelineClient, inserts: int) -> list[Measurement]:
    pipeline = PipelineBuilder(client, "latency", sql=PROGRAM).create_or_replace()
    pipeline.start(timeout_s=PATIENCE_S)
    customers = ", ".join(f"({at}, 'country {at % 20}')" for at in range(CUSTOMERS))
    pipeline.execute(f"insert into customers values {customers}")
    times = []
    for at in range(WARM_UP + inserts):
        country, total = f"country {at % 20}", 2_000 * (at // 20 + 1)
        with timed() as watch:
            pipeline.execute(f"insert into orders values ({at}, {at % 20}, 2000.00, date '2025-10-01')")
            _until_shown(pipeline, country, total)
        times.append(watch.seconds)
    pipeline.stop(force=True)
    times = times[WARM_UP:]
    return [
        Measurement("latency_s_median", statistics.median(times), "s", TARGET_S),
        Measurement("latency.p95_s", sorted(times)[int(len(times) * 0.95)], "s"),
    ]


def _until_shown(pipeline: Pipeline, country: str, total: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not list(pipeline.query(f"select country from large_countries where country = '{country}' and total = {total}")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no query showed the change of {country!r} within {PATIENCE_S:.0f} s")
