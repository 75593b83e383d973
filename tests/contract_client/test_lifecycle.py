"""The life of a pipeline, driven by the unmodified client of PyPI's package ``feldera``."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from feldera import FelderaClient, Pipeline, PipelineBuilder
from feldera.enums import BootstrapPolicy, CompletionTokenStatus, PipelineStatus, StorageStatus
from feldera.rest.errors import FelderaAPIError

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table items (id bigint not null primary key, kind varchar, price decimal(8, 2)) with (
    'materialized' = 'true',
    'connectors' = '[{{
        "name": "file",
        "transport": {{"name": "file_input", "config": {{"path": "{path}"}}}},
        "format": {{"name": "csv"}}
    }}]'
);
create materialized view totals as select kind, sum(price) as total, count(*) as n from items group by kind;
"""
ADDED = "create materialized view expensive as select id, price from items where price > 10;"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "items.csv"
    path.write_text("1,book,12.50\n2,book,7.50\n3,pen,1.25\n")
    return SQL.format(path=path)


def test_a_whole_life(
    foreign: FelderaClient, create: Callable[..., Pipeline], pipeline_name: str, program: str, tmp_path: Path
) -> None:
    pipeline = create(program)
    assert pipeline.status() == PipelineStatus.STOPPED
    assert pipeline.storage_status() == StorageStatus.CLEARED
    assert [table.name for table in pipeline.tables()] == ["items"]
    assert "totals" in [view.name for view in pipeline.views()]
    assert pipeline_name in [each.name for each in Pipeline.all(foreign)]

    pipeline.start_paused()
    assert pipeline.status() == PipelineStatus.PAUSED
    listener = pipeline.listen("totals")
    pipeline.resume()
    assert pipeline.status() == PipelineStatus.RUNNING
    pipeline.wait_for_completion(timeout_s=60)
    assert pipeline.is_complete()

    # The file of the connector.
    token = pipeline.generate_completion_token("items", "file")
    pipeline.wait_for_token(token)
    assert pipeline.completion_token_status(token) == CompletionTokenStatus.COMPLETE
    query = "select * from totals order by kind"
    assert list(pipeline.query(query)) == [
        {"kind": "book", "total": Decimal("20.00"), "n": 2},
        {"kind": "pen", "total": Decimal("1.25"), "n": 1},
    ]
    source = pipeline.input_connector_stats("items", "file")
    assert (source.metrics.total_records, source.metrics.end_of_input) == (3, True)

    # Rows over HTTP; the listener sees what changes.
    assert rows_of(listener, 2) == {("book", Decimal("20.00"), 2, 1), ("pen", Decimal("1.25"), 1, 1)}
    pipeline.input_json("items", [{"id": 4, "kind": "pen", "price": "2.75"}])
    assert rows_of(listener, 2) == {("pen", Decimal("1.25"), 1, -1), ("pen", Decimal("4.00"), 2, 1)}
    pipeline.input_json("items", {"delete": {"id": 4}}, update_format="insert_delete")
    pipeline.wait_for_idle(idle_interval_s=1.0, timeout_s=60)
    assert list(pipeline.query("select count(*) as c from items")) == [{"c": 3}]
    pipeline.execute("insert into items values (5, 'ink', 30)")
    assert list(pipeline.query("select total from totals where kind = 'ink'")) == [{"total": Decimal("30.00")}]
    assert_same_rows_in_all_formats(pipeline, query, tmp_path / "totals.parquet")

    stats = pipeline.stats()
    assert stats.global_metrics.total_processed_records == stats.global_metrics.total_input_records
    assert "items.file" in [endpoint.endpoint_name for endpoint in stats.inputs]

    # Pause: the client itself refuses to push then.
    pipeline.pause()
    assert pipeline.status() == PipelineStatus.PAUSED
    with pytest.raises(RuntimeError):
        pipeline.input_json("items", {"id": 6, "kind": "pen", "price": 1})
    pipeline.resume()

    pipeline.checkpoint(wait=True, timeout_s=60)
    assert len(pipeline.checkpoints()) == 1
    pipeline.stop(force=False, timeout_s=60)
    assert pipeline.status() == PipelineStatus.STOPPED
    assert pipeline.storage_status() == StorageStatus.INUSE

    # Change the program; a person approves.
    pipeline.modify(sql=program + ADDED)
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=60)
    assert pipeline.status() == PipelineStatus.AWAITINGAPPROVAL
    diff = unwrapped(pipeline.deployment_runtime_status_details())
    assert diff["program_diff"]["added_views"] == ["expensive"]
    assert diff["program_diff"]["modified_views"] == []
    pipeline.approve()
    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=60)
    assert list(pipeline.query("select * from expensive order by id")) == [
        {"id": 1, "price": Decimal("12.50")},
        {"id": 5, "price": Decimal("30.00")},
    ]

    logs = pipeline.logs()
    assert next(logs)
    logs.close()

    pipeline.stop(force=True, timeout_s=60)
    pipeline.clear_storage(timeout_s=60)
    assert pipeline.storage_status() == StorageStatus.CLEARED
    pipeline.delete()
    with pytest.raises(FelderaAPIError):
        Pipeline.get(pipeline_name, foreign)


