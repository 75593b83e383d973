from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput, TaskDeferred

from airflow_pipelines.contract.change_plan import ChangePlan, ViewEvaluation
from airflow_pipelines.contract.change_text import change_markdown, change_text, diff_markdown, diff_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.operators.approval import ApprovePipelineOperator, ReviewPipelineChangeOperator
from airflow_pipelines.operators.diff import change_fingerprint
from airflow_pipelines.sdk.errors import PipelineAPIError
from tests.fixtures.airflow import ScriptedService
from tests.operators.people import Person

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "poke_interval": 0.01, "timeout": 2}


def diff(**views: list[str]) -> dict[str, Any]:
    lists = {f"{what}_{kind}": [] for what in ("added", "removed", "modified") for kind in ("tables", "views")}
    connectors = {f"{what}_{kind}_connectors": [] for what in ("added", "removed", "modified") for kind in ("input", "output")}
    return {"program_diff": lists | views, "program_diff_error": None, **connectors}


CHANGE = diff(added_views=["avg_grade_all_courses"], modified_views=["avg_grade", "avg_grade_enriched"])
OTHER = diff(removed_views=["avg_grade"])
SAVED = {"hash": "0" * 64, "version": 3}
PROGRAMS = {"saved": SAVED, "new": {"hash": "a" * 64, "version": 4}}
OTHER_PROGRAMS = {"saved": SAVED, "new": {"hash": "b" * 64, "version": 5}}
ANEW = {"totals": "totals was saved in another layout"}
SHOWN = {"diff": CHANGE, "programs": PROGRAMS, "views_evaluated_anew": ANEW}


def waits_with(scripted: ScriptedService, change: dict[str, Any], programs: dict[str, Any] = PROGRAMS) -> None:
    details = {"approval_diff": change, "programs": programs, "views_evaluated_anew": ANEW}
    scripted.up("AwaitingApproval", deployment_runtime_status_details=details)
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


def test_a_change_shows_its_programs_and_the_views_that_are_evaluated_anew() -> None:
    change = PendingChange(CHANGE, PROGRAMS, ANEW)
    text = change_text(change)
    assert text.startswith(diff_text(CHANGE) + "\n")
    assert f"program new: version 4, hash {'a' * 64}" in text
    assert "evaluated anew: view totals (totals was saved in another layout)" in text
    plan = ChangePlan(evaluated={"avg_grade": ViewEvaluation({"grades": 1200}, 2, 0.312, 7.5)}, dropped={"avg_grade": 40})
    planned = replace(change, plan=plan)
    assert change_text(planned).endswith(
        "evaluated from 1200 entries in storage: view avg_grade\ndropped with 40 entries in storage: avg_grade\n"
        "evaluating takes about 0.31 to 7.5 s, besides the restart"
    )
    assert "| `avg_grade` | 1200 | 0.31 to 7.5 |" in change_markdown(planned)
    assert "| `avg_grade` | 40 |" in change_markdown(planned)
    assert change_fingerprint(planned) == change_fingerprint(change), "rows may come while somebody decides"
    markdown = change_markdown(change)
    assert diff_markdown(CHANGE) in markdown
    assert "| `totals` | totals was saved in another layout |" in markdown
    assert f"program saved: version 3, hash {'0' * 64}" in markdown


def test_fingerprints_tell_changes_apart() -> None:
    found = {
        change_fingerprint(PendingChange(change, programs)) for change in (CHANGE, OTHER) for programs in (PROGRAMS, OTHER_PROGRAMS)
    }
    assert len(found) == 4
    assert change_fingerprint(PendingChange(json.loads(json.dumps(CHANGE)), PROGRAMS)) in found


def test_approve_reports_what_it_approved(scripted: ScriptedService) -> None:
    waits_with(scripted, CHANGE)
    assert ApprovePipelineOperator(**COMMON).execute({}) == {
        "pipeline": "p",
        "approved": True,
        "status": "RUNNING",
        "diff_text": diff_text(CHANGE),
        **SHOWN,
    }
    assert [call[3] for call in scripted.calls if call[1] == "approve"] == [{"programs": PROGRAMS}]


@pytest.mark.parametrize("as_text", [False, True])
def test_approve_only_what_is_expected(scripted: ScriptedService, as_text: bool) -> None:
    waits_with(scripted, OTHER)
    with pytest.raises(AirflowFailException, match=r"(?s)not the expected one.*- view avg_grade\n.*\+ view avg_grade_all_courses"):
        ApprovePipelineOperator(**COMMON, expected_diff=json.dumps(CHANGE) if as_text else CHANGE).execute({})
    assert scripted.asked("POST") == []
    waits_with(scripted, CHANGE)
    assert ApprovePipelineOperator(**COMMON, expected_diff=CHANGE).execute({})["approved"] is True


@pytest.mark.parametrize("name", ["expected_diff", "expected_programs"])
@pytest.mark.parametrize("lost", [None, "null", "", "{}", {}])
def test_an_expectation_that_got_lost_approves_nothing(scripted: ScriptedService, name: str, lost: Any) -> None:
    waits_with(scripted, CHANGE)
    with pytest.raises(AirflowFailException, match=rf"(?s){name} is .*nothing was approved|{name} is no JSON"):
        ApprovePipelineOperator(**COMMON, **{name: lost}).execute({})
    assert scripted.asked("POST") == []


