from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from airflow_pipelines.operators import approval
from airflow_pipelines.operators.approval import ApprovePipelineOperator, ReviewPipelineChangeOperator
from airflow_pipelines.operators.diff import diff_fingerprint, diff_markdown, diff_text
from tests.fixtures.airflow import ScriptedService

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 2}


def diff(**views: list[str]) -> dict[str, Any]:
    lists = {f"{what}_{kind}": [] for what in ("added", "removed", "modified") for kind in ("tables", "views")}
    connectors = {f"{what}_{kind}_connectors": [] for what in ("added", "removed", "modified") for kind in ("input", "output")}
    return {"program_diff": lists | views, "program_diff_error": None, **connectors}


CHANGE = diff(added_views=["avg_grade_all_courses"], modified_views=["avg_grade", "avg_grade_enriched"])
OTHER = diff(removed_views=["avg_grade"])


def waits_with(scripted: ScriptedService, change: dict[str, Any]) -> None:
    scripted.up("AwaitingApproval", deployment_runtime_status_details={"approval_diff": change})
    scripted.answers["POST", "approve"] = lambda: scripted.up("Running") and "ok"
    scripted.answers["POST", "stop"] = lambda: scripted.pipeline() and "ok"


def test_a_diff_as_people_read_it() -> None:
    assert diff_text(CHANGE) == "+ view avg_grade_all_courses\n~ view avg_grade\n~ view avg_grade_enriched"
    assert diff_text(diff()) == "no changes"
    both = {**diff(removed_tables=["t"]), "modified_input_connectors": ["u.c"]}
    assert diff_text(both) == "- table t\n~ input connector u.c"
    assert "could not be compared: gone" in diff_text({"program_diff": None, "program_diff_error": "gone"})
    markdown = diff_markdown(CHANGE)
    assert "| added | view | `avg_grade_all_courses` | is computed from the tables' rows |" in markdown
    assert "```diff\n+ view avg_grade_all_courses\n! view avg_grade\n" in markdown


def test_fingerprints_tell_changes_apart() -> None:
    assert diff_fingerprint(CHANGE) == diff_fingerprint(json.loads(json.dumps(CHANGE)))
    assert diff_fingerprint(CHANGE) != diff_fingerprint(OTHER)


def test_approve_reports_what_it_approved(scripted: ScriptedService) -> None:
    waits_with(scripted, CHANGE)
    assert ApprovePipelineOperator(**COMMON).execute({}) == {
        "pipeline": "p",
        "approved": True,
        "status": "RUNNING",
        "diff": CHANGE,
        "diff_text": diff_text(CHANGE),
    }


@pytest.mark.parametrize("as_text", [False, True])
def test_approve_only_what_is_expected(scripted: ScriptedService, as_text: bool) -> None:
    waits_with(scripted, OTHER)
    with pytest.raises(AirflowFailException, match=r"(?s)not the expected one.*- view avg_grade\n.*\+ view avg_grade_all_courses"):
        ApprovePipelineOperator(**COMMON, expected_diff=json.dumps(CHANGE) if as_text else CHANGE).execute({})
    assert scripted.asked("POST") == []
    waits_with(scripted, CHANGE)
    assert ApprovePipelineOperator(**COMMON, expected_diff=CHANGE).execute({})["approved"] is True


@pytest.mark.parametrize("expected", [None, "null"])
def test_nothing_to_approve_is_fine(scripted: ScriptedService, expected: Any) -> None:
    scripted.up("Running")
    result = ApprovePipelineOperator(**COMMON, expected_diff=expected).execute({})
    assert (result["approved"], result["diff"], result["status"]) == (False, None, "RUNNING")
    assert scripted.asked("POST") == []


def test_a_stopped_pipeline_has_nothing_to_approve(scripted: ScriptedService) -> None:
    scripted.pipeline()
    with pytest.raises(AirflowFailException, match="is STOPPED: it was stopped, or never started"):
        ApprovePipelineOperator(**COMMON).execute({})


class Person:
    """Airflow's part of the conversation: what people are shown, and what they answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[dict[str, Any]] = []
        self.stored: str | None = None
        self.pushed: dict[str, Any] = {}
        monkeypatch.setattr(
            "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **request: self.shown.append(request)
        )
        monkeypatch.setattr(approval, "stored_request_body", lambda _context, operator: self.stored or operator.body)
        task_instance = self

        class TaskInstance:
            id = "ti"

            @staticmethod
            def xcom_push(key: str, value: Any) -> None:
                task_instance.pushed[key] = value

        self.context: Any = {"task_instance": TaskInstance, "ti": TaskInstance}

    def answers(self, option: str) -> dict[str, Any]:
        return {
            "chosen_options": [option],
            "params_input": {},
            "responded_at": datetime.now(UTC),
            "responded_by_user": {"id": "1", "name": "Ada"},
        }


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def asked(operator: ReviewPipelineChangeOperator, person: Person) -> dict[str, Any]:
    with pytest.raises(TaskAwaitingInput) as raised:
        operator.execute(person.context)
    assert raised.value.kwargs is not None
    return json.loads(json.dumps(raised.value.kwargs))


def test_a_person_sees_the_change_and_approves_it(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    carried = asked(ReviewPipelineChangeOperator(**COMMON), person)
    assert "Pipeline p" in person.shown[0]["subject"]
    assert diff_markdown(CHANGE) in person.shown[0]["body"]
    assert person.shown[0]["options"] == ["Approve", "Reject"]
    # The second half is another process.
    result = ReviewPipelineChangeOperator(**COMMON).execute_complete(person.context, person.answers("Approve"), **carried)
    assert result == {
        "pipeline": "p",
        "approved": True,
        "status": "RUNNING",
        "diff": CHANGE,
        "diff_text": diff_text(CHANGE),
        "decided_by": "Ada",
    }
    assert scripted.asked("POST") == ["approve"]


def test_what_changed_after_it_was_shown_is_not_approved(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    carried = asked(ReviewPipelineChangeOperator(**COMMON), person)
    waits_with(scripted, OTHER)
    with pytest.raises(AirflowFailException, match=r"(?s)no longer waits.*nothing was done.*- view avg_grade"):
        ReviewPipelineChangeOperator(**COMMON).execute_complete(person.context, person.answers("Approve"), **carried)
    assert scripted.asked("POST") == []


def test_a_request_that_shows_another_change_is_refused(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    person.stored = "the text of the first try"
    with pytest.raises(AirflowFailException, match="start a new DAG run"):
        ReviewPipelineChangeOperator(**COMMON).execute(person.context)


@pytest.mark.parametrize(("on_reject", "calls", "status"), [("stop", ["stop"], "STOPPED"), ("leave", [], "AWAITINGAPPROVAL")])
def test_a_rejected_change_does_not_run(
    scripted: ScriptedService, person: Person, on_reject: str, calls: list[str], status: str
) -> None:
    waits_with(scripted, CHANGE)
    operator = ReviewPipelineChangeOperator(**COMMON, on_reject=on_reject)
    carried = asked(operator, person)
    result = operator.execute_complete(person.context, person.answers("Reject"), **carried)
    assert (result["approved"], result["status"], result["decided_by"]) == (False, status, "Ada")
    assert person.pushed["decision"] == result
    assert scripted.asked("POST") == calls


def test_nobody_is_asked_when_nothing_waits(scripted: ScriptedService, person: Person) -> None:
    scripted.up("Running")
    assert ReviewPipelineChangeOperator(**COMMON).execute(person.context)["approved"] is False
    assert person.shown == []
