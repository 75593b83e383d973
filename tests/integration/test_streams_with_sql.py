"""Stream programs between tables and views: the examples with SQL, and the connectors that docs/datastream.md shows."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from airflow_pipelines import Pipeline, PipelineBuilder, PipelineClient, PipelineFailedError
from airflow_pipelines.sdk.runtime_config import RuntimeConfig
from tests.fixtures.postgresql import PASSWORD, Database
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.core]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "datastream.md"


def _example(client: PipelineClient, name: str, folder: str) -> Pipeline:
    files = ROOT / "examples" / folder
    program = {"program.py": (files / "program.py").read_text()}
    pipeline = PipelineBuilder(client, name, (files / "tables.sql").read_text(), stream_program=program).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    return pipeline


def _becomes(pipeline: Pipeline, query: str, expected: list[dict[str, Any]]) -> None:
    eventually(lambda: list(pipeline.query(query)) == expected, 30)


@pytest.mark.rest
def test_windows_stand_between_two_views(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _example(embedded_client, pipeline_name, "orders_with_sql")
    query = "select country, hour, revenue, orders from revenue_by_country where country = 'NL' order by hour"
    first = [
        {"country": "NL", "hour": 0, "revenue": Decimal("42.50"), "orders": 3},
        {"country": "NL", "hour": 1, "revenue": Decimal("12.00"), "orders": 1},
    ]
    _becomes(pipeline, query, first)
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=120)
    order = {"id": 9, "customer": "bob", "amount": "1.00", "minute": 190, "status": "paid"}
    pipeline.input_json("orders", [order, {**order, "id": 10, "minute": 999, "status": "cancelled"}])
    _becomes(pipeline, query, [*first, {"country": "NL", "hour": 2, "revenue": Decimal("99.00"), "orders": 1}])


@pytest.mark.rest
def test_a_relation_loses_what_the_view_no_longer_asks_for(embedded_client: PipelineClient, pipeline_name: str) -> None:
    pipeline = _example(embedded_client, pipeline_name, "stock_with_sql")
    query = "select product, to_buy from purchases order by product"
    desk, lamp = {"product": "desk", "to_buy": 6}, {"product": "lamp", "to_buy": 8}
    _becomes(pipeline, query, [desk, lamp])
    pipeline.input_json("movements", [{"product": "desk", "pieces": 5}])
    _becomes(pipeline, query, [{"product": "desk", "to_buy": 1}, lamp])
    pipeline.input_json("movements", [{"product": "desk", "pieces": 1}])
    _becomes(pipeline, query, [lamp])
    pipeline.input_json("movements", [{"product": "desk", "pieces": -2}])
    _becomes(pipeline, query, [lamp])


def test_connectors_of_tables_and_views_are_sources_and_sinks(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    shown = re.search(r"```sql\n(.*?)```\n\n```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    sql, program = shown[1].replace("/data/", f"{tmp_path}/"), shown[2]
    assert str(tmp_path) in sql
    (tmp_path / "visits.csv").write_text("page,ms\na,50\na,150\nb,200\na,300\n")
    pipeline = PipelineBuilder(embedded_client, pipeline_name, sql, stream_program={"slow.py": program}).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    written = tmp_path / "slow.json"
    eventually(lambda: written.exists() and written.read_text().count("\n") == 3, 30)
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert sorted(rows, key=str) == sorted(
        [
            {"insert": {"page": "a", "number": 1, "ms": 150}},
            {"insert": {"page": "b", "number": 1, "ms": 200}},
            {"insert": {"page": "a", "number": 2, "ms": 300}},
        ],
        key=str,
    )


DATABASE = """
from airflow_pipelines.datastream import StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.connectors import JdbcConnectionOptions, JdbcSink, JdbcSource

order = Types.ROW_NAMED(["id", "customer"], [Types.LONG(), Types.STRING()])
connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://${env:SHOP}")
connection = connection.with_user_name("guarded").with_password("${secret:shop/password}").build()
orders = JdbcSource.builder().set_connection_options(connection).set_table("orders").set_type_info(order)
env = StreamExecutionEnvironment.get_execution_environment()
read = env.from_source(orders.set_order_columns("id").build(), WatermarkStrategy.no_watermarks(), "orders").uid("orders")
upsert = "INSERT INTO counts VALUES (?, ?) ON CONFLICT (customer) DO UPDATE SET n = excluded.n"
counted = read.map(lambda row: (row.customer, 1)).key_by(lambda pair: pair[0]).sum(1).uid("counted")
counted.add_sink(JdbcSink.sink(upsert, Types.ROW([Types.STRING(), Types.INT()]), connection)).uid("counts")
env.execute()
"""


@pytest.fixture
def shop(database: Database, password_user: str) -> Engine:
    """Tables of a user who has to name a password."""
    url = make_url(database.url).set(drivername="postgresql+psycopg")
    owner = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with owner.begin() as connection:
        for statement in (
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT)",
            "CREATE TABLE counts (customer TEXT PRIMARY KEY, n INT)",
            "INSERT INTO orders VALUES (1, 'ann'), (2, 'bob'), (3, 'ann')",
            f"GRANT ALL ON orders, counts TO {password_user}",
        ):
            connection.execute(text(statement))
    return owner


@pytest.mark.rest
def test_a_database_is_read_and_written_with_a_password_that_is_in_no_program(
    embedded_client: PipelineClient, pipeline_name: str, shop: Engine
) -> None:
    config = RuntimeConfig(env={"SHOP": f"{shop.url.host}:{shop.url.port}/{shop.url.database}"})
    program = {"program.py": DATABASE}
    pipeline = PipelineBuilder(embedded_client, pipeline_name, "", stream_program=program, runtime_config=config)
    made = pipeline.create(timeout_s=120)
    with pytest.raises(PipelineFailedError, match=r"secret:shop/password\} has no value.*secrets set shop/password"):
        made.start(timeout_s=120)
    embedded_client.put("/v0/secrets/shop/password", json={"value": "wrong horse"})
    made.start(timeout_s=120)
    with pytest.raises(PipelineFailedError, match="password authentication failed"):
        made.wait_for_completion(timeout_s=60)
    embedded_client.put("/v0/secrets/shop/password", json={"value": PASSWORD})
    made.start(timeout_s=120)
    made.wait_for_completion(timeout_s=60)
    made.stop(force=False, timeout_s=60)
    with shop.begin() as connection:
        assert connection.execute(text("SELECT customer, n FROM counts ORDER BY customer")).all() == [("ann", 2), ("bob", 1)]
    log = "".join(takewhile(lambda line: "now Suspended" not in line, made.logs()))
    shown = log + json.dumps(embedded_client.get(f"/v0/pipelines/{pipeline_name}"))
    assert "wrong horse" not in shown
    assert PASSWORD not in shown
