"""The store in a real PostgreSQL server: the same life cycle, and two services that act at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.service.app import create_app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.core]
PROGRAM = """
create table sales (shop string, amount decimal(8,2)) with ('materialized' = 'true');
create materialized view takings as select shop, sum(amount) as total from sales group by shop;
"""


@pytest.fixture
def clients(spark: SparkSession, database_url: str, tmp_path: Path) -> Iterator[tuple[PipelineClient, PipelineClient]]:
    """Two services over one store, each with a client."""
    from tests.inprocess_host import InProcessHost

    settings = Settings(home=tmp_path, database_url=database_url, storage=tmp_path / "storage")
    with InProcessHost(spark, open_database(database_url)):
        apps = [create_app(settings), create_app(settings)]
        made = [PipelineClient(app=app) for app in apps]
        yield made[0], made[1]
        for app, client in zip(apps, made, strict=True):
            client.close()
            app.state.control_plane.close()


def test_a_pipeline_lives_in_a_postgresql_store(clients: tuple[PipelineClient, PipelineClient]) -> None:
    one, other = clients
    pipeline = PipelineBuilder(one, "shops", sql=PROGRAM).create()
    pipeline.start(timeout_s=60)
    pipeline.execute("insert into sales values ('north', 10.50), ('south', 1), ('north', 2)")
    # What one service did, the other one knows: truth is in the store only.
    seen = Pipeline.get("shops", other)
    assert seen.status() == PipelineStatus.RUNNING
    assert list(seen.query("select * from takings order by shop")) == [
        {"shop": "north", "total": Decimal("12.50")},
        {"shop": "south", "total": Decimal("1.00")},
    ]
    seen.stop(force=False, timeout_s=60)
    assert pipeline.status() == PipelineStatus.STOPPED
    pipeline.start(timeout_s=60)
    assert list(pipeline.query("select total from takings where shop = 'south'")) == [{"total": Decimal("1.00")}]
    pipeline.stop(force=True, timeout_s=60)
    pipeline.delete(clear_storage=True)


@pytest.mark.rest
def test_two_services_that_create_one_name_at_once_make_one_pipeline(clients: tuple[PipelineClient, PipelineClient]) -> None:
    def create(client: PipelineClient) -> str:
        try:
            client.post("/v0/pipelines", json={"name": "contested", "program_code": PROGRAM})
        except PipelineAPIError as error:
            return str(error.error_code)
        return "created"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(create, clients)) == ["DuplicateName", "created"]
