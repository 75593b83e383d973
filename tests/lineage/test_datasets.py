from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.lineage.datasets import DatasetName, datasets_of


@pytest.mark.parametrize(
    ("transport", "config", "namespace", "name"),
    [
        ("kafka_input", {"bootstrap.servers": "k1:9092, k2:9092", "topic": "orders"}, "kafka://k1:9092", "orders"),
        ("file_input", {"path": "/data/orders.csv"}, "file", "/data/orders.csv"),
        ("file_input", {"path": "file:///data/*.csv"}, "file", "/data/*.csv"),
        ("file_output", {"path": "s3://lake/out/"}, "s3://lake", "out"),
        ("delta_table_output", {"uri": "s3a://lake/totals"}, "s3://lake", "totals"),
        (
            "delta_table_input",
            {"uri": "abfss://box@account.dfs.core.windows.net/t"},
            "abfss://box@account.dfs.core.windows.net",
            "t",
        ),
        ("s3_input", {"bucket_name": "lake", "prefix": ""}, "s3://lake", "/"),
        (
            "postgres_cdc_input",
            {"uri": "postgresql://me:secret@db.example.com/shop?sslmode=require", "source_table": "orders"},
            "postgres://db.example.com:5432",
            "shop.public.orders",
        ),
        ("postgres_output", {"uri": "postgresql://db:5433/shop", "table": "sales.t"}, "postgres://db:5433", "shop.sales.t"),
        (
            "iceberg_output",
            {"catalog_type": "rest", "rest.uri": "https://me:secret@cat.example.com/x", "table_name": "sales.t"},
            "iceberg://cat.example.com",
            "sales.t",
        ),
        ("iceberg_input", {"metadata_location": "s3://lake/sales/t/metadata/00.metadata.json"}, "s3://lake", "sales/t"),
        ("url_input", {"path": "https://me:secret@example.com/orders.csv"}, "https://example.com", "orders.csv"),
        ("redis_output", {"connection_string": "redis://me:secret@cache:6379/2"}, "redis://cache:6379", "2"),
        (
            "pipeline_input",
            {"url": "https://s.example.com", "pipeline": "a", "view": "v"},
            "airflow-pipelines://s.example.com",
            "a.v",
        ),
    ],
)
def test_what_a_connector_reads_or_writes_has_a_name_without_a_secret(
    transport: str, config: dict[str, Any], namespace: str, name: str
) -> None:
    assert datasets_of(transport, config) == (DatasetName(namespace, name),)


def test_several_objects_are_several_datasets() -> None:
    found = datasets_of("s3_input", {"bucket_name": "lake", "keys": ["b", "a"]})
    assert [each.name for each in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("transport", "config"),
    [
        ("datagen", {}),
        ("postgres_input", {"uri": "postgresql://db/shop", "query": "select 1"}),
        ("postgres_output", {"uri": "${secret:shop}", "table": "t"}),
        ("postgres_output", {"uri": "postgresql://${conn:shop.login}@${conn:shop.host}/x", "table": "t"}),
        ("kafka_input", {"bootstrap.servers": "${conn:kafka.host}", "topic": "t"}),
        ("kafka_input", {"topic": "t"}),
        ("s3_input", {"bucket_name": "lake", "keys": 3}),
        ("my_own_transport", {"path": "x"}),
    ],
)
def test_what_is_not_known_has_none(transport: str, config: dict[str, Any]) -> None:
    assert datasets_of(transport, config) == ()


def test_a_reference_for_the_password_only_hides_nothing() -> None:
    config = {"uri": "postgresql://${conn:shop.login}:${conn:shop.password}@db/shop", "table": "t"}
    assert datasets_of("postgres_output", config) == (DatasetName("postgres://db:5432", "shop.public.t"),)
