from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from airflow_pipelines.running.deploying import ChangeDeclined, Deploying
from airflow_pipelines.running.wanted import Wanted
from airflow_pipelines.sdk.errors import PipelinesError, ProgramCompilationError
from tests.running.service_double import PLAN, ServiceDouble

OLD, NEW = {"fraud.py": "limit = 1"}, {"fraud.py": "limit = 2"}


class Somebody:
    """Decides as they were told, and remembers what they saw."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.told: list[str] = []
        self.phases: list[str] = []

    def tell(self, text: str) -> None:
        self.told.append(text)

    @contextmanager
    def wait(self, text: str, describe: Callable[[], str]) -> Iterator[None]:
        self.told.append(text)
        self.phases.append(describe())
        yield

    def approves(self, change: str, question: str) -> bool:
        self.asked.append(f"{change}\n{question}")
        return self.answers.pop(0)


@pytest.fixture
def service() -> ServiceDouble:
    return ServiceDouble()


def deploy(service: ServiceDouble, person: Somebody, wanted: Wanted | None = None) -> None:
    deploying = Deploying(service.client, wanted or Wanted("p", NEW), person, timeout_s=10)
    deploying.bring_up(deploying.prepare())


def test_a_pipeline_that_is_not_there_is_made_and_started(service: ServiceDouble) -> None:
    person = Somebody()
    deploy(service, person, Wanted("p", NEW, ("x",), None, {"workers": 2}))
    assert service.verbs == ["create", "dismiss_error", "start"]
    made = service.bodies["create"]
    assert (made["stream_files"], made["stream_arguments"], made["program_code"]) == (NEW, ["x"], "")
    assert made["runtime_config"]["workers"] == 2
    assert person.asked == []


def test_a_program_that_could_not_be_compiled_is_given_again(service: ServiceDouble) -> None:
    person = Somebody()
    service.exists(stream_files=NEW, program_status="SystemError")
    deploy(service, person)
    assert service.verbs == ["modify", "dismiss_error", "start"]
    assert service.bodies["modify"] == {"stream_files": NEW}
    assert "The program of pipeline 'p' is compiled again" in person.told


def test_one_that_runs_as_it_is_to_be_is_left_alone(service: ServiceDouble) -> None:
    service.exists("Running", stream_files=NEW)
    deploy(service, Somebody())
    assert service.verbs == []
    service.exists("Paused", stream_files=NEW)
    deploy(service, Somebody())
    assert service.verbs == ["resume"]


def test_a_change_of_one_that_runs_is_shown_before_it_is_stopped_and_asked_about_once(service: ServiceDouble) -> None:
    service.exists("Running", stream_files=OLD)
    service.changes_state = True
    person = Somebody(True)
    deploy(service, person)
    assert service.verbs == ["plan", "stop", "modify", "dismiss_error", "start", "approve"]
    assert service.bodies["plan"] == {"stream_files": NEW} == service.bodies["modify"]
    assert service.bodies["approve"] == {"programs": PLAN["programs"]}
    (asked,) = person.asked
    assert "operator score (Score): DROPS last (3 keys, 70 bytes), because its type differs" in asked
    assert "+limit = 2" in asked


def test_another_change_than_the_one_that_was_agreed_to_is_asked_about(service: ServiceDouble) -> None:
    service.exists("Running", stream_files=OLD)
    service.changes_state = True
    person = Somebody(True, False)
    deploying = Deploying(service.client, Wanted("p", NEW), person, timeout_s=10)
    prepared = deploying.prepare()
    service.plan["programs"]["new"]["hash"] = "f" * 64
    with pytest.raises(ChangeDeclined):
        deploying.bring_up(prepared)
    assert len(person.asked) == 2
    assert "approve" not in service.verbs


def test_one_that_runs_goes_on_as_it_is_when_nobody_agrees(service: ServiceDouble) -> None:
    service.exists("Running", stream_files=OLD)
    with pytest.raises(ChangeDeclined, match="goes on as it is"):
        deploy(service, Somebody(False))
    assert service.verbs == ["plan"]


def test_a_refused_change_stops_nothing(service: ServiceDouble) -> None:
    service.exists("Running", stream_files=OLD)
    service.plan["plan"]["refusals"] = [{"error_code": "BootstrapNotAllowed", "message": "the keys were texts"}]
    with pytest.raises(PipelinesError, match="was left as it is: the keys were texts"):
        deploy(service, Somebody())
    assert service.verbs == ["plan"]


def test_a_stopped_one_is_changed_and_has_its_former_program_again_when_nobody_agrees(service: ServiceDouble) -> None:
    service.exists(stream_files=OLD)
    service.changes_state = True
    deploy(service, Somebody(True))
    assert service.verbs == ["modify", "dismiss_error", "start", "approve"]
    assert service.record is not None
    assert service.record["stream_files"] == NEW
    service.verbs.clear()
    service.exists(stream_files=OLD)
    service.changes_state = True
    with pytest.raises(ChangeDeclined, match="is stopped and has its former program"):
        deploy(service, Somebody(False))
    assert service.verbs == ["modify", "dismiss_error", "start", "stop", "modify"]
    assert service.record["stream_files"] == OLD


def test_one_that_awaits_approval_already_is_asked_about(service: ServiceDouble) -> None:
    service.exists("AwaitingApproval", stream_files=NEW, deployment_runtime_status_details=PLAN)
    deploy(service, Somebody(True))
    assert service.verbs == ["approve"]


def test_a_program_that_does_not_compile_is_shown_with_its_file(service: ServiceDouble) -> None:
    service.exists(stream_files=OLD)
    with pytest.raises(ProgramCompilationError, match=r"(?s)so the one it has was kept:.*fraud\.py:1:1: .*no such name"):
        deploy(service, Somebody(), Wanted("p", {"fraud.py": "wrong"}))
    assert service.verbs == []
