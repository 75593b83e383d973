"""How long each field of a descriptor has a value, what moves the counters, and which errors a start may end with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import requests
from feldera import FelderaClient, Pipeline, PipelineBuilder
from feldera.enums import ProgramStatus
from feldera.rest.errors import FelderaAPIError

from tests.contract_client.conftest import START_S, Sdk
from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = "create table t (x int) with ('materialized' = 'true');\ncreate materialized view v as select sum(x) as s from t;"
MORE = SQL + "\ncreate materialized view w as select x + 1 as y from t;"
STATUS_KEYS = """id name description tags created_at version platform_version program_config program_version program_status
    program_status_since deployment_status deployment_status_since deployment_desired_status deployment_desired_status_since
    deployment_error refresh_version storage_status storage_status_details deployment_resources_status
    deployment_resources_status_since deployment_resources_desired_status deployment_resources_desired_status_since
    deployment_runtime_status deployment_runtime_status_details deployment_runtime_status_since deployment_runtime_desired_status
    deployment_runtime_desired_status_since deployment_initial deployment_id bootstrap_policy silent_bootstrap
    concurrent_bootstrap"""
ALL_KEYS = (
    f"{STATUS_KEYS} runtime_config program_code udf_rust udf_toml program_error program_info deployment_resources_status_details"
)
OF_A_START = ("deployment_id", "deployment_initial", "bootstrap_policy", "silent_bootstrap", "concurrent_bootstrap")


def versions(fields: dict[str, Any]) -> tuple[int, int, int]:
    return fields["version"], fields["program_version"], fields["refresh_version"]


def latest(fields: dict[str, Any], *names: str) -> datetime:
    return max(datetime.fromisoformat(fields[name]) for name in names if fields[name])


def test_from_creation_to_deletion(sdk: Sdk) -> None:
    pipeline = sdk.builder(SQL).create()
    made = sdk.fields()
    assert made.keys() == set(ALL_KEYS.split())
    assert sdk.fields("status").keys() == set(STATUS_KEYS.split())
    assert sdk.fields("status_with_connectors").keys() == {*STATUS_KEYS.split(), "connectors"}
    assert versions(made) == (1, 1, 3)
    assert [made[name] for name in (*OF_A_START, "storage_status_details", "deployment_runtime_status")] == [None] * 7
    assert made["program_error"]["sql_compilation"]["exit_code"] == made["program_error"]["rust_compilation"]["exit_code"] == 0
    assert (made["deployment_status"], made["deployment_desired_status"]) == ("Stopped", "Stopped")

    # What describes it counts for nothing; what it is made of does, and a program is compiled anew.
    url = f"{sdk.url}/v0/pipelines/{sdk.name}"
    pipeline.modify(description="what it is", tags=["a", "b"])
    assert versions(sdk.fields()) == (1, 1, 3)
    assert requests.patch(url, json={"program_code": SQL}, timeout=30).json()["version"] == 1
    config = pipeline.runtime_config()
    config.logging = "debug"
    pipeline.set_runtime_config(config)
    assert versions(sdk.fields()) == (2, 1, 4)
    pipeline.modify(sql=MORE)
    assert sdk.fields()["program_version"] == 2
    # An early start: the program may still be compiled.
    pipeline.start(timeout_s=START_S)
    assert (sdk.fields()["version"], pipeline.program_version(), pipeline.version()) == (3, 2, 3)
    assert pipeline.description() == "what it is"
    assert pipeline.tags() == ["a", "b"]

    running = sdk.fields()
    assert running["deployment_id"] is not None
    assert [running[name] for name in OF_A_START[1:]] == ["Running", "await_approval", False, False]
    assert running["storage_status_details"] == {"checkpoints": []}
    assert running["deployment_status"] == running["deployment_runtime_status"] == running["deployment_desired_status"] == "Running"
    for of in ("status", "desired_status"):
        since = latest(running, f"deployment_resources_{of}_since", f"deployment_runtime_{of}_since")
        assert datetime.fromisoformat(running[f"deployment_{of}_since"]) == since
    assert pipeline.deployment_status_since() == datetime.fromisoformat(running["deployment_status_since"])
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])
    pipeline.checkpoint(wait=True)
    kept = sdk.fields()["storage_status_details"]["checkpoints"]
    assert [set(each) for each in kept] == [{"uuid", "identifier", "fingerprint", "size", "steps", "processed_records"}]

    pipeline.stop(force=True)
    stopped = sdk.fields()
    assert [stopped[name] for name in OF_A_START] == [None] * 5
    assert stopped["storage_status_details"]["checkpoints"] == kept == pipeline.storage_status_details()["checkpoints"]
    assert pipeline.storage_status() == sdk.module.StorageStatus.INUSE
    assert pipeline.deployment_resources_status() == sdk.module.DeploymentResourcesStatus.STOPPED
    # A new incarnation has a new id, and goes on from the checkpoint.
    pipeline.start_paused(timeout_s=START_S)
    assert sdk.fields()["deployment_id"] not in {None, running["deployment_id"]}
    assert sdk.fields()["deployment_initial"] == "Paused"
    assert list(pipeline.query("select s from v")) == [{"s": 3}]
    pipeline.stop(force=True)
    pipeline.clear_storage()
    assert (pipeline.storage_status(), sdk.fields()["storage_status_details"]) == (sdk.module.StorageStatus.CLEARED, None)

    # Another name, which only a cleared one may have. The old one is free then, and its log and events went along.
    renamed = requests.patch(url, json={"name": f"{sdk.name}-x"[-63:].lstrip("-")}, timeout=30).json()["name"]
    assert requests.get(url, timeout=30).status_code == 404
    other = sdk.module.Pipeline.get(renamed, sdk.client)
    assert (other.id(), other.version()) == (made["id"], 4)
    taken = requests.post(f"{sdk.url}/v0/pipelines", json={"name": renamed, "program_code": ""}, timeout=30)
    assert (taken.status_code, taken.json()["error_code"]) == (409, "DuplicateName")
    other.delete()
    for tail in ("", "/logs", "/events"):
        gone = requests.get(f"{sdk.url}/v0/pipelines/{renamed}{tail}", timeout=30)
        assert (gone.status_code, gone.json()["error_code"]) == (404, "UnknownPipelineName")


@pytest.mark.core
def test_a_program_is_changed_at_once_and_compiled_after_that(
    create: Callable[..., Pipeline], foreign: FelderaClient, pipeline_name: str
) -> None:
    pipeline = create(SQL)
    pipeline.modify(sql=SQL.replace("sum(x)", "nope(x)"))
    eventually(lambda: pipeline.program_status() == ProgramStatus.SqlError)
    assert (pipeline.version(), pipeline.program_version()) == (2, 2)
    assert "nope" in str(pipeline.program_error())
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.start()
    assert (refused.value.status_code, refused.value.error_code) == (400, "CannotStartWithCompilationError")
    with pytest.raises(RuntimeError, match="failed to compile"):
        PipelineBuilder(foreign, pipeline_name, SQL + "create view w as select * from nowhere;").create_or_replace()
    assert pipeline.program_status() == ProgramStatus.SqlError
    pipeline.modify(sql=MORE)
    eventually(lambda: pipeline.program_status() == ProgramStatus.Success)


def test_a_change_is_rejected_awaited_given_up_and_undone(sdk: Sdk) -> None:
    module = sdk.module
    pipeline = sdk.builder(SQL).create()
    pipeline.start(timeout_s=START_S)
    pipeline.input_json("t", [{"x": 1}, {"x": 2}])
    pipeline.stop(force=False)
    (kept,) = sdk.fields()["storage_status_details"]["checkpoints"]

    pipeline.modify(sql=MORE)
    with pytest.raises(RuntimeError, match="Unable to START"):
        pipeline.start(bootstrap_policy=module.BootstrapPolicy.REJECT, timeout_s=START_S)
    assert pipeline.status() == module.PipelineStatus.STOPPED
    assert pipeline.deployment_error()["error_code"] == "BootstrapRejected"
    assert pipeline.errors() == [pipeline.deployment_error()]
    assert sdk.refused(lambda: pipeline.start(dismiss_error=False)) == (400, "CannotStartWithUndismissedError")
    pipeline.dismiss_error()
    pipeline.dismiss_error()
    assert not pipeline.deployment_error()

    # Whoever is to approve may stop it instead; the checkpoint is kept.
    pipeline.start(timeout_s=START_S)
    assert pipeline.status() == module.PipelineStatus.AWAITINGAPPROVAL
    assert pipeline.deployment_runtime_status() == module.DeploymentRuntimeStatus.AWAITINGAPPROVAL
    assert pipeline.deployment_desired_status() == module.DeploymentDesiredStatus.RUNNING
    assert pipeline.bootstrap_policy() == module.BootstrapPolicy.AWAIT_APPROVAL
    assert sdk.refused(lambda: list(pipeline.query("select 1 as one"))) == (503, "AwaitingApproval")
    pipeline.stop(force=True)
    assert sdk.fields()["storage_status_details"]["checkpoints"] == [kept]

    # The program as it was: there is nothing to approve.
    pipeline.modify(sql=SQL)
    pipeline.start(bootstrap_policy=module.BootstrapPolicy.REJECT, timeout_s=START_S)
    assert list(pipeline.query("select s from v")) == [{"s": 3}]
    pipeline.restart(timeout_s=START_S)
    assert list(pipeline.query("select s from v")) == [{"s": 3}]


def test_a_start_of_a_program_that_does_not_compile_is_given_up(sdk: Sdk) -> None:
    pipeline = sdk.builder("create view v as select * from nowhere;").create(wait=False)
    with pytest.raises((RuntimeError, sdk.api_error)):
        pipeline.start(timeout_s=START_S)
    fields = sdk.fields()
    assert (fields["deployment_status"], fields["deployment_desired_status"], fields["program_status"]) == (
        "Stopped",
        "Stopped",
        "SqlError",
    )
    # Only who came before the compiler was done has started anything.
    error = fields["deployment_error"]
    assert error is None or error["error_code"] == "StartFailedDueToFailedCompilation"
    assert [fields[name] for name in (*OF_A_START, "program_info", "storage_status_details")] == [None] * 7
    assert pipeline.program_status() == sdk.module.ProgramStatus.SqlError
    assert pipeline.errors() == [
        {"sql_compilation": pipeline.program_error()["sql_compilation"]},
        *([] if error is None else [error]),
    ]
    (message,) = pipeline.program_error()["sql_compilation"]["messages"]
    assert "Object 'nowhere' not found" in message["message"]
    assert sdk.refused(pipeline.start) == (400, "CannotStartWithCompilationError")
    pipeline.modify(sql=SQL)
    pipeline.start(timeout_s=START_S)
    assert pipeline.status() == sdk.module.PipelineStatus.RUNNING
