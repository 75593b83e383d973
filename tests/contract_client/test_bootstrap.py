"""A program that is changed while its pipeline keeps its state: what goes on, what begins anew, and what outputs get of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from feldera import Pipeline
from feldera.enums import BootstrapPolicy, PipelineStatus
from feldera.rest.errors import FelderaAPIError

from tests.contract_client.conftest import START_S
from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration


def source(name: str, path: Path, **options: Any) -> dict[str, Any]:
    transport = {"name": "file_input", "config": {"path": str(path)}}
    return {"name": name, "transport": transport, "format": {"name": "json", "config": {"update_format": "raw"}}, **options}


def sink(name: str, path: Path) -> dict[str, Any]:
    return {"name": name, "transport": {"name": "file_output", "config": {"path": str(path)}}, "format": {"name": "csv"}}


def connectors(*declared: dict[str, Any]) -> str:
    return f"'connectors' = '{json.dumps(declared)}'"


def written(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


def program(folder: Path, kept: list[dict[str, Any]], column: str, totals: list[dict[str, Any]], changed: str) -> str:
    return f"""
create table kept (x int) with ('materialized' = 'true', {connectors(*kept)});
create table grown (x int{column}) with ('materialized' = 'true', {connectors(source("in", folder / "grown.json"))});
create materialized view totals with ({connectors(*totals)}) as select count(*) as n from kept;
create materialized view sums with ({connectors(sink("out", folder / "sums.csv"))}) as select {changed} as s from kept;
create materialized view over as select count(*) as n from grown;
"""


def number(pipeline: Pipeline, sql: str) -> Any:
    (row,) = pipeline.query(f"select {sql}")
    (found,) = row.values()
    return found


def test_what_each_change_means_for_rows_connectors_and_outputs(deploy: Callable[..., Pipeline], tmp_path: Path) -> None:
    for name, values in {"same": [1, 2], "gone": [3], "first": [4], "second": [5, 6], "new": [7], "grown": [1, 2]}.items():
        (tmp_path / f"{name}.json").write_text("".join(json.dumps({"x": value}) + "\n" for value in values))
    same = source("same", tmp_path / "same.json")
    gone, first = source("gone", tmp_path / "gone.json"), source("changed", tmp_path / "first.json")
    out, late = sink("out", tmp_path / "totals.csv"), sink("late", tmp_path / "late.csv")
    pipeline = deploy(program(tmp_path, [same, gone, first], "", [out], "sum(x)"))
    pipeline.wait_for_completion(timeout_s=60)
    assert (number(pipeline, "sum(x) from kept"), number(pipeline, "n from over")) == (10, 2)
    pipeline.pause_connector("kept", "same")
    sent = pipeline.output_connector_stats("sums", "out").metrics.transmitted_records
    before, lines = written(tmp_path / "totals.csv"), written(tmp_path / "sums.csv")
    total = pipeline.stats().global_metrics.total_processed_records
    assert total == 6
    pipeline.stop(force=False)

    # What only says how much is taken at once, or whether it begins paused, is no change.
    same |= {"max_batch_size": 1, "paused": False}
    changed = [same, source("changed", tmp_path / "second.json"), source("new", tmp_path / "new.json")]
    pipeline.modify(sql=program(tmp_path, changed, ", note varchar", [out, late], "max(x)"))
    pipeline.start_paused(timeout_s=START_S)
    assert pipeline.status() == PipelineStatus.AWAITINGAPPROVAL
    details = pipeline.deployment_runtime_status_details()
    assert details is not None
    assert details["approval_diff"] == {
        "program_diff": {
            "added_tables": [],
            "removed_tables": [],
            "modified_tables": ["grown"],
            "added_views": [],
            "removed_views": [],
            "modified_views": ["over", "sums"],
        },
        "program_diff_error": None,
        "added_input_connectors": ["kept.new"],
        "modified_input_connectors": ["kept.changed"],
        "removed_input_connectors": ["kept.gone"],
        "added_output_connectors": ["totals.late"],
        "modified_output_connectors": [],
        "removed_output_connectors": [],
    }
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.approve(silent_bootstrap=True, concurrent_bootstrap=True)
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidBootstrapConfig")
    with pytest.raises(FelderaAPIError, match="bootstrapped concurrently"):
        pipeline.approve(concurrent_bootstrap=True)
    pipeline.approve()
    pipeline.wait_for_status(PipelineStatus.PAUSED, timeout=60)

    # Rows of an unmodified table stay, also those of connectors that are gone; a modified one starts empty, and so do its views.
    assert (number(pipeline, "sum(x) from kept"), number(pipeline, "count(*) from grown")) == (10, 0)
    assert (number(pipeline, "n from totals"), number(pipeline, "s from sums"), number(pipeline, "n from over")) == (4, 4, 0)
    # All that a modified view has goes to its outputs, and nothing is taken back; what an unmodified one has does not.
    assert written(tmp_path / "sums.csv") == sorted([*lines, "4,1"])
    assert written(tmp_path / "totals.csv") == before
    assert written(tmp_path / "late.csv") == []
    assert pipeline.output_connector_stats("sums", "out").metrics.transmitted_records == sent + 1
    assert pipeline.stats().global_metrics.total_processed_records == total
    assert pipeline.input_connector_stats("kept", "same").paused, "as it was left"
    assert pipeline.input_connector_stats("kept", "same").metrics.total_records == 2
    assert {endpoint.endpoint_name for endpoint in pipeline.stats().inputs} == {"kept.same", "kept.changed", "kept.new", "grown.in"}

    pipeline.resume()
    pipeline.resume_connector("kept", "same")
    pipeline.wait_for_completion(timeout_s=60)
    assert number(pipeline, "sum(x) from kept") == 10 + 5 + 6 + 7, "changed and new ones are read, and the others not again"
    assert (number(pipeline, "n from over"), number(pipeline, "count(*) from grown where note is null")) == (2, 2)
    balance = sum(int(line.rpartition(",")[2]) for line in written(tmp_path / "late.csv"))
    assert balance == 0, "only changes: what it has not sent is taken back"
    assert written(tmp_path / "late.csv")[-1] == "7,1"
    assert pipeline.stats().global_metrics.total_processed_records == total + 5
    pipeline.stop(force=True)


ENDLESS = """create materialized view v as
    select t.x, count(*) as n from t cross join range(100000000000000) r where r.id % 7 = 3 group by t.x;"""
PLAIN = "create materialized view v as select x, count(*) as n from t group by x;"
TABLE = """create table t (x int) with ('materialized' = 'true');
create materialized view total as select sum(x) as s from t;"""


def test_a_stop_anywhere_in_a_bootstrap_keeps_what_was_saved(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(TABLE)
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])
    pipeline.stop(force=False)
    (kept,) = pipeline.storage_status_details()["checkpoints"]

    def stopped_as_it_was() -> None:
        assert pipeline.status() == PipelineStatus.STOPPED
        assert pipeline.deployment_error() is None
        assert pipeline.storage_status_details()["checkpoints"] == [kept]

    pipeline.modify(sql=TABLE + ENDLESS)
    for force in (False, True):
        pipeline.start(timeout_s=START_S)
        assert pipeline.status() == PipelineStatus.AWAITINGAPPROVAL
        pipeline.stop(force=force, timeout_s=60)
        stopped_as_it_was()
    for concurrent in (False, True):
        status = PipelineStatus.CONCURRENTBOOTSTRAPPING if concurrent else PipelineStatus.BOOTSTRAPPING
        pipeline.start(BootstrapPolicy.ALLOW, wait=False, concurrent_bootstrap=concurrent)
        pipeline.wait_for_status(status, timeout=60)
        # What has not changed can be read, and nothing is taken.
        assert list(pipeline.query("select * from total")) == [{"s": 3}]
        metrics = pipeline.stats().global_metrics
        assert (metrics.bootstrap_in_progress, metrics.pipeline_complete, metrics.total_processed_records) == (True, False, 2)
        for statement in ("select * from v", "insert into t values (3)"):
            with pytest.raises(FelderaAPIError) as refused:
                list(pipeline.query(statement))
            assert (refused.value.status_code, refused.value.error_code) == (503, "BootstrapInProgress")
        pipeline.stop(force=True, timeout_s=60)
        stopped_as_it_was()

    pipeline.modify(sql=TABLE + PLAIN)
    pipeline.start(BootstrapPolicy.ALLOW, concurrent_bootstrap=True, timeout_s=START_S)
    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=60)
    pipeline.input_json("t", {"x": 1})
    assert list(pipeline.query("select * from v order by x")) == [{"x": 1, "n": 2}, {"x": 2, "n": 1}]
    # Nothing has been saved since: after a kill the change is decided about again.
    pipeline.stop(force=True)
    stopped_as_it_was()
    pipeline.start(timeout_s=START_S)
    assert pipeline.status() == PipelineStatus.AWAITINGAPPROVAL
    pipeline.approve()
    eventually(lambda: pipeline.status() == PipelineStatus.RUNNING)
    assert list(pipeline.query("select * from v order by x")) == [{"x": 1, "n": 1}, {"x": 2, "n": 1}]
    pipeline.stop(force=False)
    pipeline.start(BootstrapPolicy.REJECT, timeout_s=START_S)
    assert list(pipeline.query("select s from total")) == [{"s": 3}]
    pipeline.stop(force=True)
