from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput, TaskDeferred

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators.gated import GatedModifyOperator
from airflow_pipelines.sdk.errors import PipelineTimeoutError, ProgramCompilationError
from airflow_pipelines.triggers.pipeline import PipelineTrigger
from tests.fixtures.airflow import ScriptedService
from tests.operators.people import NOBODY, Person
from tests.operators.running import COMMENTED, NEW, OLD, THIRD, Running

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p", "poke_interval": 0.001, "timeout": 2, "deferrable": False}


@pytest.fixture
def service(scripted: ScriptedService) -> Running:
    return Running(scripted)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def gate(**others: Any) -> GatedModifyOperator:
    return GatedModifyOperator(**{**COMMON, "sql": NEW} | others)


def asked(operator: GatedModifyOperator, person: Person) -> dict[str, Any]:
    with pytest.raises(TaskAwaitingInput) as raised:
        operator.execute(person.context)
    assert raised.value.kwargs is not None
    found: dict[str, Any] = json.loads(json.dumps(raised.value.kwargs))
    return found


def approved(person: Person, **others: Any) -> Any:
    """Ask, and have it approved; the second half is another process."""
    carried = asked(gate(**others), person)
    return gate(**others).execute_complete(person.context, person.answers("Approve"), **carried)


def test_the_pipeline_runs_until_the_change_is_approved(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    assert (service.status, service.asked) == ("Running", [])
    request = person.shown[0]
    assert request["subject"].startswith("Pipeline p: ")
    assert "select a from t;\n```" in request["body"]
    assert "select a + 1 as a from t;\n```" in request["body"]
    assert "| `v` | 1000 | 0.2 |" in request["body"]
    assert (request["options"], request["defaults"]) == (["Approve", "Reject"], None)
    assert person.pushed["review"]["pipeline"] == "p"
    assert person.pushed["review"]["change"]["plan"]["rows"] == 1000

    result = gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert service.asked == ["stop", "modify", "start", "approve"]
    assert (service.status, service.running) == ("Running", (NEW, 2))
    assert (result["decision"], result["decided_by"], result["changed"]) == ("approved", "Ada", ["program_code"])
    assert (result["status"], result["version"], result["diff_text"]) == ("RUNNING", 2, "~ view v")
    assert result["outage_s"] is not None
    assert "approval" not in person.memory


def test_what_is_as_it_should_be_is_left_alone(service: Running, person: Person) -> None:
    result = gate(sql=OLD, runtime_config={"workers": 8}).execute(person.context)
    assert (result["decision"], result["changed"], service.asked, person.shown) == ("not_needed", [], [], [])


def test_comments_need_neither_a_person_nor_a_stop(service: Running, person: Person) -> None:
    result = gate(sql=COMMENTED, description="orders").execute(person.context)
    assert (result["decision"], result["changed"], person.shown) == ("not_needed", ["description"], [])
    assert (service.asked, service.description, service.status) == (["modify"], "orders", "Running")


def test_a_configuration_is_shown_without_its_texts(service: Running, person: Person) -> None:
    config = {"workers": 4, "storage": {"backend": {"config": {"sync": {"secret_key": "hush"}}}}}
    result = approved(person, sql=OLD, runtime_config=config)
    body = person.shown[0]["body"]
    assert "- workers: 8 becomes 4" in body
    assert "secret_key: nothing becomes a text" in body
    assert "hush" not in body
    assert (result["changed"], service.config["workers"], service.asked[0]) == (["runtime_config"], 4, "stop")


def test_a_paused_pipeline_is_paused_again(scripted: ScriptedService, person: Person) -> None:
    service = Running(scripted, "Paused")
    assert approved(person)["status"] == "PAUSED"
    assert service.status == "Paused"


@pytest.mark.parametrize(("on_reject", "error"), [("keep", AirflowSkipException), ("fail", AirflowFailException)])
def test_a_rejection_leaves_everything_as_it_was(service: Running, person: Person, on_reject: str, error: Any) -> None:
    carried = asked(gate(on_reject=on_reject), person)
    with pytest.raises(error, match=r"rejected \(Ada\): pipeline 'p' goes on as it is"):
        gate(on_reject=on_reject).execute_complete(person.context, person.answers("Reject"), **carried)
    assert (service.asked, service.running, service.status) == ([], (OLD, 1), "Running")
    assert (person.pushed["decision"]["decision"], person.pushed["decision"]["decided_by"]) == ("rejected", "Ada")


def test_a_request_that_nobody_answers_fails_and_leaves_everything_as_it_was(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    with pytest.raises(AirflowFailException, match=r"Nobody has answered.*goes on as it is"):
        gate().execute_complete(person.context, NOBODY, **carried)
    assert (service.asked, service.status, person.pushed["decision"]["decision"]) == ([], "Running", "timed_out")


@pytest.mark.parametrize(("on_timeout", "defaults"), [("keep", None), ("approve", ["Approve"]), ("reject", ["Reject"])])
def test_what_a_time_out_answers(service: Running, person: Person, on_timeout: str, defaults: Any) -> None:
    asked(gate(on_timeout=on_timeout), person)
    assert person.shown[0]["defaults"] == defaults
    with pytest.raises(ValueError, match="on_timeout"):
        gate(defaults="Approve")


def moved_to_another_program(service: Running) -> None:
    service.program, service.version = THIRD, 5
    service.running = (THIRD, 5)
    service.show("Running")


def moved_to_a_stop(service: Running) -> None:
    service.show("Stopped")


def moved_by_a_new_release(service: Running) -> None:
    service.outdated = {"w": "w was saved in another layout"}


def moved_to_the_same_program_and_a_stop(service: Running) -> None:
    service.program, service.version = NEW, 2
    service.show("Stopped")


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (moved_to_another_program, "version 5 now, and was version 1"),
        (moved_to_a_stop, "it is STOPPED now, and was up"),
        (moved_by_a_new_release, "w was saved in another layout"),
        (moved_to_the_same_program_and_a_stop, "somebody made this change and stopped it"),
    ],
)
def test_a_pipeline_that_moved_is_left_alone(
    service: Running, person: Person, move: Callable[[Running], None], message: str
) -> None:
    carried = asked(gate(), person)
    move(service)
    status, running = service.status, service.running
    with pytest.raises(AirflowFailException, match=rf"(?s)was not made, because pipeline 'p' moved.*{message}"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.asked, service.status, service.running) == ([], status, running)
    assert "approval" not in person.memory


