"""What the SDK makes of the service's answers: waits, refusals and texts. Whole life cycles are in tests/integration."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

import pandas
import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    CheckpointStatus,
    CompletionTokenStatus,
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineFailedError,
    PipelineFieldSelector,
    PipelineStatus,
    PipelineTimeoutError,
    ProgramCompilationError,
    ProgramStatus,
    RuntimeConfig,
)
from airflow_pipelines._pipeline import inputs
from airflow_pipelines.contract.descriptors import PendingChange
from tests.scripted import FAILED, STOPPED, Scripted, problem, up

GET = "GET pipelines/p"
NOT_DEPLOYED = problem(503, "PipelineInteractionNotDeployed", "it has no host")


@pytest.fixture
def service() -> Scripted:
    return Scripted()


def pipeline_of(service: Scripted, *descriptors: Any) -> Pipeline:
    """The pipeline whose status is read as ``descriptors``, one after the other."""
    service.on(GET, STOPPED)
    pipeline = Pipeline.get("p", service.client)
    service.on(GET, *descriptors)
    service.requests.clear()
    return pipeline


# --- names of the reference ---------------------------------------------------------------------------------------------------

REFERENCE = [
    "activate",
    "all",
    "approve",
    "bootstrap_policy",
    "checkpoint",
    "checkpoint_status",
    "checkpoints",
    "clear_storage",
    "commit_transaction",
    "completion_token_status",
    "created_at",
    "delete",
    "deployment_config",
    "deployment_desired_status",
    "deployment_error",
    "deployment_location",
    "deployment_resources_desired_status",
    "deployment_resources_status",
    "deployment_runtime_desired_status",
    "deployment_runtime_status",
    "deployment_runtime_status_details",
    "deployment_status_since",
    "description",
    "dismiss_error",
    "errors",
    "event",
    "events",
    "execute",
    "foreach_chunk",
    "generate_completion_token",
    "get",
    "get_samply_profile",
    "id",
    "input_connector_stats",
    "input_json",
    "input_pandas",
    "is_complete",
    "last_successful_checkpoint_sync",
    "listen",
    "logs",
    "modify",
    "name",
    "output_connector_stats",
    "pause",
    "pause_connector",
    "platform_version",
    "program_code",
    "program_config",
    "program_error",
    "program_info",
    "program_status",
    "program_status_since",
    "program_version",
    "query",
    "query_hash",
    "query_parquet",
    "query_tabular",
    "rebalance",
    "refresh",
    "restart",
    "resume",
    "resume_connector",
    "runtime_config",
    "set_runtime_config",
    "start",
    "start_paused",
    "start_samply_profile",
    "start_standby",
    "start_transaction",
    "stats",
    "status",
    "stop",
    "storage_status",
    "storage_status_details",
    "support_bundle",
    "sync_checkpoint",
    "sync_checkpoint_status",
    "tables",
    "testing_force_update_platform_version",
    "transaction_id",
    "transaction_status",
    "udf_rust",
    "udf_toml",
    "update_runtime",
    "version",
    "views",
    "wait_for_completion",
    "wait_for_idle",
    "wait_for_status",
    "wait_for_token",
]

NOT_AVAILABLE: dict[str, tuple[Any, ...]] = {
    "activate": (),
    "start_standby": (),
    "start_transaction": (),
    "commit_transaction": (),
    "rebalance": (),
    "start_compaction": (),
    "start_samply_profile": (),
    "get_samply_profile": (),
    "support_bundle": (),
    "testing_force_update_platform_version": ("1",),
    "update_runtime": (),
    "diff": (),
    "metrics": (),
    "query_arrow": ("select 1",),
    "query_arrow_dicts": ("select 1",),
    "remote_checkpoints": (),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_every_method_of_the_reference_exists_and_is_documented(name: str) -> None:
    member = inspect.getattr_static(Pipeline, name)
    member = getattr(member, "__func__", member)
    assert inspect.getdoc(member)


@pytest.mark.parametrize("name", NOT_AVAILABLE)
def test_a_method_outside_this_release_says_so_by_its_name(name: str, service: Scripted) -> None:
    pipeline = Pipeline(service.client)
    with pytest.raises(NotImplementedError, match=rf"^Pipeline\.{name} is not available in this release$"):
        getattr(pipeline, name)(*NOT_AVAILABLE[name])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("start", ["bootstrap_policy", "wait", "timeout_s", "dismiss_error"]),
        ("start_paused", ["bootstrap_policy", "wait", "timeout_s", "dismiss_error"]),
        ("stop", ["force", "wait", "timeout_s"]),
        ("restart", ["bootstrap_policy", "timeout_s", "dismiss_error"]),
        ("input_json", ["table_name", "data", "update_format", "force", "wait", "kwargs"]),
        ("modify", ["sql", "udf_rust", "udf_toml", "program_config", "runtime_config", "description"]),
        ("wait_for_idle", ["idle_interval_s", "timeout_s", "poll_interval_s"]),
        ("clear_storage", ["wait", "timeout_s", "poll_interval_s"]),
        ("wait_for_status", ["expected_status", "timeout"]),
        ("wait_for_completion", ["force_stop", "timeout_s"]),
    ],
)
def test_positional_parameters_are_the_references(name: str, parameters: list[str]) -> None:
    signature = inspect.signature(getattr(Pipeline, name))
    found = [p.name for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert found[1:] == parameters


# --- getting --------------------------------------------------------------------------------------------------------------------


def test_an_unknown_name_is_an_error_of_the_service(service: Scripted) -> None:
    with pytest.raises(PipelineAPIError) as caught:
        Pipeline.get("nobody", service.client)
    assert caught.value.error_code == "UnknownPipelineName"


def test_a_deleted_pipeline_has_the_status_not_found(service: Scripted) -> None:
    pipeline = pipeline_of(service, problem(404, "UnknownPipelineName", "gone"))
    assert pipeline.status() is PipelineStatus.NOT_FOUND
    with pytest.raises(PipelineAPIError):
        pipeline.refresh(PipelineFieldSelector.ALL)


def test_all_pipelines_are_listed(service: Scripted) -> None:
    service.on("GET pipelines", [STOPPED, STOPPED | {"name": "q"}])
    assert [pipeline.name for pipeline in Pipeline.all(service.client)] == ["p", "q"]


def test_a_pipeline_without_a_name_says_how_to_get_one(service: Scripted) -> None:
    with pytest.raises(ValueError, match=r"Pipeline\.get"):
        Pipeline(service.client).status()


def test_a_name_cannot_leave_its_place_in_the_path(service: Scripted) -> None:
    with pytest.raises(PipelineAPIError):
        Pipeline.get("../x?a=b", service.client)
    assert service.requests[0][0] == "GET pipelines/..%2Fx%3Fa%3Db"


def test_plain_facts(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running", bootstrap_policy="reject", deployment_runtime_status="Running"))
    assert pipeline.id() == STOPPED["id"]
    assert pipeline.created_at() == datetime(2026, 5, 8, 12, 0, 0, 1, UTC)
    assert pipeline.bootstrap_policy() is BootstrapPolicy.REJECT
    assert pipeline.deployment_error() == ""
    assert pipeline.program_status() == ProgramStatus.Success
    assert pipeline.tables() == []
    assert repr(pipeline) == "Pipeline('p', client=PipelineClient(app=<ASGI app>))"


def test_the_approval_diff_is_unwrapped_only_while_it_is_awaited(service: Scripted) -> None:
    details = {"approval_diff": {"program_diff": {"added_views": ["v"]}}, "connector_stats": None}
    pipeline = pipeline_of(service, up("AwaitingApproval", deployment_runtime_status_details=details))
    assert pipeline.deployment_runtime_status_details() == details["approval_diff"]
    service.on(GET, up("Running", deployment_runtime_status_details={"connector_stats": {"num_errors": 0}}))
    assert pipeline.deployment_runtime_status_details() == {"connector_stats": {"num_errors": 0}}
    service.on(GET, STOPPED)
    assert pipeline.deployment_runtime_status_details() is None


def test_errors_lists_what_is_wrong(service: Scripted) -> None:
    broken = FAILED | {"program_error": {"sql_compilation": {"exit_code": 1, "messages": []}, "system_error": None}}
    pipeline = pipeline_of(service, broken)
    assert pipeline.errors() == [
        {"sql_compilation": {"exit_code": 1, "messages": []}},
        {"deployment_error": FAILED["deployment_error"]},
    ]
    service.on(GET, STOPPED)
    assert pipeline.errors() == []


# --- creating -------------------------------------------------------------------------------------------------------------------

SQL_ERROR = {
    "sql_compilation": {
        "exit_code": 1,
        "messages": [
            {
                "start_line_number": 5,
                "start_column": 32,
                "end_line_number": 5,
                "end_column": 35,
                "warning": False,
                "error_type": "Compilation error",
                "message": "Object 'blah' not found",
                "snippet": "    4|create view v as\n    5|select * from blah\n                    ^^^^",
            }
        ],
    },
    "rust_compilation": None,
    "system_error": None,
}


def test_create_waits_until_the_program_is_compiled(service: Scripted) -> None:
    service.on(GET, problem(404, "UnknownPipelineName", "none"), STOPPED | {"program_status": "CompilingSql"}, STOPPED)
    service.on("POST pipelines", (201, STOPPED | {"program_status": "Pending"}))
    config = RuntimeConfig(workers=2)
    pipeline = PipelineBuilder(service.client, "p", "create table t(i int)", runtime_config=config).create()
    assert pipeline.name == "p"
    [(_, body)] = service.asked("POST pipelines")
    assert body["program_code"] == "create table t(i int)"
    assert body["program_config"] == {"profile": "optimized"}
    assert body["runtime_config"]["workers"] == 2


def test_create_shows_what_the_compiler_says(service: Scripted) -> None:
    service.on(
        GET,
        problem(404, "UnknownPipelineName", "none"),
        STOPPED | {"program_status": "SqlError", "program_error": SQL_ERROR},
    )
    service.on("POST pipelines", (201, STOPPED))
    with pytest.raises(RuntimeError) as caught:
        PipelineBuilder(service.client, "p", "...").create()
    assert isinstance(caught.value, ProgramCompilationError)
    text = str(caught.value)
    assert "5:32: Compilation error: Object 'blah' not found" in text
    assert "    5|select * from blah\n                    ^^^^" in text
    assert caught.value.program_error == SQL_ERROR
    assert Pipeline.get("p", service.client).program_status().get_error() == SQL_ERROR


def test_create_refuses_a_name_that_exists(service: Scripted) -> None:
    service.on(GET, STOPPED)
    with pytest.raises(RuntimeError, match=r"'p' exists already: use create_or_replace\(\)"):
        PipelineBuilder(service.client, "p", "").create()
    assert not service.asked("POST pipelines")


def test_create_notices_that_somebody_else_changed_the_program(service: Scripted) -> None:
    service.on(GET, problem(404, "UnknownPipelineName", "none"), STOPPED | {"program_version": 2})
    service.on("POST pipelines", (201, STOPPED))
    with pytest.raises(RuntimeError, match="changed by somebody else"):
        PipelineBuilder(service.client, "p", "").create()


def test_create_or_replace_stops_and_clears_what_is_there(service: Scripted) -> None:
    service.on(GET, STOPPED)
    for call in ("validate", "stop", "clear", "dismiss_error"):
        service.on(f"POST pipelines/p/{call}", (202, "ok"))
    service.on("PUT pipelines/p", STOPPED)
    PipelineBuilder(service.client, "p", "").create_or_replace()
    made = [call for call, _, _ in service.requests if not call.startswith("GET")]
    assert made.pop(0) == "POST pipelines/p/validate"
    assert made == ["POST pipelines/p/stop", "POST pipelines/p/clear", "POST pipelines/p/dismiss_error", "PUT pipelines/p"]
    assert service.asked("POST pipelines/p/stop")[0][0] == {"force": "true"}


# --- starting and stopping ------------------------------------------------------------------------------------------------------


def test_start_dismisses_an_error_starts_and_waits(service: Scripted) -> None:
    pipeline = pipeline_of(service, FAILED, up("Provisioning"), up("Initializing"), up("Running"))
    service.on("POST pipelines/p/dismiss_error", "ok").on("POST pipelines/p/start", (202, "ok"))
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW)
    [(params, body)] = service.asked("POST pipelines/p/start")
    assert params == {"initial": "running", "bootstrap_policy": "allow", "dismiss_error": "false"}
    assert body is None
    assert service.asked("POST pipelines/p/dismiss_error")


def test_a_pending_change_names_what_is_approved(service: Scripted) -> None:
    programs = {"saved": {"hash": "0" * 64}, "new": {"hash": "1" * 64, "version": 2}}
    details = {"approval_diff": {"program_diff": None}, "programs": programs, "views_evaluated_anew": {"v": "why"}}
    pipeline = pipeline_of(service, up("AwaitingApproval", deployment_runtime_status_details=details))
    change = pipeline.pending_change()
    assert change == PendingChange({"program_diff": None}, programs, {"v": "why"})
    service.on("POST pipelines/p/approve", "ok")
    pipeline.approve(expected_programs=programs)
    pipeline.approve()
    assert service.asked("POST pipelines/p/approve") == [({}, {"programs": programs}), ({}, None)]
    for lost in (None, {}):
        with pytest.raises(ValueError, match="leave the argument out to approve whatever waits"):
            pipeline.approve(expected_programs=lost)  # type: ignore[arg-type]
    assert pipeline_of(service, up("Running", deployment_runtime_status_details={})).pending_change() is None


def test_start_paused_waits_for_paused_or_approval(service: Scripted) -> None:
    pipeline = pipeline_of(service, STOPPED, up("AwaitingApproval"))
    service.on("POST pipelines/p/start", (202, "ok"))
    pipeline.start_paused(dismiss_error=False)
    assert service.asked("POST pipelines/p/start")[0][0]["initial"] == "paused"
    assert not service.asked("POST pipelines/p/dismiss_error")


def test_start_refuses_a_pipeline_that_is_not_stopped(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Paused"))
    with pytest.raises(RuntimeError, match=r"cannot start pipeline 'p' now: status Paused .* Use resume\(\)"):
        pipeline.start()


def test_a_pipeline_that_does_not_come_up_says_why_at_once(service: Scripted) -> None:
    pipeline = pipeline_of(service, STOPPED, up("Provisioning"), FAILED)
    service.on("POST pipelines/p/dismiss_error", "ok").on("POST pipelines/p/start", (202, "ok"))
    with pytest.raises(RuntimeError, match=r"^Unable to START the pipeline: .*division by zero in view v") as caught:
        pipeline.start()
    assert len(service.asked(GET)) == 3, "it asks no more once it knows"
    assert isinstance(caught.value, PipelineFailedError)
    assert caught.value.deployment_error == FAILED["deployment_error"]


def test_an_early_start_whose_program_does_not_compile_shows_the_compilers_messages(service: Scripted) -> None:
    error = {"message": "it does not compile", "error_code": "StartFailedDueToFailedCompilation", "details": {}}
    failed = STOPPED | {"deployment_error": error, "program_error": SQL_ERROR, "program_status": "SqlError"}
    pipeline = pipeline_of(service, STOPPED, failed)
    service.on("POST pipelines/p/dismiss_error", "ok").on("POST pipelines/p/start", (202, "ok"))
    with pytest.raises(RuntimeError, match=r"(?s)Unable to START.*it does not compile.*Object 'blah' not found"):
        pipeline.start()


def test_a_start_that_takes_too_long_says_what_was_seen_last(service: Scripted) -> None:
    pipeline = pipeline_of(service, STOPPED, up("Provisioning"))
    service.on("POST pipelines/p/dismiss_error", "ok").on("POST pipelines/p/start", (202, "ok"))
    with pytest.raises(
        TimeoutError, match=r"timed out after 0.2 s waiting for pipeline 'p' to become RUNNING; last seen: status Pro"
    ):
        pipeline.start(timeout_s=0.2)


def test_every_wait_that_times_out_names_what_it_waited_for(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Stopping"))
    service.on("POST pipelines/p/pause", (202, "ok")).on("POST pipelines/p/resume", (202, "ok")).on(
        "POST pipelines/p/stop", (202, "ok")
    )
    service.on("POST pipelines/p/clear", (202, "ok"))
    waits: dict[str, Callable[[], None]] = {
        "to pause; last seen: status Stopping": lambda: pipeline.pause(timeout_s=0.05),
        "to resume; last seen: status Stopping": lambda: pipeline.resume(timeout_s=0.05),
        "to stop; last seen: status Stopping": lambda: pipeline.stop(force=True, timeout_s=0.05),
        "to be cleared; last seen: storage Cleared": lambda: pipeline.clear_storage(timeout_s=0.05),
        "to become RUNNING; last seen": lambda: pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=0.05),
    }
    service.on(GET, up("Stopping", storage_status="Clearing"))
    for text, wait in waits.items():
        with pytest.raises(PipelineTimeoutError, match=text.replace("Cleared", "Clearing")):
            wait()


def test_a_wait_for_a_status_ends_when_the_pipeline_fails(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"), FAILED)
    with pytest.raises(PipelineFailedError, match="division by zero in view v"):
        pipeline.wait_for_status(PipelineStatus.PAUSED)


def test_a_wait_sits_out_a_short_outage(service: Scripted) -> None:
    busy = problem(503, "LockTookTooLong", "busy")
    pipeline = pipeline_of(service, busy, busy, up("Running"))
    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=5)


def test_a_wait_that_times_out_in_an_outage_says_so(service: Scripted) -> None:
    pipeline = pipeline_of(service, problem(503, "LockTookTooLong", "busy"))
    with pytest.raises(PipelineTimeoutError, match=r"last seen: nothing; the last attempt failed: busy \(LockTookTooLong"):
        pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=0.1)


def test_what_may_not_replace_is_refused_before_anything_is_lost(service: Scripted) -> None:
    service.on(GET, STOPPED)
    messages = [{"message": "Object 'x' not found", "start_line_number": 1, "start_column": 2, "snippet": "1|x"}]
    problem_of = {"error_code": "InvalidNewProgramSql", "message": "m", "details": {"sql_compilation": {"messages": messages}}}
    service.on("POST pipelines/p/validate", (400, problem_of)).on("PATCH pipelines/p", (400, problem_of))
    with pytest.raises(ProgramCompilationError, match=r"(?s)kept.*1:2: Error: Object 'x' not found\n1\|x"):
        PipelineBuilder(service.client, "p", "x").create_or_replace()
    with pytest.raises(ProgramCompilationError, match="Object 'x' not found"):
        Pipeline.get("p", service.client).modify(sql="x")
    assert [call for call, _, _ in service.requests if not call.startswith("GET")] == [
        "POST pipelines/p/validate",
        "PATCH pipelines/p",
    ]


def test_a_graceful_stop_without_its_checkpoint_is_an_error(service: Scripted) -> None:
    failed = STOPPED | {"deployment_error": {"message": "disk full", "error_code": "SuspendError", "details": {}}}
    pipeline = pipeline_of(service, up("Running"), up("Stopping"), failed)
    service.on("POST pipelines/p/stop", (202, "ok"))
    with pytest.raises(PipelineFailedError, match="stopped without its final checkpoint: disk full"):
        pipeline.stop(force=False)
    pipeline.stop(force=False)  # the error is an old one now


def test_modify_sends_only_what_is_given(service: Scripted) -> None:
    pipeline = pipeline_of(service, STOPPED)
    service.on("PATCH pipelines/p", STOPPED)
    pipeline.modify(sql="select 1", description="")
    pipeline.set_runtime_config(RuntimeConfig(workers=3))
    bodies = [body for _, body in service.asked("PATCH pipelines/p")]
    assert bodies[0] == {"program_code": "select 1", "description": ""}
    assert bodies[1]["runtime_config"]["workers"] == 3


def test_delete_clears_storage_first_when_asked(service: Scripted) -> None:
    pipeline = pipeline_of(service, STOPPED)
    service.on("POST pipelines/p/clear", (202, "ok")).on("DELETE pipelines/p", "")
    pipeline.delete(clear_storage=True)
    assert [call for call, _, _ in service.requests] == ["POST pipelines/p/clear", GET, "DELETE pipelines/p"]


# --- input ------------------------------------------------------------------------------------------------------------------------


def test_input_json_encodes_and_waits(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/ingress/t", {"token": "abc=="})
    service.on("GET pipelines/p/completion_status", (202, {"status": "inprogress"}), {"status": "complete"})
    row = {
        "a": Decimal("1.50"),
        "b": date(2026, 1, 2),
        "c": datetime(2026, 1, 2, 3, 4, 5, 6),
        "d": UUID(int=7),
        "e": b"\x01\x02",
        "f": None,
    }
    assert pipeline.input_json("t", row) == "abc=="
    [(params, body)] = service.asked("POST pipelines/p/ingress/t")
    assert params == {"format": "json", "array": "false", "update_format": "raw", "json_flavor": "default", "force": "false"}
    assert body == {
        "a": "1.50",
        "b": "2026-01-02",
        "c": "2026-01-02 03:04:05.000006",
        "d": "00000000-0000-0000-0000-000000000007",
        "e": [1, 2],
        "f": None,
    }
    asked = service.asked("GET pipelines/p/completion_status")
    assert [unquote_plus(params["token"]) for params, _ in asked] == ["abc=="] * 2
    assert "checkpoint" not in asked[0][0]
    pipeline.input_json("t", row, checkpoint=True)
    assert service.asked("GET pipelines/p/completion_status")[-1][0]["checkpoint"] == "true"


def test_input_json_sends_lists_as_arrays_without_waiting_when_told(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/ingress/%22T%22", {"token": "x"})
    pipeline.input_json('"T"', [{"insert": {"i": 1}}], update_format="insert_delete", wait=False)
    [(params, body)] = service.asked("POST pipelines/p/ingress/%22T%22")
    assert (params["array"], params["update_format"], body) == ("true", "insert_delete", [{"insert": {"i": 1}}])


def test_input_json_refuses_what_cannot_be_sent(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Paused"))
    with pytest.raises(ValueError, match="unknown update_format 'upsert'; known: raw, insert_delete"):
        pipeline.input_json("t", {}, update_format="upsert")
    with pytest.raises(RuntimeError, match=r"'p' is PAUSED: .*force=True"):
        pipeline.input_json("t", {})
    service.on(GET, up("Running"))
    with pytest.raises(ValueError, match="Out of range float"):
        pipeline.input_json("t", {"x": float("nan")})
    with pytest.raises(TypeError, match="unexpected keyword argument 'oops'"):
        pipeline.input_json("t", {}, oops=1)
    assert not service.asked("POST pipelines/p/ingress/t")


def test_input_pandas_sends_in_parts(service: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PANDAS_CHUNK_ROWS", 2)
    info = {"schema": {"inputs": [{"name": "t", "fields": []}], "outputs": []}}
    pipeline = pipeline_of(service, up("Running", program_info=info))
    service.on("POST pipelines/p/ingress/T", {"token": "x"}).on("GET pipelines/p/completion_status", {"status": "complete"})
    frame = pandas.DataFrame({"i": [1, 2, 3], "ts": pandas.to_datetime(["1970-01-02"] * 3)})
    pipeline.input_pandas("T", frame)
    sent = service.asked("POST pipelines/p/ingress/T")
    assert [len(body) for _, body in sent] == [2, 1]
    assert sent[0][0]["json_flavor"] == "pandas"
    assert sent[0][1][0] == {"i": 1, "ts": 86_400_000}
    assert len(service.asked("GET pipelines/p/completion_status")) == 1
    with pytest.raises(ValueError, match="no table 'nope'; it has: t"):
        pipeline.input_pandas("nope", frame)
    service.on(GET, STOPPED | {"program_info": info})
    with pytest.raises(RuntimeError, match="in status STOPPED: it must be RUNNING or PAUSED"):
        pipeline.input_pandas("t", frame)


# --- waiting for input ------------------------------------------------------------------------------------------------------------


def metrics(total: int, processed: int, completed: int | None = None, **others: Any) -> dict[str, Any]:
    counters = {
        "total_input_records": total,
        "total_processed_records": processed,
        "total_completed_records": processed if completed is None else completed,
        "buffered_input_records": 0,
        "pipeline_complete": False,
    }
    return {"global_metrics": counters | others, "inputs": [], "outputs": [], "suspend_error": None}


STATS = "GET pipelines/p/stats"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"idle_interval_s": 5, "timeout_s": 4}, r"idle_interval_s \(5\) is larger than timeout_s \(4\)"),
        ({"idle_interval_s": 1, "timeout_s": 4, "poll_interval_s": 5}, r"poll_interval_s \(5\) is larger than timeout_s \(4\)"),
        ({"idle_interval_s": 0.1}, r"poll_interval_s \(0.2\) is larger than idle_interval_s \(0.1\)"),
    ],
)
def test_wait_for_idle_checks_its_arguments(service: Scripted, arguments: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pipeline_of(service, up("Running")).wait_for_idle(**arguments)


def test_wait_for_idle_needs_a_quiet_interval(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(STATS, metrics(1, 0), metrics(1, 1), metrics(2, 1), metrics(2, 2))
    before = time.monotonic()
    pipeline.wait_for_idle(idle_interval_s=0.3, poll_interval_s=0.05)
    assert time.monotonic() - before >= 0.3
    assert len(service.asked(STATS)) >= 6


def test_wait_for_idle_says_how_far_it_got(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(STATS, metrics(7, 3))
    with pytest.raises(RuntimeError, match=r"to be idle for 0.1 s; last seen: 7 records received, 3 processed"):
        pipeline.wait_for_idle(idle_interval_s=0.1, timeout_s=0.3, poll_interval_s=0.05)


def test_waits_for_input_end_when_the_pipeline_goes_down(service: Scripted) -> None:
    pipeline = pipeline_of(service, FAILED)
    service.on(STATS, NOT_DEPLOYED).on("GET pipelines/p/completion_status", NOT_DEPLOYED)
    waits: list[Callable[[], None]] = [
        lambda: pipeline.wait_for_idle(idle_interval_s=0.3),
        lambda: pipeline.wait_for_token("x"),
        lambda: pipeline.wait_for_completion(),
    ]
    for wait in waits:
        with pytest.raises(PipelineFailedError, match="division by zero in view v"):
            wait()
    service.on(GET, STOPPED)
    for wait in waits:
        with pytest.raises(PipelineFailedError, match="was stopped while waiting for"):
            wait()


def test_a_token_of_an_earlier_incarnation_is_an_error(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("GET pipelines/p/completion_status", problem(410, "PipelineRestarted", "from before the restart"))
    with pytest.raises(PipelineAPIError, match="from before the restart"):
        pipeline.wait_for_token("x")


def test_token_status(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(
        "GET pipelines/p/completion_status", (202, {"status": "inprogress", "step": 1}), {"status": "complete", "step": None}
    )
    assert pipeline.completion_token_status("x") is CompletionTokenStatus.IN_PROGRESS
    assert pipeline.completion_token_status("x") is CompletionTokenStatus.COMPLETE


def test_wait_for_completion(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Initializing"), up("Running"))
    service.on(STATS, problem(503, "Initializing", "soon"), metrics(5, 3), metrics(5, 5, pipeline_complete=True))
    pipeline.wait_for_completion(timeout_s=5)
    assert pipeline.is_complete()
    service.on(GET, up("Paused"))
    with pytest.raises(RuntimeError, match="cannot come to completion in status PAUSED"):
        pipeline.wait_for_completion()


# --- queries ----------------------------------------------------------------------------------------------------------------------

QUERY = "GET pipelines/p/query"


def test_query_is_lazy_and_exact(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b'{"a": 1, "b": 97.00, "c": null, "s": "x\xe2\x80\xa8y"}\n{"a": 2, "b": 1e400, "c": 0.1, "s": ""}\n')
    rows = pipeline.query("select * from v where x = 'ü'")
    assert not service.requests
    assert list(rows) == [
        {"a": 1, "b": Decimal("97.00"), "c": None, "s": "x\u2028y"},
        {"a": 2, "b": Decimal("1e400"), "c": Decimal("0.1"), "s": ""},
    ]
    [(params, _)] = service.asked(QUERY)
    assert unquote_plus(params["sql"]) == "select * from v where x = 'ü'"
    assert params["format"] == "json"


def test_a_query_that_fails_after_some_rows_is_an_error(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b'{"a": 1}\n{"error": "the host was lost"}\n')
    rows = pipeline.query("select a from v")
    assert next(rows) == {"a": 1}
    with pytest.raises(PipelineAPIError, match="the query failed after some rows: the host was lost"):
        next(rows)
    service.on(QUERY, b'{"error": "x"}\n{"error": "y"}\n')
    assert list(pipeline.query("select error from log")) == [{"error": "x"}, {"error": "y"}]


def test_a_long_text_goes_in_a_body(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    long = f"select '{'ü' * 2_000}' as c from v"
    post = QUERY.replace("GET", "POST")
    service.on(post, b'{"c": 1}\n').on(STATS, metrics(1, 1, 1))
    assert list(pipeline.query(long)) == [{"c": 1}]
    pipeline.execute(long)
    pipeline.query_parquet(long, str(tmp_path / "result"))
    pipeline.query_hash(long)
    asked = service.asked(post)
    assert [params["format"] for params, _ in asked] == ["json", "text", "parquet", "hash"]
    assert all(body == {"sql": long} and "sql" not in params for params, body in asked)
    assert not service.asked(QUERY)


def test_query_parquet_writes_all_or_nothing(service: Scripted, tmp_path: Path) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b"PAR1")
    pipeline.query_parquet("select 1", str(tmp_path / "result"))
    assert (tmp_path / "result.parquet").read_bytes() == b"PAR1"
    service.on(QUERY, problem(400, "AdHocQueryError", "no such table"))
    with pytest.raises(PipelineAPIError, match="no such table"):
        pipeline.query_parquet("select 1", str(tmp_path / "result.parquet"))
    assert [path.name for path in tmp_path.iterdir()] == ["result.parquet"]


def test_execute_waits_until_views_have_seen_the_change(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(QUERY, b"+-------+").on(STATS, metrics(5, 5, 3), metrics(9, 5, 4), metrics(9, 9, 5))
    pipeline.execute("insert into t values (1)")
    assert len(service.asked(STATS)) == 3


# --- checkpoints ------------------------------------------------------------------------------------------------------------------

CHECKPOINT = "GET pipelines/p/checkpoint_status"
OLD, NEW = "01900000-0000-7000-8000-000000000000", "01900000-0000-7000-8000-000000000001"


def test_a_clock_that_is_driven_from_outside(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/clock/advance", {"now_ms": 1500, "now": "1970-01-01T00:00:01.500Z"})
    assert pipeline.advance_clock(500)["now_ms"] == 1500
    pipeline.advance_clock()
    assert [body for _, body in service.asked("POST pipelines/p/clock/advance")] == [{"delta_ms": 500}, {"delta_ms": None}]
    with pytest.raises(ValueError, match="go back"):
        pipeline.advance_clock(-1)


def test_checkpoint_status(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on(CHECKPOINT, {"success": 4, "failure": {"sequence_number": 5, "error": "disk full", "failed_at": ""}})
    assert pipeline.checkpoint_status(4) == CheckpointStatus.Success
    failure = pipeline.checkpoint_status(5)
    assert (failure, failure.get_error()) == (CheckpointStatus.Failure, "disk full")
    assert CheckpointStatus.Failure.get_error() is None, "an error belongs to one answer, not to the enum"
    assert pipeline.checkpoint_status(6) == CheckpointStatus.InProgress
    assert pipeline.checkpoint_status(3) == CheckpointStatus.Unknown


def test_checkpoint_waits(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/checkpoint", {"checkpoint_sequence_number": 1})
    service.on(CHECKPOINT, {"success": None, "failure": None}, {"success": 0, "failure": None}, {"success": 1, "failure": None})
    assert pipeline.checkpoint(wait=True) == 1
    service.on(CHECKPOINT, {"success": 0, "failure": {"sequence_number": 1, "error": "disk full"}})
    with pytest.raises(RuntimeError, match="checkpoint 1 of pipeline 'p' failed: disk full"):
        pipeline.checkpoint(wait=True)
    service.on(GET, FAILED)
    with pytest.raises(PipelineFailedError, match="division by zero"):
        pipeline.checkpoint(wait=True)


def test_sync_checkpoint(service: Scripted) -> None:
    pipeline = pipeline_of(service, up("Running"))
    service.on("POST pipelines/p/checkpoint/sync", (202, {"checkpoint_uuid": NEW}))
    status = "GET pipelines/p/checkpoint/sync_status"
    nothing = {"success": None, "failure": None, "periodic": None}
    service.on(status, nothing)
    assert pipeline.sync_checkpoint() == NEW
    assert pipeline.sync_checkpoint_status(NEW) == CheckpointStatus.Unknown
    assert pipeline.last_successful_checkpoint_sync() is None
    service.on(status, nothing, nothing | {"success": OLD}, nothing | {"success": NEW, "periodic": OLD})
    assert pipeline.sync_checkpoint(wait=True, timeout_s=5) == NEW
    assert pipeline.sync_checkpoint_status(NEW) == CheckpointStatus.Success
    assert pipeline.last_successful_checkpoint_sync() == UUID(NEW)
    service.on(status, nothing | {"failure": {"uuid": NEW, "error": "Forbidden"}})
    assert pipeline.sync_checkpoint_status(NEW).get_error() == "Forbidden"
    with pytest.raises(RuntimeError, match="failed: Forbidden"):
        pipeline.sync_checkpoint(wait=True)
