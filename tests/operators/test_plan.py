from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators.plan import PlanPipelineOperator, moved_text, same_programs
from airflow_pipelines.sdk.errors import PipelineAPIError
from tests.fixtures.airflow import ScriptedService
from tests.operators.running import COMMENTED, NEW, OLD, THIRD, Running

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "timeout": 2}


@pytest.fixture
def service(scripted: ScriptedService) -> Running:
    return Running(scripted)


def plans(service: Running) -> list[Any]:
    return [body for method, tail, _, body in service.scripted.calls if (method, tail) == ("POST", "plan")]


def test_a_plan_is_shown_and_changes_nothing(service: Running) -> None:
    found = PlanPipelineOperator(**COMMON, sql=NEW).execute({})
    assert (found["pipeline"], found["changes"], found["diff_text"]) == ("p", True, "~ view v")
    assert found["plan"]["evaluated"]["v"]["rows"] == 1000
    assert "view v (modified), then:\n    create materialized view v as select a + 1" in found["text"]
    assert "| `v` | 1000 | 0.2 |" in found["markdown"]
    assert json.loads(json.dumps(found)) == found
    assert (service.asked, service.status) == ([], "Running")
    # What is as it is need not be sent.
    assert plans(service) == [{"program_code": NEW}]


@pytest.mark.parametrize("sql", [OLD, COMMENTED])
def test_comments_change_nothing(service: Running, sql: str) -> None:
    assert PlanPipelineOperator(**COMMON, sql=sql).execute({})["changes"] is False
    with pytest.raises(AirflowSkipException, match="as it should be"):
        PlanPipelineOperator(**COMMON, sql=sql, skip_unchanged=True).execute({})


@pytest.mark.parametrize("as_text", [False, True])
def test_a_plan_that_is_not_the_expected_one_fails_before_anything_is_stopped(service: Running, as_text: bool) -> None:
    programs = PlanPipelineOperator(**COMMON, sql=NEW).execute({})["programs"]
    expected = json.dumps(programs) if as_text else programs
    assert PlanPipelineOperator(**COMMON, sql=NEW, expected_programs=expected).execute({})["programs"] == programs
    service.program, service.version = THIRD, 4
    service.running = (THIRD, 4)
    service.show("Running")
    with pytest.raises(AirflowFailException, match=r"the program that the pipeline runs is version 4, .* now and was version 1,"):
        PlanPipelineOperator(**COMMON, sql=NEW, expected_programs=expected).execute({})


@pytest.mark.parametrize("lost", [None, "", "null", "None", "{}", {}])
def test_an_expectation_that_got_lost_is_refused(service: Running, lost: Any) -> None:
    with pytest.raises(AirflowFailException, match="expected_programs is empty"):
        PlanPipelineOperator(**COMMON, sql=NEW, expected_programs=lost).execute({})


def test_a_program_that_cannot_be_gone_on_with_fails(service: Running) -> None:
    plan = service.change(NEW, None)
    plan["plan"]["refusals"] = [{"error_code": "BootstrapNotAllowed", "message": "the lateness of t was given up"}]
    service.scripted.answers["POST", "plan"] = plan
    with pytest.raises(AirflowFailException, match="left as it is: the lateness of t was given up"):
        PlanPipelineOperator(**COMMON, sql=NEW).execute({})


def test_a_program_that_does_not_compile_fails_with_its_messages(service: Running) -> None:
    messages = [{"start_line_number": 1, "start_column": 8, "message": "no such table", "warning": False, "error_type": "Error"}]
    details = {"sql_compilation": {"exit_code": 1, "messages": messages}, "rust_compilation": None, "system_error": None}
    refusal = {"error_code": "InvalidNewProgramSql", "message": "no", "details": details}
    service.scripted.answers["POST", "plan"] = (400, refusal)
    with pytest.raises(AirflowFailException, match=r"(?s)does not compile.*no such table"):
        PlanPipelineOperator(**COMMON, sql=NEW).execute({})


def test_a_pipeline_that_does_not_run_cannot_be_planned_for(scripted: ScriptedService) -> None:
    Running(scripted, "Stopped")
    with pytest.raises(AirflowFailException, match="is STOPPED"):
        PlanPipelineOperator(**COMMON, sql=NEW).execute({})


def test_programs_are_the_same_by_their_hashes_and_known_versions() -> None:
    saved, new = {"hash": "a", "version": 1}, {"hash": "b"}
    known = {"saved": saved, "new": {**new, "version": 2}}
    assert same_programs({"saved": saved, "new": new}, known)
    assert not same_programs({"saved": saved, "new": {**new, "version": 3}}, known)
    assert not same_programs({}, {})
    assert moved_text(known, known).startswith("both programs are the same")
    assert moved_text(known, {"saved": saved}) == "the new program is unknown now and was version 2, hash b..."


@pytest.mark.parametrize(("checkpoints", "taken"), [([], 1), ([{"uuid": "01900000-0000-7000-8000-00000000000c"}], 0)])
def test_what_a_stream_program_keeps_is_known_from_its_first_checkpoint(
    service: Running, monkeypatch: pytest.MonkeyPatch, checkpoints: list[Any], taken: int
) -> None:
    service.scripted.pipelines["p"] |= {
        "stream_files": {"a.py": "x = 1"},
        "storage_status_details": {"checkpoints": checkpoints},
    }
    asked: list[str] = []

    def checkpoint(_hook: PipelineHook, name: str, *, timeout_s: float) -> None:
        asked.append(name)
        raise PipelineAPIError(400, "StorageDisabled", "it has none")

    monkeypatch.setattr(PipelineHook, "checkpoint", checkpoint)
    # Without storage nothing is kept, and planned as it is.
    PlanPipelineOperator(**COMMON, stream_program={"a.py": "x = 2"}).execute({})
    assert asked == ["p"] * taken
    assert plans(service) == [{"stream_files": {"a.py": "x = 2"}}]
