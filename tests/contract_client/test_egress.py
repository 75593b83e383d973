"""Listening, and what the statistics say of outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from feldera import FelderaClient, Pipeline
from feldera.enums import BootstrapPolicy

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table t (x int) with ('materialized' = 'true');
create materialized view v with ('connectors' = '[{{
    "name": "out",
    "transport": {{"name": "file_output", "config": {{"path": "{path}"}}}},
    "format": {{"name": "csv"}}
}}]') as select x + {added} as y from t;
create materialized view w as select count(*) as n from t;
"""


@pytest.fixture
def opened(foreign: FelderaClient, pipeline_name: str) -> Callable[..., requests.Response]:
    """Open an egress stream of this test's pipeline."""

    def open_stream(view: str, **params: Any) -> requests.Response:
        url = f"{foreign.config.url}/v0/pipelines/{pipeline_name}/egress/{view}"
        return requests.post(url, params={"format": "json", "array": "true", **params}, stream=True, timeout=30)

    return open_stream


@pytest.mark.core
def test_streams_and_the_statistics_of_outputs(
    deploy: Callable[..., Pipeline], opened: Callable[..., requests.Response], tmp_path: Path
) -> None:
    path = tmp_path / "out.csv"
    pipeline = deploy(SQL.format(path=path, added=1))
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])

    # What opens a stream has no number and no data, and says whether a snapshot follows.
    with opened("v") as stream, opened("v", send_snapshot="true") as snapshots, opened("w", format="csv") as lines:
        chunks, snapshot, texts = (each.iter_lines() for each in (stream, snapshots, lines))
        assert json.loads(next(chunks)) == {"snapshot": False, "json_data": []}
        assert json.loads(next(snapshot)) == {"snapshot": True, "json_data": []}
        assert json.loads(next(texts)) == {"snapshot": False, "text_data": ""}
        contents = json.loads(next(snapshot))
        assert (contents["sequence_number"], contents["snapshot"]) == (0, True)
        assert contents["json_data"] == [{"insert": {"y": 2}}, {"insert": {"y": 3}}]

        # Listeners are outputs like any other.
        listeners = [output for output in pipeline.stats().outputs if output.endpoint_name.startswith("v.api-")]
        assert [listener.config["stream"] for listener in listeners] == ["v", "v"]
        pipeline.input_json("t", {"x": 3})
        assert json.loads(next(chunks)) == {"sequence_number": 0, "snapshot": False, "json_data": [{"insert": {"y": 4}}]}
        assert json.loads(next(texts))["text_data"] == "2,-1\n3,1\n"
        name = listeners[0].endpoint_name.partition(".")[2]
        assert pipeline.output_connector_stats("v", name).metrics.transmitted_records == 1
        assert_all_processed(pipeline, outputs=4)

    eventually(lambda: len(pipeline.stats().outputs) == 1)
    assert path.read_text().splitlines() == ["2,1", "3,1", "4,1"]


def test_the_changes_of_a_table_without_contents(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy("create table log (x int); create view v as select x + 1 as y from log;")
    table, view = pipeline.listen("log"), pipeline.listen("v")
    pipeline.input_json("log", [{"x": 1}, {"x": 2}], wait=True)
    for listener, name, values in ((table, "x", [1, 2]), (view, "y", [2, 3])):
        eventually(lambda listener=listener: len(listener.to_pandas(clear_buffer=False)) == 2)
        assert sorted(listener.to_pandas()[name]) == values


def test_progress_of_outputs_after_resume_and_bootstrap(deploy: Callable[..., Pipeline], tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    pipeline = deploy(SQL.format(path=path, added=1))
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])
    before = assert_all_processed(pipeline)
    pipeline.stop(force=False)
    pipeline.start()
    assert assert_all_processed(pipeline) == before
    pipeline.stop(force=False)
    pipeline.modify(sql=SQL.format(path=path, added=10))
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, silent_bootstrap=True)
    records, steps = assert_all_processed(pipeline)
    assert (records, steps > before[1]) == (2, True)
    # Silently means that the output has got nothing.
    assert pipeline.output_connector_stats("v", "out").metrics.transmitted_records == 2


def assert_all_processed(pipeline: Pipeline, outputs: int = 1) -> tuple[int, int]:
    """Every output has processed all records and all steps; gives how many there were."""
    stats = pipeline.stats()
    done = (stats.global_metrics.total_completed_records, stats.global_metrics.total_completed_steps)
    progress = [(o.metrics.total_processed_input_records, o.metrics.total_processed_steps) for o in stats.outputs]
    assert progress == [done] * outputs
    return done
