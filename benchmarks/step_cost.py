"""A step for 1,000 changed rows over millions of rows of state, against Spark recomputing the same views from Parquet."""

from __future__ import annotations

import statistics
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from benchmarks.measure import Measurement, median_seconds, timed
from benchmarks.options import Options

CUSTOMERS = 100_000
CHANGED_ROWS = 1_000
LOAD_ROWS = 2_000_000
PROGRAM = """
create table orders (id bigint, customer_id bigint, amount decimal(10,2), day date) with ('materialized' = 'true');
create table customers (id bigint, country string) with ('materialized' = 'true');
create materialized view spend as
  select customer_id, count(*) as orders, sum(amount) as total, avg(amount) as mean from orders group by customer_id;
create materialized view spend_by_country as
  select country, sum(total) as total, sum(orders) as orders
  from spend join customers on spend.customer_id = customers.id group by country;
create view large_orders as
  select orders.id, country, amount from orders join customers on orders.customer_id = customers.id where amount > 990;
"""


def measure(options: Options) -> list[Measurement]:
    """Load as many orders as the largest size asks for, then time steps and recomputations side by side in one session."""
    spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": "8g"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder:
            return _measure(spark, Path(folder), max(options.rows), options.repeats)
    finally:
        spark.stop()


def _measure(spark: SparkSession, folder: Path, rows: int, repeats: int) -> list[Measurement]:
    sessions = SparkSessions.of(spark)
    compiled = compile_program(PROGRAM, sessions)
    circuit = Circuit(compiled, sessions, BatchStore(folder / "batches"))
    with timed() as load:
        _load(circuit, rows)
    step = median_seconds(lambda at: _step(circuit, rows + at * CHANGED_ROWS, CHANGED_ROWS), repeats)
    small_step = median_seconds(lambda at: _step(circuit, 2 * rows + at, 1), repeats)
    recompute = _recompute(spark, sessions, circuit, compiled, folder)
    return [
        Measurement(f"load_{rows}_rows_s", load.seconds, "s"),
        Measurement(f"step_{CHANGED_ROWS}_changed_rows_s_median", step, "s"),
        Measurement("step_1_changed_row_s_median", small_step, "s"),
        Measurement("recompute_views_from_parquet_s_median", recompute, "s"),
        Measurement("step_vs_recompute_ratio", step / recompute, "x", 0.5),
    ]


def _load(circuit: Circuit, rows: int) -> None:
    customers = pa.table({"id": range(CUSTOMERS), "country": [f"country {at % 200}" for at in range(CUSTOMERS)]})
    circuit.publish(circuit.step([_inserts("customers", customers)]))
    for start in range(0, rows, LOAD_ROWS):
        orders = _orders(start, min(LOAD_ROWS, rows - start))
        circuit.publish(circuit.step([_inserts("orders", orders)]))
        circuit.maintain()


def _step(circuit: Circuit, start: int, rows: int) -> None:
    circuit.publish(circuit.step([_inserts("orders", _orders(start, rows))]))


def _orders(start: int, rows: int) -> pa.Table:
    ids = np.arange(start, start + rows)
    cents = pa.array((ids * 7919) % 100_000).cast(pa.decimal128(19, 0))
    amounts = pc.multiply(cents, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(10, 2))
    days = pa.array((20_000 + ids % 365).astype("int32")).cast(pa.date32())
    return pa.table({"id": ids, "customer_id": (ids * 31) % CUSTOMERS, "amount": amounts, "day": days})


def _inserts(table: str, rows: pa.Table) -> TableChanges:
    return TableChanges(table, rows.append_column(OP, pa.repeat(pa.scalar(int(Op.INSERT), pa.int8()), rows.num_rows)))


def _recompute(
    spark: SparkSession, sessions: SparkSessions, circuit: Circuit, compiled: Program, folder: Path, repeats: int = 3
) -> float:
    """Measure the recomputation that a user would do instead, as the median time in seconds.

    The tables are Parquet, and the views' queries run over them with Spark's defaults. Caching ``spend`` for the view that reads it
    was tried and made this slower, so each view is computed by itself.
    """
    session = sessions.large.newSession()
    for setting in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"):
        session.conf.set(setting, str(spark.conf.get(setting)))
    for table in compiled.tables:
        path = str(folder / f"{table}.parquet")
        circuit.relation(table).write.parquet(path)
        session.read.parquet(path).createOrReplaceTempView(table)
    times = []
    for _ in range(repeats):
        with timed() as watch:
            for name, plan in compiled.plans.items():
                frame = session.sql(plan.query)
                frame.createOrReplaceTempView(name)
                frame.write.format("noop").mode("overwrite").save()
        times.append(watch.seconds)
    return statistics.median(times)
