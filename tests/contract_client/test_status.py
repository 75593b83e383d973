"""What a pipeline says of itself: events, errors, logs, metrics, descriptions of programs, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import requests
from feldera import FelderaClient, Pipeline
from feldera.enums import PipelineStatus, StorageStatus
from feldera.rest.errors import FelderaAPIError

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table t (x int) with ('materialized' = 'true');
create materialized view v as select 100 / x as y from t;
create materialized view clock as select now() as t;
"""
DRIVEN = {
    "dev_tweaks": {"now_http_driven": True, "now_offset": "1969-07-20T20:17:40Z"},
    "clock_timezone_offset": "+02:00",
    "max_rss_mb": 512,
}
COMPONENTS = (
    "program_status", "deployment_resources_status", "deployment_resources_desired_status", "deployment_runtime_status",
    "storage_status", "deployment_has_error",
)  # fmt: skip
COMPILED = [
    ("Pending", "Stopped", "Stopped", None, "Cleared", False),
    ("CompilingSql", "Stopped", "Stopped", None, "Cleared", False),
    ("SqlCompiled", "Stopped", "Stopped", None, "Cleared", False),
    ("CompilingRust", "Stopped", "Stopped", None, "Cleared", False),
    ("Success", "Stopped", "Stopped", None, "Cleared", False),
]
STARTED = [
    ("Success", "Stopped", "Provisioned", None, "Cleared", False),
    ("Success", "Stopped", "Provisioned", None, "InUse", False),
    ("Success", "Provisioning", "Provisioned", None, "InUse", False),
    ("Success", "Provisioned", "Provisioned", "Initializing", "InUse", False),
    ("Success", "Provisioned", "Provisioned", "Running", "InUse", False),
]
FAILED = [
    ("Success", "Stopping", "Stopped", None, "InUse", True),
    ("Success", "Stopped", "Stopped", None, "InUse", True),
]


@pytest.fixture
def descriptor(foreign: FelderaClient, pipeline_name: str) -> Callable[[str], dict[str, Any]]:
    """The fields of this test's pipeline, as the service answers them for a selector."""

    def read(selector: str) -> dict[str, Any]:
        url = f"{foreign.config.url}/v0/pipelines/{pipeline_name}"
        answer: dict[str, Any] = requests.get(url, params={"selector": selector}, timeout=30).json()
        return answer

    return read


def test_from_creation_to_a_failed_step(
    foreign: FelderaClient, deploy: Callable[..., Pipeline], descriptor: Callable[[str], dict[str, Any]]
) -> None:
    pipeline = deploy(SQL, **DRIVEN)

    # A driven clock stands at the time that was given, plus the offset of the zone, until it is moved.
    assert [row["t"] for row in pipeline.query("select cast(t as string) as t from clock")] == ["1969-07-20 22:17:40"]
    assert pipeline.advance_clock(1500)["now"] == "1969-07-20T22:17:41.500Z"
    assert [row["t"] for row in pipeline.query("select cast(t as string) as t from clock")] == ["1969-07-20 22:17:41.5"]

    metrics = {metric["key"]: metric for metric in pipeline.metrics(format="json")}
    assert metrics["max_rss_bytes"]["values"][0]["value"] == 512_000_000
    assert metrics["records_processed_total"]["type"] == "counter"
    assert all(set(metric) == {"key", "type", "description", "values"} for metric in metrics.values())
    assert "# TYPE records_processed_total counter" in pipeline.metrics()
    of_all = requests.get(f"{foreign.config.url}/v0/metrics", timeout=30).text
    assert f'records_processed_total{{pipeline_name="{pipeline.name}"}} 0.0' in of_all
    assert of_all.count("# TYPE records_processed_total counter") == 1

    # Errors of connectors are in the status within seconds, which is no change that clients must look at.
    version = descriptor("status")["refresh_version"]
    for _ in range(3):
        with pytest.raises(FelderaAPIError):
            pipeline.input_json("t", {"x": "no number"})
    eventually(lambda: descriptor("status_with_connectors")["connectors"] == {"num_errors": 3}, timeout_s=5)
    assert descriptor("status")["deployment_runtime_status_details"] == {"connector_stats": {"num_errors": 3}}
    assert descriptor("status")["refresh_version"] == version

    logs = pipeline.logs()
    assert next(logs).startswith("Fresh start of pipeline log")
    logs.close()

    # A failed step: the error comes with Stopping, in one event.
    pipeline.input_json("t", {"x": 0}, wait=False)
    pipeline.wait_for_status(PipelineStatus.STOPPED, timeout=60)
    assert pipeline.deployment_error()["error_code"] == "RuntimeError.WorkerPanic"
    events = [pipeline.event(event["event_id"], selector="all") for event in reversed(pipeline.events())]
    assert [tuple(event[key] for key in COMPONENTS) for event in events] == COMPILED + STARTED + FAILED
    for event in events:
        assert (event["deployment_runtime_status_details"] is None) == (event["deployment_runtime_status"] is None)

    with pytest.raises(FelderaAPIError) as refused:
        pipeline.start(dismiss_error=False)
    assert refused.value.error_code == "CannotStartWithUndismissedError"
    pipeline.dismiss_error()
    assert not pipeline.deployment_error()
    assert pipeline.storage_status() == StorageStatus.INUSE


@pytest.mark.core
def test_the_description_of_a_program_has_its_dataflow_when_asked(foreign: FelderaClient) -> None:
    assert foreign.validate_program(SQL)["Success"]["program_info"]["dataflow"] is None
    nodes = foreign.validate_program(SQL, ir=True)["Success"]["program_info"]["dataflow"]["mir"]
    assert (nodes["t"]["operation"], nodes["t"]["table"]) == ("source", "t")
    assert (nodes["v"]["view"], nodes["v"]["inputs"]) == ("v", [{"node": "t", "output": 0}])


def test_the_version_moves_sparingly(deploy: Callable[..., Pipeline], descriptor: Callable[[str], dict[str, Any]]) -> None:
    pipeline = deploy(SQL)
    started = descriptor("status")["refresh_version"]
    assert started <= 10
    until = time.monotonic() + 2
    while time.monotonic() < until:
        pipeline.input_json("t", {"x": 1})
    assert descriptor("status")["refresh_version"] == started
