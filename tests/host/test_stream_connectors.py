"""A stream program between connectors of the registry: from a Delta table to PostgreSQL and to another Delta table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_pipelines.program.sources import SourceFile
from tests.fixtures.postgresql import Database
from tests.host.driver import Make
from tests.host.test_postgres import wait_until

_PROGRAM = """
from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Total(KeyedProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, order, ctx):
        self.total.update((self.total.value() or 0) + order.amount)
        yield order.customer, self.total.value()


env = StreamExecutionEnvironment.get_execution_environment()
orders = env.from_relation("orders").uid("orders")
totals = orders.key_by(lambda order: order.customer).process(Total()).uid("total")
totals.to_relation("totals", "customer VARCHAR, total BIGINT", primary_key="customer").uid("totals")
env.execute()
"""


def _connector(name: str, transport: str, index: str | None = None, **config: Any) -> dict[str, Any]:
    named = {"name": name} if index is None else {"name": name, "index": index}
    return {**named, "transport": {"name": transport, "config": config}}


@pytest.mark.core(slow_because="a stream program begins, is killed, and goes on")
def test_rows_go_through_a_program_from_one_connector_to_others_once_over_a_kill(
    make: Make, database: Database, tmp_path: Path
) -> None:
    source, target = tmp_path / "orders", tmp_path / "totals"
    database.execute("CREATE TABLE totals (customer text PRIMARY KEY, total bigint)")

    def order(*orders: tuple[int, str, int]) -> None:
        columns = zip(*orders, strict=True)
        write_deltalake(str(source), pa.table(dict(zip(("id", "customer", "amount"), columns, strict=True))), mode="append")

    def expect(*totals: tuple[str, int]) -> None:
        read = "SELECT customer, total FROM totals ORDER BY customer"
        wait_until(lambda: database.rows(read) == list(totals), pipeline, "the totals in PostgreSQL")
        rows = [dict(zip(("customer", "total"), total, strict=True)) for total in totals]

        def delta() -> list[dict[str, Any]]:
            return sorted(DeltaTable(str(target)).to_pyarrow_table().to_pylist(), key=lambda row: str(row["customer"]))

        wait_until(lambda: target.exists() and delta() == rows, pipeline, "the totals in the Delta table")

    order((1, "ann", 5), (2, "bob", 7), (3, "ann", 1))
    reads = [_connector("source", "delta_table_input", uri=str(source), mode="snapshot_and_follow")]
    writes = [
        _connector("postgres", "postgres_output", "by_customer", uri="${env:SHOP}", table="totals"),
        _connector("delta", "delta_table_output", "by_customer", uri=str(target), write="merged"),
    ]
    sql = f"""
        CREATE TABLE orders (id BIGINT, customer VARCHAR, amount BIGINT)
            WITH ('append_only' = 'true', 'connectors' = '{json.dumps(reads)}');
        CREATE MATERIALIZED VIEW kept WITH ('connectors' = '{json.dumps(writes)}') AS SELECT customer, total FROM totals;
        CREATE INDEX by_customer ON kept(customer);
    """
    fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": 1}
    pipeline = make(sql, env={"SHOP": database.url}, fault_tolerance=fault_tolerance)
    pipeline.stream_files = (SourceFile("program.py", _PROGRAM),)
    pipeline.start()
    expect(("ann", 6), ("bob", 7))
    pipeline.kill()
    order((4, "ann", 10), (5, "cid", 2))
    pipeline.start()
    expect(("ann", 16), ("bob", 7), ("cid", 2))
