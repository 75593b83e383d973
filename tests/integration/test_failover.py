"""A pipeline fails over from one service to another, with an object store between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.common.database import open_database
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.sdk.runtime_config import RuntimeConfig, Storage
from tests.fixtures.s3 import Bucket
from tests.inprocess_host import InProcessHost

pytestmark = pytest.mark.integration

SQL = """create table payments (id bigint not null primary key, amount bigint);
create materialized view total as select sum(amount) as amount, count(*) as n from payments;"""


@pytest.fixture
def other_client(spark: SparkSession, tmp_path: Path) -> Iterator[PipelineClient]:
    """A service with a store, a storage folder and a host of its own."""
    store = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    with InProcessHost(spark, store, secrets=tmp_path / "secrets"), PipelineClient(home=tmp_path) as client:
        yield client


def create(client: PipelineClient, name: str, storage: dict[str, object]) -> Pipeline:
    return PipelineBuilder(client, name, SQL, runtime_config=RuntimeConfig(storage=Storage(storage))).create(timeout_s=60)


@pytest.mark.core(slow_because="one service has to be missed before another takes over")
def test_another_service_takes_over(
    embedded_client: PipelineClient, other_client: PipelineClient, pipeline_name: str, s3: Callable[[], Bucket]
) -> None:
    bucket = s3()
    first = create(embedded_client, pipeline_name, bucket.storage("first"))
    with pytest.raises(PipelineAPIError, match="no sync configuration"):
        PipelineBuilder(other_client, "no-sync", SQL).create(timeout_s=60).start_standby()
    read_bucket = f"{bucket.name}/first"
    storage = bucket.storage("second", read_bucket=read_bucket, start_from_checkpoint="latest", pull_interval=0.2)
    second = create(other_client, pipeline_name, storage)
    first.start(timeout_s=60)
    first.input_json("payments", [{"id": 1, "amount": 10}, {"id": 2, "amount": 5}])
    first.checkpoint(wait=True, timeout_s=60)
    first.sync_checkpoint(wait=True, timeout_s=60)

    second.start_standby(timeout_s=60)
    assert second.status() is PipelineStatus.STANDBY
    for refused in (second.pause, second.checkpoint, second.resume, lambda: second.stop(force=False)):
        with pytest.raises(PipelineAPIError, match=r"(?i)stand"):
            refused()
    first.execute("insert into payments values (3, 7)")
    first.checkpoint(wait=True, timeout_s=60)
    newest = first.sync_checkpoint(wait=True, timeout_s=60)
    # The machine of the first is gone.
    first.stop(force=True, timeout_s=60)

    assert second.activate(timeout_s=60) is PipelineStatus.RUNNING
    assert list(second.query("select amount, n from total")) == [{"amount": 22, "n": 3}]
    assert str(newest) in [str(checkpoint.uuid) for checkpoint in second.checkpoints()]
    with pytest.raises(PipelineAPIError, match="Only a pipeline in standby can be activated"):
        second.activate()
    second.execute("insert into payments values (4, 1)")
    second.checkpoint(wait=True, timeout_s=60)
    assert second.sync_checkpoint(wait=True, timeout_s=60) != newest
    second.stop(force=False, timeout_s=60)

    # It was activated here, so that it goes on from its own storage.
    second.start_standby(timeout_s=60)
    assert second.status() is PipelineStatus.RUNNING
    assert list(second.query("select amount, n from total")) == [{"amount": 23, "n": 4}]
    second.stop(force=True, timeout_s=60)
