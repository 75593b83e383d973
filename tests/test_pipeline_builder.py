"""Creating pipelines: waiting for the compiler, and what it says."""

from __future__ import annotations

import pytest

from airflow_pipelines import (
    Pipeline,
    PipelineBuilder,
    ProgramCompilationError,
    RuntimeConfig,
)
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
