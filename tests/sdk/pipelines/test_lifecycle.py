"""Starting, stopping, changing and deleting: what is requested, what is waited for, and what went wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    Pipeline,
    PipelineBuilder,
    PipelineFailedError,
    PipelineStatus,
    PipelineTimeoutError,
    ProgramCompilationError,
    RuntimeConfig,
)
from airflow_pipelines.contract.descriptors import PendingChange
from tests.scripted import FAILED, GET, SQL_ERROR, STOPPED, Scripted, pipeline_of, problem, up


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


def test_a_stream_program_is_read_changed_and_compared(service: Scripted, tmp_path: Path) -> None:
    files = {"z.py": "import a\n", "a.py": ""}
    pipeline = pipeline_of(service, STOPPED | {"stream_files": files, "stream_arguments": ["x"]}, STOPPED)
    assert list(pipeline.stream_program().items()) == list(files.items())
    assert (pipeline.stream_program(), pipeline.stream_arguments()) == ({}, []), "what was read before is no answer"
    service.on("PATCH pipelines/p", STOPPED).on("POST pipelines/p/diff", {}).on("POST pipelines/p/plan", {"approval_diff": {}})
    (tmp_path / "fraud.py").write_text("x = 1")
    pipeline.modify(stream_program=tmp_path / "fraud.py", stream_arguments=[])
    pipeline.modify(stream_program={})
    pipeline.modify(description="d")
    sent = [body for _, body in service.asked("PATCH pipelines/p")]
    assert sent == [{"stream_files": {"fraud.py": "x = 1"}, "stream_arguments": []}, {"stream_files": {}}, {"description": "d"}]
    pipeline.diff(stream_program=files)
    pipeline.plan(stream_arguments=["y"])
    assert service.asked("POST pipelines/p/diff") == [({}, {"stream_files": files})]
    assert service.asked("POST pipelines/p/plan") == [({}, {"stream_arguments": ["y"]})]


def test_a_program_has_one_name_wherever_one_is_given(service: Scripted) -> None:
    names = {"sql", "udf_python", "stream_program", "stream_files", "stream_arguments"}
    for taking in (PipelineBuilder, Pipeline.modify, Pipeline.plan):
        assert set(inspect.signature(taking).parameters) >= names
        assert "program_code" not in inspect.signature(taking).parameters
    pipeline = pipeline_of(service, STOPPED)
    service.on("POST pipelines/p/diff", {}).on("POST pipelines/p/plan", {"approval_diff": {}}).on("PATCH pipelines/p", STOPPED)
    program: Any = {"sql": "create table t (a int);"}
    pipeline.diff(**program)
    pipeline.plan(**program)
    pipeline.modify(**program)
    pipeline.diff(program_code=program["sql"])
    bodies = [service.asked(call) for call in ("POST pipelines/p/diff", "POST pipelines/p/plan", "PATCH pipelines/p")]
    assert [body for asked in bodies for _, body in asked] == [{"program_code": program["sql"]}] * 4
    with pytest.raises(ValueError, match="two names of one argument"):
        pipeline.diff("create table t (a int);", sql="create table t (a int);")
