"""Time series, profiles, graphs, support bundles, events of the service, and what there is nothing of here."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests
from feldera import FelderaClient, Pipeline
from feldera.rest.errors import FelderaAPIError
from feldera.runtime_config import Storage

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table t (x int) with ('materialized' = 'true');
create materialized view v as select x % 2 as odd, count(*) as n from t group by x % 2;
"""
EDGES = [{"from": "relation:t", "to": "relation:v"}]
WITHOUT_HOST = {"logs", "pipeline_config", "system_config", "dataflow_graph", "pipeline_events"}


@pytest.fixture
def get(foreign: FelderaClient, pipeline_name: str) -> Callable[..., requests.Response]:
    """GET an endpoint of this test's pipeline for which the client has no method."""

    def answered(tail: str, **options: Any) -> requests.Response:
        return requests.get(f"{foreign.config.url}/v0/pipelines/{pipeline_name}/{tail}", timeout=60, **options)

    return answered


def test_looking_into_a_pipeline(
    foreign: FelderaClient, deploy: Callable[..., Pipeline], get: Callable[..., requests.Response], tmp_path: Path
) -> None:
    sync = {"backend": {"name": "file", "config": {"sync": {"bucket": str(tmp_path / "bucket")}}}}
    pipeline = deploy(SQL, storage=Storage(config=sync))
    pipeline.input_json("t", [{"x": 1}, {"x": 2}, {"x": 3}])

    eventually(lambda: any(sample["r"] == 3 for sample in get("time_series").json()["samples"]))
    series = get("time_series").json()
    assert set(series) == {"now", "samples"}
    assert all(set(sample) == {"t", "r", "m", "s"} and sample["m"] > 0 for sample in series["samples"])
    with get("time_series_stream", stream=True) as stream:
        lines = stream.iter_lines()
        told = [json.loads(next(lines)) for _ in range(len(series["samples"]) + 1)]
    assert [sample["t"] for sample in told] == sorted({sample["t"] for sample in told})

    eventually(lambda: any(get("activity").json()["relations"].get("v", [])))
    activity = get("activity").json()
    ends = [activity["begin"], *activity["t"]]
    taken = sum(rate * (end - begin) / 1000 for rate, (begin, end) in zip(activity["rows_per_second"], pairwise(ends), strict=True))
    assert taken == pytest.approx(3, abs=0.1)
    (ingress,) = activity["inputs"]
    assert ingress.startswith("t.api-ingress-")
    assert [max(activity[group][name]) > 0 for group, name in (("relations", "t"), ("views_ms", "v"))] == [True, True]
    assert {len(series) for series in (activity["t"], activity["busy"], activity["inputs"][ingress])} == {len(activity["t"])}
    assert get(f"activity?since={activity['t'][-1]}").json()["t"] in ([], [pytest.approx(activity["t"][-1] + 2000, abs=1500)])
    assert get("steps").json()[-1]["table_rows"] == {"t": 3}

    application = get("spark_application").json()
    assert application["id"].startswith("local-")
    assert application["web_url"] is None, "there is none unless it is asked for"

    answers = [get("circuit_json_profile"), get("circuit_profile")]
    assert [answer.headers.get("transfer-encoding") for answer in answers] == ["chunked"] * 2
    profile = answers[0].json()
    (operator,) = [each for each in profile["operators"] if each["relation"] == "v"]
    assert (operator["rows_in"], operator["rows_out"], operator["kept_rows"]) == (3, 2, 2)
    assert any("Aggregate" in plan["physical_plan"] for plan in profile["plans"])
    with zipfile.ZipFile(io.BytesIO(answers[1].content)) as file:
        assert {"profile.json", "dataflow.json"} <= set(file.namelist())
    graph = get("dataflow_graph").json()
    assert (graph["mir"]["v"]["view"], graph["edges"]) == ("v", EDGES)
    kept = pipeline.program_info()["dataflow"]
    assert (kept["edges"], kept["nodes"], kept["mir"]) == (EDGES, graph["nodes"], {})

    pipeline.checkpoint(wait=True)
    assert pipeline.remote_checkpoints() == []
    uuid = pipeline.sync_checkpoint(wait=True)
    assert [str(each["uuid"]) for each in pipeline.remote_checkpoints()] == [uuid]
    owner = json.loads((tmp_path / "bucket" / "owner.json").read_text())
    assert owner == {"owner": f"pipeline-{pipeline.id()}", "pipeline_name": pipeline.name}

    shown = glance(foreign, pipeline.name)
    assert (shown["status"], shown["sync"]["uuid"], shown["figures_problem"]) == ("Running", uuid, None)
    assert (shown["figures"]["processed_records"], shown["figures"]["connector_errors"]) == (3, 0)

    pipeline.rebalance()
    pipeline.input_json("t", {"x": 4})
    pipeline.start_compaction()
    assert list(pipeline.query("select n from v where odd = 0")) == [{"n": 2}]
    for ask in (pipeline.start_samply_profile, pipeline.get_samply_profile):
        with pytest.raises(FelderaAPIError) as refused:
            ask()
        assert (refused.value.status_code, refused.value.error_code) == (501, "NotSupported")
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.testing_force_update_platform_version("0.0.1")
    assert refused.value.error_code == "UnsupportedPipelineAction"

    # A bundle has what there is now, and what was collected before.
    metadata, names = contents(pipeline.support_bundle())
    (collection,) = metadata["collections"]
    assert set(collection["collected"]) == WITHOUT_HOST | {"circuit_profile", "metrics", "stats"}
    assert "circuit_profile" in collection["skipped"]["heap_profile"]
    assert f"{collection['directory']}/circuit_profile.zip" in names
    assert f"{collection['directory']}/logs.txt" in names
    pipeline.stop(force=True)
    # What was made of it is known without its host.
    stopped = glance(foreign, pipeline.name)
    assert (stopped["status"], stopped["figures"], stopped["sync"]) == ("Stopped", None, shown["sync"])
    assert (stopped["checkpoint"]["uuid"], stopped["checkpoint"]["at"] <= stopped["sync"]["at"] <= stopped["now"]) == (uuid, True)
    metadata, _ = contents(pipeline.support_bundle(circuit_profile=False))
    newest, before = metadata["collections"]
    assert before == collection
    assert set(newest["collected"]) == WITHOUT_HOST
    assert set(newest["failed"]) == {"metrics", "stats"}
    for _ in range(3):
        pipeline.support_bundle(dataflow_graph=False)
    metadata, names = contents(pipeline.support_bundle(collect=False, logs=False))
    assert len(metadata["collections"]) == 3
    assert not any(name.endswith("logs.txt") for name in names)
    assert len(contents(pipeline.support_bundle(collect=False, limit=1))[0]["collections"]) == 1
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.support_bundle(limit=0)
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidSupportBundleParameter")

    version = pipeline.program_version()
    pipeline.update_runtime()
    assert pipeline.program_version() == version


