"""The methods that no life cycle needs, in both SDKs: what a pipeline says of itself, rows in frames, connectors, checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from tests.contract_client.conftest import START_S, Sdk
from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table items (id int not null primary key, kind varchar, price decimal(8, 2), "At" timestamp) with (
    'materialized' = 'true',
    'connectors' = '[{{
        "name": "file", "paused": true,
        "transport": {{"name": "file_input", "config": {{"path": "{path}"}}}}, "format": {{"name": "csv"}}
    }}]'
);
create materialized view totals as select kind, sum(price) as total from items group by kind;"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "items.csv"
    path.write_text("1,book,12.50,2026-01-02 03:04:05\n2,pen,x,2026-01-02 03:04:05\n")
    return SQL.format(path=path)


def test_what_a_pipeline_says_of_itself(sdk: Sdk, program: str) -> None:
    module = sdk.module
    began = datetime.now(UTC)
    pipeline = sdk.builder(program).create()
    fields = sdk.fields()
    assert pipeline.name == sdk.name
    assert pipeline.id() == fields["id"]
    assert pipeline.created_at() == datetime.fromisoformat(fields["created_at"])
    assert pipeline.created_at() <= pipeline.program_status_since() <= datetime.now(UTC)
    assert (pipeline.created_at() - began).total_seconds() < 60
    assert pipeline.platform_version() == fields["platform_version"]
    assert (pipeline.program_code(), pipeline.udf_rust(), pipeline.udf_toml()) == (program, "", "")
    assert pipeline.program_config()["cache"] is True
    assert pipeline.program_status() == module.ProgramStatus.Success
    assert pipeline.errors() == []
    assert pipeline.runtime_config().workers == 1
    (table,) = pipeline.tables()
    assert (table.name, table.materialized) == ("items", True)
    assert [field["name"] for field in table.fields] == ["id", "kind", "price", "At"]
    assert [field["case_sensitive"] for field in table.fields] == [False, False, False, True]
    assert {view.name for view in pipeline.views()} == {"totals", "error_view"}
    assert pipeline.deployment_resources_desired_status() == module.DeploymentResourcesDesiredStatus.STOPPED
    pipeline.start(timeout_s=START_S)
    assert pipeline.deployment_resources_desired_status() == module.DeploymentResourcesDesiredStatus.PROVISIONED
    assert pipeline.deployment_runtime_desired_status() == module.DeploymentRuntimeDesiredStatus.RUNNING
    pipeline.refresh(module.PipelineFieldSelector.STATUS)
    assert pipeline.status() == module.PipelineStatus.RUNNING
    assert (pipeline.transaction_id(), pipeline.transaction_status()) == (None, module.TransactionStatus.NoTransaction)
    assert pipeline.bootstrap_policy() == module.BootstrapPolicy.AWAIT_APPROVAL
    diff = pipeline.diff(program + " create view more as select id from items;")
    assert (diff["program_diff"]["added_views"], diff["program_diff"]["modified_views"]) == (["more"], [])
    assert sdk.refused(lambda: pipeline.diff("create view v as select * from nowhere;")) == (400, "InvalidNewProgramSql")


def test_frames_and_connectors(sdk: Sdk, program: str) -> None:
    pipeline = sdk.builder(program).create()
    pipeline.start_paused(timeout_s=START_S)
    chunks: list[tuple[pd.DataFrame, int]] = []
    pipeline.foreach_chunk("totals", lambda frame, number: chunks.append((frame, number)))
    pipeline.resume()

    frame = pd.DataFrame(
        {"id": [7, 8], "kind": ["ink", None], "price": [1.25, 2.5], "At": pd.to_datetime(["2026-01-03 04:05:06"] * 2)}
    )
    pipeline.input_pandas("items", frame)
    pipeline.wait_for_idle(idle_interval_s=0.5, timeout_s=60)
    assert sorted(str(row["kind"]) for row in pipeline.query("select kind from items")) == ["None", "ink"]
    assert [
        row["c"] for row in pipeline.query("select count(*) as c from items where \"At\" = timestamp_ntz '2026-01-03 04:05:06'")
    ] == [2]
    eventually(lambda: sum(len(frame) for frame, _ in chunks) == 2)
    rows = [row for frame, _ in chunks for row in frame.to_dict("records")]
    assert {(row["total"], row["insert_delete"]) for row in rows} == {(Decimal("1.25"), 1), (Decimal("2.50"), 1)}

    # An input that waits to be started, and one bad line of its file.
    assert pipeline.input_connector_stats("items", "file").paused
    assert not pipeline.is_complete()
    pipeline.resume_connector("items", "file")
    pipeline.wait_for_completion(timeout_s=60)
    stats = pipeline.input_connector_stats("items", "file")
    assert (stats.paused, stats.metrics.total_records, stats.metrics.num_parse_errors) == (False, 1, 1)
    reached = stats.completed_frontier
    assert reached.metadata
    assert reached.ingested_at <= reached.processed_at <= reached.completed_at
    (error,) = stats.parse_errors
    assert "price" in error.message
    pipeline.pause_connector("items", "file")
    assert pipeline.input_connector_stats("items", "file").paused
    assert sdk.refused(lambda: pipeline.pause_connector("items", "nothing")) == (404, "UnknownInputEndpoint")
    assert sdk.refused(lambda: pipeline.output_connector_stats("totals", "nothing")) == (404, "UnknownOutputEndpoint")
    assert list(pipeline.query("select kind, total from totals where kind = 'book'")) == [
        {"kind": "book", "total": Decimal("12.50")}
    ]


@pytest.mark.core("airflow_pipelines")
def test_checkpoints_by_number(sdk: Sdk, program: str, tmp_path: Path) -> None:
    sync = {"backend": {"name": "file", "config": {"sync": {"bucket": str(tmp_path / "bucket")}}}}
    pipeline = sdk.builder(program, storage=sdk.module.Storage(config=sync)).create()
    pipeline.start(timeout_s=START_S)
    assert pipeline.checkpoint(wait=True) == 0
    pipeline.execute("insert into items (id, kind) values (1, 'a')")
    incarnation = str(pipeline.stats().global_metrics.incarnation_uuid)
    answer = pipeline.checkpoint_response(wait=True)
    assert (answer["checkpoint_sequence_number"], str(answer["incarnation_uuid"])) == (1, incarnation)
    first, second = pipeline.checkpoint_status(0), pipeline.checkpoint_status(1)
    assert (first.name, second.name) == ("Unknown", "Success")
    uuid = pipeline.sync_checkpoint(wait=True)
    assert pipeline.sync_checkpoint_status(uuid).name == "Success"
    assert str(pipeline.last_successful_checkpoint_sync()) == str(uuid)
    assert max(str(each.uuid) for each in pipeline.checkpoints()) == str(uuid)