def test_a_program_may_be_empty(create: Callable[..., Pipeline], pipeline_name: str, foreign: FelderaClient) -> None:
    pipeline = create("-- to be written")
    pipeline.start()
    assert list(pipeline.query("select 1 + 1 as n")) == [{"n": 2}]
    pipeline.stop(force=True)
    pipeline.modify(sql="create table t (i int) with ('materialized' = 'true');")
    pipeline.modify(sql="")
    pipeline.start()
    assert pipeline.tables() == []
    pipeline.stop(force=True)


def test_errors_reach_the_client(foreign: FelderaClient, pipeline_name: str) -> None:
    with pytest.raises(RuntimeError, match="blah"):
        PipelineBuilder(foreign, pipeline_name, "create table t (i int);\ncreate view v as select * from blah;").create()
    pipeline = Pipeline.get(pipeline_name, foreign)
    with pytest.raises(FelderaAPIError) as caught:
        pipeline.start()
    assert caught.value.error_code == "CannotStartWithCompilationError"
    with pytest.raises(RuntimeError):
        PipelineBuilder(foreign, pipeline_name, "create table t (i int);").create()
    pipeline = PipelineBuilder(foreign, pipeline_name, "create table t (i int);").create_or_replace()
    with pytest.raises(FelderaAPIError) as caught:
        list(pipeline.query("select * from t"))
    assert caught.value.error_code == "PipelineInteractionNotDeployed"


@pytest.mark.core
def test_a_hash_of_a_query(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy("create table t (i int) with ('materialized' = 'true');")
    empty = pipeline.query_hash("select * from t")
    assert re.fullmatch("[0-9A-F]{64}", empty)
    assert pipeline.query_hash("select * from t") == empty
    pipeline.execute("insert into t values (1)")
    assert pipeline.query_hash("select * from t") != empty


def assert_same_rows_in_all_formats(pipeline: Pipeline, query: str, file: Path) -> None:
    rows = list(pipeline.query(query))
    assert "| ink" in "".join(pipeline.query_tabular(query))
    pipeline.query_parquet(query, str(file))
    assert pq.read_table(file).to_pylist() == rows
    assert list(pipeline.query_arrow_dicts(query)) == rows
    assert [row for batch in pipeline.query_arrow(query) for row in batch.to_pylist()] == rows


def rows_of(listener: Any, count: int) -> set[tuple[Any, ...]]:
    """The next ``count`` changes of the view ``totals``."""
    rows: list[dict[str, Any]] = []

    def gathered() -> bool:
        rows.extend(listener.to_dict())
        return len(rows) >= count

    eventually(gathered)
    return {(row["kind"], row["total"], row["n"], row["insert_delete"]) for row in rows}


def unwrapped(details: dict[str, Any]) -> dict[str, Any]:
    """The diff, however much of its wrapping the client has taken off."""
    diff: dict[str, Any] = details.get("approval_diff", details)
    return diff