def test_rows_that_came_in_meanwhile_are_no_move(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    service.rows = 2000
    assert gate().execute_complete(person.context, person.answers("Approve"), **carried)["decision"] == "approved"


def test_somebody_changes_the_pipeline_while_it_is_stopped(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = asked(gate(), person)
    stop = service.stop

    def stopped_and_changed() -> Any:
        service.program, service.version = THIRD, 2
        return stop()

    service.scripted.answers["POST", "stop"] = stopped_and_changed
    with pytest.raises(AirflowFailException, match=r"(?s)version 2 now.*STOPPED now because this task had stopped it"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.asked, service.program) == (["stop"], THIRD)


def test_a_change_that_waits_as_another_one_is_taken_back(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    start = service.start

    def started_by_another_release() -> Any:
        service.outdated = {"w": "w was saved in another layout"} if service.program == NEW else {}
        return start()

    service.scripted.answers["POST", "start"] = started_by_another_release
    with pytest.raises(AirflowFailException, match=r"(?s)was not made.*another layout.*former program and is RUNNING"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.status, service.running[0]) == ("Running", OLD)
    assert "approve" not in service.asked[:-1]
    assert "approval" not in person.memory


def test_a_checkpoint_that_cannot_be_written_starts_the_pipeline_as_it_was(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    service.error = {"error_code": "CheckpointFailed", "message": "the disk is full"}
    with pytest.raises(AirflowFailException, match=r"(?s)was not made: it stopped with an error.*the disk is full.*is RUNNING"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.status, service.running, service.asked) == ("Running", (OLD, 1), ["stop", "start"])


def test_a_program_that_is_refused_after_the_stop_starts_the_pipeline_as_it_was(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = asked(gate(), person)

    def refuses(*_: Any) -> Any:
        raise ProgramCompilationError("1:1: no", {})

    monkeypatch.setattr(PipelineHook, "modify", refuses)
    with pytest.raises(AirflowFailException, match=r"was not made: 1:1: no"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.status, service.running) == ("Running", (OLD, 1))


class Killed(BaseException):
    """The worker's end."""


STEPS = ("plan", "stop", "modify", "start", "approve")


def die_at(monkeypatch: pytest.MonkeyPatch, step: str, moment: str) -> Callable[[], None]:
    """Let the task die once, before or after a call of the hook; the result lets it live again."""
    alive = getattr(PipelineHook, step)

    def dying(self: PipelineHook, *args: Any, **kwargs: Any) -> Any:
        if moment == "after":
            alive(self, *args, **kwargs)
        raise Killed

    monkeypatch.setattr(PipelineHook, step, dying)
    return lambda: monkeypatch.setattr(PipelineHook, step, alive)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_task_that_dies_anywhere_goes_on_with_its_approval(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch, step: str, moment: str
) -> None:
    carried = asked(gate(), person)
    live = die_at(monkeypatch, step, moment)
    with pytest.raises(Killed):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    live()
    result = gate().execute(person.context)
    assert (result["decision"], result["decided_by"]) == ("approved", "Ada")
    assert (service.status, service.running) == ("Running", (NEW, 2))
    assert len(person.shown) == 1, "nobody is asked twice"
    assert "approval" not in person.memory
    # Cleared after it ended well, it finds nothing to do.
    assert gate().execute(person.context)["decision"] == "not_needed"


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("step", "which"), [("stop", 2), ("modify", 2), ("start", 2)])
def test_a_task_that_dies_while_it_takes_a_change_back_goes_on_with_that(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch, step: str, which: int, moment: str
) -> None:
    carried = asked(gate(), person)
    start = service.start

    def started_by_another_release() -> Any:
        service.outdated = {"w": "w was saved in another layout"} if service.program == NEW else {}
        return start()

    service.scripted.answers["POST", "start"] = started_by_another_release
    alive, calls = getattr(PipelineHook, step), []

    def dying(self: PipelineHook, *args: Any, **kwargs: Any) -> Any:
        calls.append(step)
        if len(calls) == which and moment == "before":
            raise Killed
        found = alive(self, *args, **kwargs)
        if len(calls) == which:
            raise Killed
        return found

    monkeypatch.setattr(PipelineHook, step, dying)
    with pytest.raises(Killed):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    with pytest.raises(AirflowFailException, match=r"(?s)was not made.*another layout.*former program and is RUNNING"):
        gate().execute(person.context)
    assert (service.status, service.running[0]) == ("Running", OLD)


def test_a_start_that_fails_is_told_with_what_to_do(service: Running, person: Person) -> None:
    carried = asked(gate(), person)

    def fails() -> Any:
        service.error = {"error_code": "RuntimeError", "message": "division by zero"}
        return service.show("Stopped") and "ok"

    service.scripted.answers["POST", "approve"] = fails
    with pytest.raises(AirflowFailException, match=r"(?s)division by zero.*had stopped pipeline 'p'.*STOPPED now.*clear this task"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    # Cleared after the cause is gone, it goes on with the approval.
    service.scripted.answers["POST", "approve"] = service.approve
    assert gate().execute(person.context)["decision"] == "approved"
    assert service.running == (NEW, 2)


def test_a_long_wait_goes_on_in_the_triggerer(service: Running, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.operators.gated_change._PATIENCE_S", 0.01)
    carried = asked(gate(), person)
    service.scripted.answers["POST", "approve"] = lambda: service.show("Bootstrapping") and "ok"
    with pytest.raises(TaskDeferred) as raised:
        gate(deferrable=True).execute_complete(person.context, person.answers("Approve"), **carried)
    assert isinstance(raised.value.trigger, PipelineTrigger)
    assert (raised.value.method_name, raised.value.trigger.condition["statuses"]) == ("go_on", ("RUNNING", "PAUSED"))
    service.running = (NEW, 2)
    service.show("Running")
    service.scripted.answers["POST", "approve"] = service.approve
    kwargs = json.loads(json.dumps(raised.value.kwargs))
    event = {"outcome": "reached", "message": "RUNNING", "result": {"status": "RUNNING"}}
    assert gate(deferrable=True).go_on(person.context, event, **kwargs)["decision"] == "approved"
    failed = {"outcome": "failed", "message": "division by zero", "result": {}}
    with pytest.raises(AirflowFailException, match=r"(?s)division by zero.*clear this task"):
        gate(deferrable=True).go_on(person.context, failed, **kwargs)


def test_a_wait_that_takes_too_long_is_retried_with_the_approval(service: Running, person: Person) -> None:
    carried = asked(gate(timeout=0.01), person)
    service.scripted.answers["POST", "approve"] = lambda: service.show("Bootstrapping") and "ok"
    with pytest.raises(PipelineTimeoutError):
        gate(timeout=0.01).execute_complete(person.context, person.answers("Approve"), **carried)
    service.running = (NEW, 2)
    service.show("Running")
    service.scripted.answers["POST", "approve"] = service.approve
    assert gate().execute(person.context)["decision"] == "approved"


def test_a_cleared_task_whose_request_shows_another_change_is_refused(service: Running, person: Person) -> None:
    asked(gate(), person)
    person.stored = person.shown[0]["body"]
    # The same change, with other numbers of rows: what was shown is what is asked.
    service.rows = 5000
    asked(gate(), person)
    moved_to_another_program(service)
    with pytest.raises(AirflowFailException, match="start a new DAG run"):
        gate().execute(person.context)
    assert service.asked == []


@pytest.mark.parametrize(
    ("status", "message"),
    [("Stopped", "changes a pipeline that runs: start it first"), ("AwaitingApproval", "waits for the approval of another change")],
)
def test_a_pipeline_that_does_not_run_is_refused(scripted: ScriptedService, person: Person, status: str, message: str) -> None:
    service = Running(scripted, status)
    with pytest.raises(AirflowFailException, match=message):
        gate().execute(person.context)
    assert (service.asked, person.shown) == ([], [])


def test_a_refused_change_is_not_shown_to_anybody(service: Running, person: Person) -> None:
    plan = service.change(NEW, None)
    plan["plan"]["refusals"] = [{"error_code": "BootstrapNotAllowed", "message": "the lateness of t was given up"}]
    service.scripted.answers["POST", "plan"] = plan
    with pytest.raises(AirflowFailException, match=r"cannot go on.*left as it is: the lateness of t was given up"):
        gate().execute(person.context)
    assert person.shown == []


@pytest.mark.parametrize("name", ["sql", "pipeline_name", "runtime_config", "on_reject"])
@pytest.mark.parametrize("lost", ["", "None"])
def test_what_got_lost_is_refused_by_name(service: Running, person: Person, name: str, lost: str) -> None:
    operator = gate(**{"runtime_config": {"workers": 4}})
    setattr(operator, name, lost)
    with pytest.raises(AirflowFailException, match=rf"{name} is empty"):
        operator.execute(person.context)
    assert (service.asked, person.shown) == ([], [])


def test_there_are_retries_unless_the_dag_says_otherwise() -> None:
    assert gate().retries == 3
    assert gate(retries=0).retries == 0
    with DAG("d", default_args={"retries": 1}, schedule=None):
        assert gate().retries == 1


@pytest.mark.parametrize("call", ["PATCH", "start"])
def test_a_step_that_the_service_refuses_starts_the_pipeline_as_it_was(service: Running, person: Person, call: str) -> None:
    carried = asked(gate(runtime_config={"workers": 4}), person)
    refusal = {"error_code": "EditRestrictedToClearedStorage", "message": "the storage depends on it", "details": {}}
    tail = ("PATCH", "") if call == "PATCH" else ("POST", "start")
    going_on = service.scripted.answers[tail]

    def refuses_once() -> Any:
        service.scripted.answers[tail] = going_on
        return 400, refusal

    service.scripted.answers[tail] = refuses_once
    with pytest.raises(AirflowFailException, match=r"(?s)was not made: the storage depends on it.*former program and is RUNNING"):
        gate(runtime_config={"workers": 4}).execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.status, service.running[0], service.config) == ("Running", OLD, {"workers": 8})


@pytest.mark.parametrize("died_at", [None, "modify", "start"])
@pytest.mark.parametrize("now", [{"sql": THIRD}, {"runtime_config": {"workers": 2}}])
def test_a_task_that_wants_something_else_than_was_approved_does_nothing(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch, died_at: str | None, now: dict[str, Any]
) -> None:
    carried = asked(gate(), person)
    if died_at is None:
        with pytest.raises(AirflowFailException, match="wants something else than it showed"):
            gate(**now).execute_complete(person.context, person.answers("Approve"), **carried)
        assert service.asked == []
    else:
        live = die_at(monkeypatch, died_at, "before")
        with pytest.raises(Killed):
            gate().execute_complete(person.context, person.answers("Approve"), **carried)
        live()
        with pytest.raises(AirflowFailException, match=r"(?s)wants something else than it showed.*former program and is RUNNING"):
            gate(**now).execute(person.context)
    assert (service.status, service.running[0], service.config) == ("Running", OLD, {"workers": 8})


def test_a_change_is_not_taken_back_over_somebody_elses(service: Running, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = asked(gate(), person)
    live = die_at(monkeypatch, "start", "before")
    with pytest.raises(Killed):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)
    live()
    service.program, service.version = THIRD, 4
    service.show("Stopped")
    with pytest.raises(AirflowFailException, match=r"(?s)somebody changed it.*STOPPED now because this task had stopped it"):
        gate().execute(person.context)
    assert (service.program, service.status) == (THIRD, "Stopped")


def test_an_error_of_the_stop_is_seen_while_the_pipeline_still_stops(service: Running, person: Person) -> None:
    carried = asked(gate(), person)
    looks = iter(range(3))

    def stops() -> Any:
        service.error = {"error_code": "CheckpointFailed", "message": "the disk is full"}
        stopped = service.show("Stopped")
        stopping = stopped | {"deployment_status": "Stopping"}
        service.scripted.answers["GET", ""] = lambda: stopping if next(looks, None) is not None else service.scripted.pipelines["p"]
        return "stopping"

    service.scripted.answers["POST", "stop"] = stops
    with pytest.raises(AirflowFailException, match=r"(?s)the disk is full.*former program and is RUNNING"):
        gate().execute_complete(person.context, person.answers("Approve"), **carried)


def test_comments_come_along_with_a_change(service: Running, person: Person) -> None:
    result = approved(person, sql=COMMENTED, runtime_config={"workers": 4})
    assert (result["decision"], service.program, service.config["workers"]) == ("approved", COMMENTED, 4)


def test_the_keys_of_an_object_store_stay_in_their_connection(
    service: Running, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = {"conn_type": "aws", "login": "key", "password": "hushhush", "extra": {"region_name": "eu"}}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(store))
    for part in ("login", "password", "region_name"):
        service.scripted.answers["PUT", f"store/{part}"] = {}
    sync = {"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "s3://b/p"}}}}}
    result = approved(person, sql=OLD, runtime_config=sync, object_store_conn_id="store")
    assert result["changed"] == ["runtime_config"]
    assert "bucket: nothing becomes a text" in person.shown[0]["body"]
    kept = service.config["storage"]["backend"]["config"]["sync"]
    assert (kept["bucket"], kept["secret_key"]) == ("s3://b/p", "${conn:store.password}")


def test_a_second_change_of_the_same_task_takes_nothing_of_the_first_back(service: Running, person: Person) -> None:
    assert approved(person)["decision"] == "approved"
    # Cleared, with another program to make.
    carried = asked(gate(sql=THIRD), person)
    service.error = {"error_code": "CheckpointFailed", "message": "the disk is full"}
    with pytest.raises(AirflowFailException, match=r"(?s)the disk is full.*former program and is RUNNING"):
        gate(sql=THIRD).execute_complete(person.context, person.answers("Approve"), **carried)
    assert (service.status, service.running) == ("Running", (NEW, 2))
