"""Connectors while a pipeline runs: who starts when, pausing, completion tokens, what they count; every name that programs use."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
import requests
from feldera import Pipeline
from feldera.enums import CompletionTokenStatus
from feldera.rest.errors import FelderaAPIError

from airflow_pipelines.connectors.planned_transports import PLANNED_TRANSPORTS
from airflow_pipelines.program.connectors import ConnectorDirection

pytestmark = pytest.mark.integration

Deploy = Callable[..., Pipeline]


def declared(*connectors: dict[str, Any]) -> str:
    return json.dumps(connectors).replace("'", "''")


def rows(limit: int, **options: Any) -> dict[str, Any]:
    return {"transport": {"name": "datagen", "config": {"plan": [{"limit": limit}]}}, **options}


def eventually(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


OUT = {"name": "out", "transport": {"name": "null_output"}}
PROGRAM = f"""
create table t (id bigint) with ('materialized' = 'true', 'connectors' = '{
    declared(
        rows(5, name="first", paused=True, labels=["history"]),
        rows(7, name="second", start_after=["history"], labels=["now"]),
        rows(2, start_after="now"),
    )
}');
create table "T2" (id bigint) with ('connectors' = '{declared(rows(3, name="Own", paused=True))}');
create materialized view v with ('connectors' = '{declared(OUT)}') as
    select id from t union all select id from "T2";
"""


def test_inputs_start_in_order_and_by_hand(deploy: Deploy, served_url: str) -> None:
    pipeline = deploy(PROGRAM)
    url = f"{served_url}/v0/pipelines/{pipeline.name}"
    names = ("first", "second", "unnamed-2")
    assert [pipeline.input_connector_stats("T", name).paused for name in names] == [True, True, True]
    token = pipeline.generate_completion_token("t", "first")
    pipeline.wait_for_token(token)
    pipeline.resume_connector("t", "first")
    eventually(lambda: pipeline.input_connector_stats("t", "unnamed-2").metrics.end_of_input)
    for name, count in zip(names, (5, 7, 2), strict=True):
        stats = pipeline.input_connector_stats("t", name)
        assert (stats.metrics.total_records, stats.metrics.num_parse_errors, stats.fatal_error) == (count, 0, None)
        assert not stats.paused
        token = pipeline.generate_completion_token("t", name)
        pipeline.wait_for_token(token)
        assert pipeline.completion_token_status(token) is CompletionTokenStatus.COMPLETE
    stats = pipeline.stats().global_metrics
    assert not stats.pipeline_complete, "one input has not started"
    assert (stats.total_completed_records, stats.buffered_input_records) == (14, 0)
    out = pipeline.output_connector_stats("v", "out").metrics
    assert (out.transmitted_records, out.total_processed_input_records) == (14, 14)

    # Names of connectors have a case; names of tables where they were quoted.
    pipeline.resume_connector('"T2"', "Own")
    pipeline.wait_for_completion(timeout_s=60)
    assert pipeline.input_connector_stats('"T2"', "Own").metrics.total_records == 3
    for table, connector in (("t", "First"), ("t2", "Own"), ("T2", "Own"), ('"t2"', "Own"), ("nope", "first")):
        for call in (pipeline.pause_connector, pipeline.input_connector_stats, pipeline.generate_completion_token):
            with pytest.raises(FelderaAPIError) as refused:
                call(quote(table), connector)
            assert refused.value.status_code == 404
    with pytest.raises(FelderaAPIError) as unknown:
        pipeline.output_connector_stats("v", "nope")
    assert (unknown.value.status_code, unknown.value.error_code) == (404, "UnknownOutputEndpoint")
    answered = requests.post(f"{url}/tables/t/connectors/first/stop", timeout=10)
    assert (answered.status_code, answered.json()["error_code"]) == (400, "InvalidConnectorAction")
    assert requests.post(f"{url}/tables/t/connectors/first/pause", timeout=10).content == b""

    # What is paused by hand is so after a restart, what has ended stays ended, and tokens are of one run.
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=60)
    assert [pipeline.input_connector_stats("t", name).paused for name in names] == [True, False, False]
    eventually(lambda: pipeline.input_connector_stats("t", "second").metrics.end_of_input)
    assert pipeline.stats().global_metrics.total_processed_records == 17
    assert list(pipeline.query("select count(*) as n from t")) == [{"n": 14}]
    for text, status in ((token, 410), ("nonsense", 400), ("e30=", 400)):
        answered = requests.get(f"{url}/completion_status", {"token": text}, timeout=10)
        assert answered.status_code == status, answered.text


@pytest.mark.core
def test_metrics_of_connectors(deploy: Deploy) -> None:
    pipeline = deploy(
        f"create table t (id bigint) with ('connectors' = '{declared(rows(5, name='c'))}');"
        f"create view v with ('connectors' = '{declared(OUT)}') as select * from t;"
    )
    pipeline.wait_for_completion(timeout_s=60)
    found = {metric["key"]: metric for metric in pipeline.metrics(format="json")}
    for key, kind, endpoint, value in (
        ("input_connector_records_total", "counter", "t.c", 5),
        ("input_connector_bytes_total", "counter", "t.c", 40),
        ("input_connector_buffered_records", "gauge", "t.c", 0),
        ("input_connector_parse_errors_total", "counter", "t.c", 0),
        ("output_connector_records_total", "counter", "v.out", 5),
        ("output_connector_buffered_records", "gauge", "v.out", 0),
        ("output_connector_encode_errors_total", "counter", "v.out", 0),
    ):
        metric = found[key]
        assert (metric["type"], bool(metric["description"])) == (kind, True)
        assert metric["values"] == [{"labels": {"pipeline_name": pipeline.name, "endpoint": endpoint}, "value": value}]
    assert "# TYPE input_connector_bytes_total counter" in pipeline.metrics()


def test_every_transport_that_programs_name_compiles(create: Deploy) -> None:
    """With options and formats that this release knows nothing of."""
    inputs, outputs = (
        [
            {
                "name": name,
                "transport": {"name": name, "config": {"of_its_own": [1]}},
                "format": {"name": "avro", "config": {"x": 1}},
            }
            for name, planned in PLANNED_TRANSPORTS.items()
            if planned.direction is direction
        ]
        for direction in (ConnectorDirection.INPUT, ConnectorDirection.OUTPUT)
    )
    pipeline = create(
        f"create table t (id bigint) with ('connectors' = '{declared(*inputs)}');"
        f"create view v with ('connectors' = '{declared(*outputs)}') as select * from t;"
    )
    info = pipeline.program_info()
    assert set(info["input_connectors"]) == {f"t.{connector['name']}" for connector in inputs}
    assert set(info["output_connectors"]) == {f"v.{connector['name']}" for connector in outputs}
    with pytest.raises(RuntimeError, match="is not part of this release"):
        pipeline.start(timeout_s=60)
