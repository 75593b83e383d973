"""What each call does in each state: early and repeated starts, what may be edited when, and one event for each change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from feldera import FelderaClient, Pipeline, PipelineBuilder
from feldera.enums import BootstrapPolicy, PipelineStatus, StorageStatus
from feldera.rest.errors import FelderaAPIError
from feldera.runtime_config import RuntimeConfig

pytestmark = pytest.mark.integration

SQL = "create table t (x int) with ('materialized' = 'true');"
Status = tuple[str, str, str | None, str]
LIFE: list[Status] = [
    ("Stopped", "Provisioned", None, "Cleared"),
    ("Stopped", "Provisioned", None, "InUse"),
    ("Provisioning", "Provisioned", None, "InUse"),
    ("Provisioned", "Provisioned", "Initializing", "InUse"),
    ("Provisioned", "Provisioned", "Running", "InUse"),
    ("Provisioned", "Provisioned", "Paused", "InUse"),
    ("Provisioned", "Provisioned", "Running", "InUse"),
    ("Provisioned", "Stopped", "Running", "InUse"),
    ("Stopping", "Stopped", None, "InUse"),
    ("Stopped", "Stopped", None, "InUse"),
    ("Stopped", "Stopped", None, "Clearing"),
    ("Stopped", "Stopped", None, "Cleared"),
]


def statuses(pipeline: Pipeline) -> list[Status]:
    """The statuses of resources, runtime and storage since the program was compiled, oldest first."""
    names = ("deployment_resources_status", "deployment_resources_desired_status", "deployment_runtime_status", "storage_status")
    events = [event for event in reversed(pipeline.events()) if event["program_status"] == "Success"][1:]
    return [(event[names[0]], event[names[1]], event[names[2]], event[names[3]]) for event in events]


def refused(call: Callable[[], Any]) -> tuple[int, str]:
    """The status and the code with which the service refuses a call."""
    with pytest.raises(FelderaAPIError) as caught:
        call()
    return caught.value.status_code, caught.value.error_code


def test_every_change_is_one_event_and_repeated_calls_are_none(create: Callable[..., Pipeline]) -> None:
    pipeline = create(SQL)
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW)
    # The same start again is no change, and another one is refused.
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW)
    assert refused(lambda: pipeline.start(bootstrap_policy=BootstrapPolicy.REJECT)) == (
        400,
        "BootstrapPolicyImmutableUnlessStopped",
    )
    assert refused(lambda: pipeline.start_paused(bootstrap_policy=BootstrapPolicy.ALLOW)) == (400, "InitialImmutableUnlessStopped")
    assert pipeline.bootstrap_policy() == BootstrapPolicy.ALLOW

    # While it runs only what describes it may be changed.
    version = pipeline.version()
    pipeline.modify(description="a new one", tags=["a"])
    assert (pipeline.description(), pipeline.tags(), pipeline.version()) == ("a new one", ["a"], version)
    assert refused(lambda: pipeline.modify(sql=SQL + "\n")) == (400, "UpdateRestrictedToStopped")
    for call in (pipeline.update_runtime, lambda: pipeline.client.clear_storage(pipeline.name)):
        assert refused(call)[1] in {"UpdateRestrictedToStopped", "StorageStatusImmutableUnlessStopped"}
    assert refused(pipeline.delete) == (400, "DeleteRestrictedToFullyStopped")
    assert refused(pipeline.activate) == (400, "InvalidTransition")

    pipeline.pause()
    pipeline.pause()
    pipeline.resume()
    pipeline.stop(force=True)
    pipeline.stop(force=True)
    assert pipeline.bootstrap_policy() is None
    assert refused(pipeline.delete) == (400, "DeleteRestrictedToClearedStorage")

    # What is stored depends on some fields.
    with pytest.raises(FelderaAPIError) as caught:
        pipeline.set_runtime_config(RuntimeConfig(workers=3))
    assert (caught.value.error_code, caught.value.details["not_allowed"]) == (
        "EditRestrictedToClearedStorage",
        ["`runtime_config.workers`"],
    )
    pipeline.set_runtime_config(RuntimeConfig(workers=1, logging="debug"))
    assert pipeline.program_version() == 1
    pipeline.clear_storage()
    pipeline.clear_storage()
    assert (pipeline.storage_status(), pipeline.storage_status_details()) == (StorageStatus.CLEARED, None)
    pipeline.set_runtime_config(RuntimeConfig(workers=3))
    assert statuses(pipeline) == LIFE


def test_an_early_start_waits_for_the_compiler(foreign: FelderaClient, pipeline_name: str) -> None:
    pipeline = PipelineBuilder(foreign, pipeline_name, SQL).create(wait=False)
    pipeline.start(timeout_s=60)
    assert pipeline.status() == PipelineStatus.RUNNING
    pipeline.stop(force=True)
    pipeline.delete(clear_storage=True)

    # One that turns out not to compile gives the start up; who comes later is told at once.
    pipeline = PipelineBuilder(foreign, pipeline_name, "create view v as select * from nowhere;").create(wait=False)
    with pytest.raises((RuntimeError, FelderaAPIError)):
        pipeline.start(timeout_s=60)
    assert pipeline.status() == PipelineStatus.STOPPED
    assert refused(pipeline.start) == (400, "CannotStartWithCompilationError")
