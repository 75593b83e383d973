"""When a pipeline is complete, and when it is idle: ends of inputs, requests, malformed rows, ticks of the clock, transactions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests

from tests.contract_client.conftest import START_S, Sdk

pytestmark = pytest.mark.integration


def program(path: Path) -> str:
    followed = {
        "name": "followed",
        "paused": True,
        "transport": {"name": "file_input", "config": {"path": str(path), "follow": True}},
        "format": {"name": "csv"},
    }
    made = {"name": "made", "transport": {"name": "datagen", "config": {"plan": [{"limit": 7}], "transaction_size": 3}}}
    return f"""
create table t (x int) with ('materialized' = 'true', 'connectors' = '{json.dumps([made])}');
create table endless (x int) with ('materialized' = 'true', 'connectors' = '{json.dumps([followed])}');
create materialized view total as select count(*) as n, sum(x) as s from t;
-- It has other contents with each tick.
create materialized view clocked as select x, now() as at_time from t;
"""


def test_completion_and_idleness(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "followed.csv").write_text("1\n")
    # Without the connector that never ends.
    text = program(tmp_path / "followed.csv")
    pipeline = sdk.builder(
        text.replace("create table endless", "create table gone").replace('"follow": true', '"follow": false')
    ).create()
    pipeline.start_paused(timeout_s=START_S)
    assert not pipeline.is_complete(), "a connector has not ended"
    pipeline.resume()
    pipeline.resume_connector("gone", "followed")
    pipeline.wait_for_completion(timeout_s=60)
    assert pipeline.is_complete()
    assert list(pipeline.query("select n, s from total")) == [{"n": 7, "s": 21}]
    metrics = pipeline.stats().global_metrics
    counted = (metrics.total_input_records, metrics.total_processed_records, metrics.total_completed_records)
    assert counted == (8, 8, 8)

    # Rows of requests count until they are processed, and inputs of requests never keep a pipeline from being complete.
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])
    assert pipeline.is_complete()
    # Malformed rows are in no total. Neither they nor ticks keep it from being idle.
    url = f"{sdk.url}/v0/pipelines/{sdk.name}/ingress/t"
    wrong = requests.post(url, params={"format": "json", "update_format": "raw"}, data='{"x": "no"}', timeout=30)
    assert wrong.status_code == 400
    steps = pipeline.stats().global_metrics.total_completed_steps
    pipeline.wait_for_idle(idle_interval_s=1.5, timeout_s=60)
    metrics = pipeline.stats().global_metrics
    assert metrics.total_completed_steps > steps, "it has ticked"
    assert metrics.total_input_records == metrics.total_processed_records == 10
    with pytest.raises(ValueError, match="larger than timeout"):
        pipeline.wait_for_idle(idle_interval_s=5, timeout_s=1)

    # A transaction has processed what it has collected, and it is complete with its commit.
    pipeline.start_transaction()
    pipeline.input_json("t", {"x": 3}, wait=False)
    pipeline.wait_for_idle(idle_interval_s=0.5, timeout_s=60)
    assert not pipeline.is_complete()
    assert list(pipeline.query("select n from total")) == [{"n": 9}]
    pipeline.commit_transaction(timeout_s=60)
    pipeline.wait_for_completion(timeout_s=60)
    assert list(pipeline.query("select n from total")) == [{"n": 10}]

    # An input that is followed never ends.
    pipeline.stop(force=False)
    pipeline.modify(sql=text)
    pipeline.start(bootstrap_policy=sdk.module.BootstrapPolicy.ALLOW, timeout_s=START_S)
    pipeline.resume_connector("endless", "followed")
    pipeline.wait_for_idle(idle_interval_s=0.5, timeout_s=60)
    assert list(pipeline.query("select x from endless")) == [{"x": 1}]
    assert not pipeline.is_complete()
    pipeline.stop(force=True)
    with pytest.raises((RuntimeError, sdk.api_error)):
        pipeline.wait_for_completion(timeout_s=10)


@pytest.mark.core("feldera")
def test_an_output_that_has_failed_is_told_to_those_who_wait(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    output = {"transport": {"name": "file_output", "config": {"path": str(tmp_path / "taken")}}, "format": {"name": "csv"}}
    views = f"create materialized view v with ('connectors' = '{json.dumps([output])}') as select x from t;"
    pipeline = sdk.builder(f"create table t (x int); {views}").create()
    pipeline.start(timeout_s=START_S)
    assert pipeline.is_complete(), "there is nothing to deliver"
    assert sdk.refused(lambda: pipeline.input_json("t", [{"x": 1}], wait=True)) == (410, "OutputFailed")
    assert not pipeline.is_complete()
    assert list(pipeline.query("select x from v")) == [{"x": 1}], "the rows are there"
