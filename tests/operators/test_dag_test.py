"""Tasks that Airflow's ``dag.test()`` carries out in this process end by themselves, and when they are asked to."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.fixtures.airflow import ScriptedService
from tests.operators import dag_test_dags as dags
from tests.operators.running import Running

# Not core: they send signals to a process that other tests of Airflow share.
pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _known(dag_folder: Callable[[ModuleType], None]) -> Iterator[None]:
    dag_folder(dags)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def running(scripted: ScriptedService) -> Running:
    return Running(scripted)


def carried_out(dag: DAG) -> tuple[str, str]:
    """Run a DAG; the states of the run and of its one task."""
    run = dag.test()
    (task,) = run.get_task_instances()
    return str(run.state), str(task.state)


@contextmanager
def meanwhile(act: Callable[[], bool]) -> Iterator[None]:
    """Do something in another thread, again and again until it returns True.

    :raises BaseException: what it has failed with, after the end of what was done meanwhile
    """
    over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not over.wait(0.2) and not act():
                pass
        except BaseException as failure:  # noqa: BLE001 the thread of the test raises it
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if failures:
            raise failures[0]


def asked(dag: DAG) -> Any:
    """The request to people of the newest run of a DAG, None when there is none yet."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        requests = (
            select(HITLDetail).join(TaskInstance, TaskInstance.id == HITLDetail.ti_id).where(HITLDetail.responded_at.is_(None))
        )
        found = session.scalars(requests.where(TaskInstance.dag_id == dag.dag_id)).first()
        if found is not None:
            session.expunge(found)
        return found


def approve(dag: DAG) -> bool:
    """Answer as the API server does for a person."""
    from airflow.models.hitl import HITLDetail
    from airflow.utils import timezone
    from airflow.utils.session import create_session

    request = asked(dag)
    if request is None:
        return False
    with create_session() as session:
        answered = session.get(HITLDetail, request.ti_id)
        assert answered is not None
        answered.responded_by = {"id": "1", "name": "anna"}
        answered.responded_at = timezone.utcnow()
        answered.chosen_options = ["Approve"]
        answered.params_input = {}
    return True


def test_a_request_that_nobody_answers_ends_without_a_scheduler(running: Running) -> None:
    assert carried_out(dags.nobody_answers) == ("failed", "failed")
    assert running.asked == []
    assert carried_out(dags.rejected) == ("success", "skipped")
    assert running.asked == []
    assert carried_out(dags.approved) == ("success", "success")
    assert running.program == dags.NEW


def test_neither_does_a_review_wait_without_end(running: Running) -> None:
    running.program = dags.NEW
    running.waits()
    assert carried_out(dags.nobody_reviews) == ("failed", "failed")
    assert running.asked == []


def test_an_answer_is_taken(running: Running) -> None:
    with meanwhile(lambda: approve(dags.somebody_answers)):
        assert carried_out(dags.somebody_answers) == ("success", "success")
    assert running.program == dags.NEW


@pytest.mark.parametrize("dag", [dags.somebody_answers, dags.waits_for_a_status], ids=lambda dag: dag.dag_id)
def test_a_run_that_is_asked_to_end_ends(dag: DAG, running: Running) -> None:
    def ask_to_end() -> bool:
        is_waiting = asked(dag) is not None if dag is dags.somebody_answers else running.scripted.asked("GET").count("") > 3
        if is_waiting:
            os.kill(os.getpid(), signal.SIGTERM)
        return is_waiting

    with meanwhile(ask_to_end):
        assert carried_out(dag) == ("failed", "failed")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the next one ends the process"
    assert running.asked == [], "the pipeline is left as it is"


def test_a_run_that_is_asked_to_end_within_a_request_ends(running: Running) -> None:
    assert carried_out(dags.is_asked_within_a_request) == ("failed", "failed")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the next one ends the process"


def test_a_task_that_takes_too_long_is_tried_again(running: Running) -> None:
    run = dags.takes_too_long.test()
    (task,) = run.get_task_instances()
    assert (str(run.state), str(task.state), task.try_number) == ("failed", "failed", 2)
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL, "nobody has asked the run to end"
    assert running.asked == [], "the pipeline is left as it is"