def glance(foreign: FelderaClient, name: str) -> dict[str, Any]:
    """What the list of all pipelines shows of one."""
    answer = requests.get(f"{foreign.config.url}/v0/overview", timeout=60).json()
    (shown,) = [each for each in answer["pipelines"] if each["name"] == name]
    return {**shown, "now": answer["now"]}


@pytest.mark.core
def test_events_of_the_service(foreign: FelderaClient) -> None:
    newest = foreign.get_cluster_events()[0]
    assert newest["all_healthy"] is True
    parts = ("api", "compiler", "runner")
    assert newest.keys() == {"id", "recorded_at", "all_healthy", *(f"{part}_status" for part in parts)}
    assert foreign.get_cluster_event("latest") == newest == foreign.get_cluster_event(newest["id"])
    whole = foreign.get_cluster_event("latest", selector="all")
    assert whole.keys() == newest.keys() | {f"{part}_{of}_info" for part in parts for of in ("self", "resources")}
    assert whole["compiler_self_info"] == "The shared host is up"
    assert whole["compiler_resources_info"].startswith("Hosts: 1 shared on ")
    with pytest.raises(FelderaAPIError) as unknown:
        foreign.get_cluster_event("01900000-0000-7000-8000-000000000000")
    assert (unknown.value.status_code, unknown.value.error_code) == (404, "UnknownClusterMonitorEvent")


def contents(bundle: bytes) -> tuple[dict[str, Any], list[str]]:
    """The metadata of a support bundle, and the names of its files."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as file:
        assert "metadata.txt" in file.namelist()
        return json.loads(file.read("metadata.json")), file.namelist()
