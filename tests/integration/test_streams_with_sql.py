"""Stream programs between tables and views: the examples with SQL, and the connectors that docs/datastream.md shows."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines import Pipeline, PipelineBuilder, PipelineClient
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

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
