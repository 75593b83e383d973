from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from airflow_pipelines.operators.plan import PlanPipelineOperator
from airflow_pipelines.operators.review_plan import ReviewPlanOperator
from tests.fixtures.airflow import ScriptedService
from tests.operators.people import Person
from tests.operators.running import COMMENTED, NEW, THIRD, Running


@pytest.fixture
def service(scripted: ScriptedService) -> Running:
    return Running(scripted)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def planned(sql: str) -> dict[str, Any]:
    found: dict[str, Any] = PlanPipelineOperator(task_id="plan", pipeline_name="p", sql=sql).execute({})
    return found


def review(plan: Any) -> ReviewPlanOperator:
    return ReviewPlanOperator(task_id="x", pipeline_name="p", plan=plan)


def asked(plan: Any, person: Person) -> dict[str, Any]:
    with pytest.raises(TaskAwaitingInput) as raised:
        review(plan).execute(person.context)
    found: dict[str, Any] = json.loads(json.dumps(raised.value.kwargs))
    return found


@pytest.mark.parametrize("as_text", [False, True])
def test_the_programs_that_a_person_saw_are_what_was_approved(service: Running, person: Person, as_text: bool) -> None:
    plan = planned(NEW)
    carried = asked(json.dumps(plan) if as_text else plan, person)
    assert plan["markdown"] in person.shown[0]["body"]
    assert person.pushed["review"]["change"]["plan"] == plan["plan"]
    result = review("{{ of the second half }}").execute_complete(person.context, person.answers("Approve"), **carried)
    assert result == {"pipeline": "p", "approved": True, "decided_by": "Ada", "programs": plan["programs"]}
    assert service.asked == []


def test_a_rejection_is_told(service: Running, person: Person) -> None:
    carried = asked(planned(NEW), person)
    review("").execute_complete(person.context, person.answers("Reject"), **carried)
    assert (person.pushed["decision"]["approved"], person.pushed["decision"]["decided_by"]) == (False, "Ada")


def test_a_cleared_task_whose_request_shows_another_plan_is_refused(service: Running, person: Person) -> None:
    asked(planned(NEW), person)
    person.stored = person.shown[0]["body"]
    service.rows = 5000
    asked(planned(NEW), person)
    with pytest.raises(AirflowFailException, match="start a new DAG run"):
        review(planned(THIRD)).execute(person.context)


def test_nobody_is_asked_when_nothing_would_change(service: Running, person: Person) -> None:
    found = review(planned(COMMENTED)).execute(person.context)
    assert (found["approved"], found["programs"], person.shown) == (False, None, [])


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (None, "plan is empty"),
        ("None", "plan is empty"),
        ("", "plan is empty"),
        ("null", "plan is empty"),
        ("text", "plan is 'text', which is no JSON"),
        ({}, "plan is no plan for pipeline 'p'"),
        ({"pipeline": "q", "programs": {"new": 1}, "markdown": "x"}, "plan is no plan for pipeline 'p'"),
    ],
)
def test_what_is_no_plan_is_shown_to_nobody(service: Running, person: Person, plan: Any, message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        review(plan).execute(person.context)
    assert person.shown == []
