"""Creating pipelines: waiting for the compiler, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_pipelines import (
    Pipeline,
    PipelineBuilder,
    ProgramCompilationError,
    RuntimeConfig,
)
from airflow_pipelines.program.stream_files import StreamFilesError
from tests.scripted import GET, SQL_ERROR, STOPPED, Scripted, problem


@pytest.fixture
def service() -> Scripted:
    return Scripted()


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


def test_a_stream_program_comes_with_the_modules_that_it_imports(service: Scripted, tmp_path: Path) -> None:
    (tmp_path / "fraud.py").write_text("import rules\n")
    (tmp_path / "rules.py").write_text("LIMIT = 100\n")
    (tmp_path / "other.py").write_text("")
    service.on(GET, problem(404, "UnknownPipelineName", "none"), STOPPED)
    service.on("POST pipelines", (201, STOPPED))
    PipelineBuilder(service.client, "p", stream_program=tmp_path / "fraud.py", stream_arguments=["--day", "1"]).create()
    [(_, body)] = service.asked("POST pipelines")
    assert body["program_code"] == ""
    assert list(body["stream_files"].items()) == [("fraud.py", "import rules\n"), ("rules.py", "LIMIT = 100\n")]
    assert body["stream_arguments"] == ["--day", "1"]
    with pytest.raises(StreamFilesError, match="there is no stream program"):
        PipelineBuilder(service.client, "p", stream_program=tmp_path / "missing.py")


def test_a_pipeline_of_sql_sends_no_field_of_streams(service: Scripted) -> None:
    service.on(GET, problem(404, "UnknownPipelineName", "none"), STOPPED)
    service.on("POST pipelines", (201, STOPPED))
    PipelineBuilder(service.client, "p", "select 1").create()
    [(_, body)] = service.asked("POST pipelines")
    assert not {"stream_files", "stream_arguments"} & body.keys()


def test_the_place_of_an_error_has_the_file(service: Scripted) -> None:
    message = {"start_line_number": 3, "start_column": 1, "error_type": "ValueError", "message": "no limit", "file": "rules.py"}
    error = {"sql_compilation": {"exit_code": 1, "messages": [message, {"message": "late", "file": "fraud.py"}]}}
    missing = problem(404, "UnknownPipelineName", "none")
    service.on(GET, missing, STOPPED | {"program_status": "SqlError", "program_error": error})
    service.on("POST pipelines", (201, STOPPED))
    with pytest.raises(ProgramCompilationError, match=r"(?s)rules\.py:3:1: ValueError: no limit.*fraud\.py: Error: late"):
        PipelineBuilder(service.client, "p", stream_program="x = 1\n").create()