def test_expected_programs_are_the_precondition_that_the_service_checks(scripted: ScriptedService) -> None:
    waits_with(scripted, CHANGE, OTHER_PROGRAMS)
    refusal = {"error_code": "UnexpectedProgram", "message": "The program is not the expected one", "details": {}}
    scripted.answers["POST", "approve"] = (412, refusal)
    with pytest.raises(AirflowFailException, match="not the expected one"):
        ApprovePipelineOperator(**COMMON, expected_programs=json.dumps(PROGRAMS)).execute({})
    assert [call[3] for call in scripted.calls if call[1] == "approve"] == [{"programs": PROGRAMS}]


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
    assert change_markdown(PendingChange(CHANGE, PROGRAMS, ANEW)) in person.shown[0]["body"]
    assert person.shown[0]["options"] == ["Approve", "Reject"]
    # The second half is another process.
    result = ReviewPipelineChangeOperator(**COMMON).execute_complete(person.context, person.answers("Approve"), **carried)
    assert result == {
        "pipeline": "p",
        "approved": True,
        "status": "RUNNING",
        "diff_text": diff_text(CHANGE),
        "decided_by": "Ada",
        **SHOWN,
    }
    assert [call[3] for call in scripted.calls if call[1] == "approve"] == [{"programs": PROGRAMS}]


@pytest.mark.parametrize("now", [(OTHER, PROGRAMS), (CHANGE, OTHER_PROGRAMS)])
def test_what_changed_after_it_was_shown_is_not_approved(scripted: ScriptedService, person: Person, now: Any) -> None:
    waits_with(scripted, CHANGE)
    carried = asked(ReviewPipelineChangeOperator(**COMMON), person)
    waits_with(scripted, *now)
    with pytest.raises(AirflowFailException, match=r"(?s)no longer waits.*nothing was done.* view avg_grade"):
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


def test_an_approved_review_waits_in_the_triggerer(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    operator = ReviewPipelineChangeOperator(**COMMON, deferrable=True)
    carried = asked(operator, person)
    scripted.answers["POST", "approve"] = lambda: scripted.up("Bootstrapping") and "ok"
    with pytest.raises(TaskDeferred) as raised:
        operator.execute_complete(person.context, person.answers("Approve"), **carried)
    assert raised.value.trigger.condition["statuses"] == ("RUNNING", "PAUSED")
    event = {"outcome": "reached", "message": "RUNNING", "result": {"status": "RUNNING"}}
    kwargs = json.loads(json.dumps(raised.value.kwargs))
    result = getattr(ReviewPipelineChangeOperator(**COMMON), raised.value.method_name)(person.context, event, **kwargs)
    assert (result["approved"], result["status"], result["decided_by"]) == (True, "RUNNING", "Ada")
    assert person.memory == {}


@pytest.mark.parametrize("now", ["AwaitingApproval", "Bootstrapping", "Running"])
def test_a_review_that_is_retried_after_the_approval_asks_nobody_again(scripted: ScriptedService, person: Person, now: str) -> None:
    waits_with(scripted, CHANGE)
    carried = asked(ReviewPipelineChangeOperator(**COMMON), person)
    # The pipeline takes longer than the task waits; or the worker is lost before it says anything to the service.
    scripted.answers["POST", "approve"] = (503, {"error_code": "Unavailable", "message": "restarting", "details": {}})
    operator = ReviewPipelineChangeOperator(**COMMON)
    with pytest.raises(PipelineAPIError):
        operator.execute_complete(person.context, person.answers("Approve"), **carried)
    waits_with(scripted, CHANGE)
    if now != "AwaitingApproval":
        scripted.up(now)
        scripted.answers["POST", "approve"] = lambda: scripted.up("Running") and "ok"
    result = ReviewPipelineChangeOperator(**COMMON).execute(person.context)
    assert (result["approved"], result["decided_by"], result["status"]) == (True, "Ada", "RUNNING")
    assert [call[3] for call in scripted.calls if call[1] == "approve"][-1] == {"programs": PROGRAMS}
    assert len(person.shown) == 1
    # Cleared after that, it finds nothing to ask.
    assert ReviewPipelineChangeOperator(**COMMON).execute(person.context)["approved"] is False


def test_a_retried_review_does_not_approve_another_change(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    carried = asked(ReviewPipelineChangeOperator(**COMMON), person)
    person.stored = person.shown[0]["body"]
    scripted.answers["POST", "approve"] = (503, {"error_code": "Unavailable", "message": "restarting", "details": {}})
    with pytest.raises(PipelineAPIError):
        ReviewPipelineChangeOperator(**COMMON).execute_complete(person.context, person.answers("Approve"), **carried)
    calls = len(scripted.asked("POST"))
    waits_with(scripted, CHANGE, OTHER_PROGRAMS)
    with pytest.raises(AirflowFailException, match="start a new DAG run"):
        ReviewPipelineChangeOperator(**COMMON).execute(person.context)
    assert len(scripted.asked("POST")) == calls


def test_a_request_tells_the_page_what_it_is_about(scripted: ScriptedService, person: Person) -> None:
    waits_with(scripted, CHANGE)
    asked(ReviewPipelineChangeOperator(**COMMON, pipeline_conn_id="team"), person)
    # The pipeline shows the change itself.
    review = dict(person.pushed["review"])
    assert review.pop("asked_at") > 0
    assert review == {"pipeline": "p", "pipeline_conn_id": "team", "programs": PROGRAMS, "change": None, "version": None}
