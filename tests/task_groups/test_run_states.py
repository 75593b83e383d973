"""Final states of DAG runs that Airflow's own ``dag.test()`` carries out in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.fixtures.airflow import ScriptedService
from tests.operators.test_transaction import RUN, stats
from tests.task_groups import run_states_dags as dags

pytestmark = [pytest.mark.core, pytest.mark.processes]

BOTH = pytest.mark.parametrize("dag", [dags.stopped, dags.deleted], ids=lambda dag: dag.dag_id)


@pytest.fixture(autouse=True)
def _known(dag_folder: Callable[[ModuleType], None]) -> None:
    dag_folder(dags)


class Batch:
    """A service that does what a batch asks of a pipeline; a query finds no rows unless ``found`` says otherwise."""

    def __init__(self, scripted: ScriptedService) -> None:
        self.scripted = scripted
        self.found: dict[str, Callable[[], Any]] = {}
        answers = {"start": self.start, "stop": self.stop, "clear": self.clear}
        for tail, answer in answers.items():
            scripted.answers["POST", tail] = answer
        scripted.answers["PUT", ""] = scripted.pipeline
        scripted.answers["DELETE", ""] = self.delete
        scripted.answers["GET", "query"] = self.query
        scripted.pipeline()

    @property
    def status(self) -> str | None:
        return str(self.scripted.pipelines["p"]["deployment_status"]) if "p" in self.scripted.pipelines else None

    def start(self) -> Any:
        self.scripted.up()
        return "starting"

    def stop(self) -> Any:
        self.scripted.pipeline()
        return "stopping"

    def clear(self) -> Any:
        return "clearing"

    def delete(self) -> Any:
        del self.scripted.pipelines["p"]
        return {}

    def query(self) -> Any:
        sql = self.scripted.calls[-1][2]["sql"]
        return self.found.get(sql, lambda: b"")()


@pytest.fixture
def batch(scripted: ScriptedService) -> Batch:
    return Batch(scripted)


def carried_out(dag: DAG) -> tuple[str, dict[str, str]]:
    """Run a DAG.

    :returns: the state of the run, and those of its tasks by their names within their group
    """
    run = dag.test()
    return str(run.state), {ti.task_id.rpartition(".")[2]: str(ti.state) for ti in run.get_task_instances()}


def refused() -> Any:
    return 400, {"error_code": "InvalidQuery", "message": "there is no such column", "details": {}}


def offending() -> Any:
    return json.dumps({"a": -1}).encode() + b"\n"


def marking_failed(dag: DAG) -> Callable[[], Any]:
    """Mark the run as failed, as a person does while this is answered."""

    def mark() -> Any:
        from airflow.api.common.mark_tasks import set_dag_run_state_to_failed
        from airflow.models.dagrun import DagRun
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            run = session.scalars(select(DagRun).where(DagRun.dag_id == dag.dag_id).order_by(DagRun.id.desc())).first()
            serialized = SerializedDagModel.get_dag(dag.dag_id, session=session)
            assert run is not None
            set_dag_run_state_to_failed(dag=serialized, run_id=run.run_id, commit=True, session=session)
        return refused()

    return mark


@pytest.mark.core("batch_stopped", slow_because="Airflow carries out a whole DAG run, the first of its process")
@BOTH
def test_a_block_that_succeeds(dag: DAG, batch: Batch) -> None:
    state, tasks = carried_out(dag)
    assert (state, set(tasks.values())) == ("success", {"success"})
    assert batch.status == (None if dag is dags.deleted else "Stopped")


@pytest.mark.core("select 2-offending-check-batch_deleted")
@BOTH
@pytest.mark.parametrize(
    ("sql", "answer", "failed"), [("select 1", refused, "ask"), ("select 2", offending, "check"), ("select 3", refused, "report")]
)
def test_a_block_with_a_failed_task(dag: DAG, batch: Batch, sql: str, answer: Callable[[], Any], failed: str) -> None:
    batch.found[sql] = answer
    state, tasks = carried_out(dag)
    assert (state, tasks[failed], tasks["stop"]) == ("failed", "failed", "success")
    assert batch.status == (None if dag is dags.deleted else "Stopped")


@pytest.mark.core("batch_deleted")
@BOTH
def test_a_run_that_is_marked_failed(dag: DAG, batch: Batch) -> None:
    batch.found["select 1"] = marking_failed(dag)
    state, tasks = carried_out(dag)
    assert (tasks["ask"], tasks["check"], tasks["stop"]) == ("failed", "skipped", "success")
    assert state == "failed"


@pytest.mark.rest
def test_a_run_that_is_marked_failed_before_the_block_has_begun(batch: Batch) -> None:
    batch.found["select 0"] = marking_failed(dags.after_another)
    state, tasks = carried_out(dags.after_another)
    assert (tasks["before"], tasks["deploy"], tasks["stop"]) == ("failed", "skipped", "skipped")
    assert state == "failed"


@pytest.mark.rest
@BOTH
def test_a_set_up_that_fails(dag: DAG, batch: Batch) -> None:
    batch.scripted.answers["POST", "start"] = refused
    state, tasks = carried_out(dag)
    assert (state, tasks["start"], tasks["check"]) == ("failed", "failed", "upstream_failed")


@pytest.mark.rest
@BOTH
def test_a_tear_down_that_fails(dag: DAG, batch: Batch) -> None:
    batch.scripted.answers["POST", "stop"] = refused
    state, tasks = carried_out(dag)
    assert (state, tasks["report"], tasks["stop"]) == ("failed", "success", "failed")


@pytest.mark.rest
def test_a_failed_deletion(batch: Batch) -> None:
    batch.scripted.answers["DELETE", ""] = refused
    state, tasks = carried_out(dags.deleted)
    assert (state, tasks["stop"], tasks["delete"]) == ("failed", "success", "failed")


@pytest.mark.rest
def test_a_failure_that_the_block_deals_with(batch: Batch) -> None:
    batch.found["select 2"] = offending
    state, tasks = carried_out(dags.dealt_with)
    assert (state, tasks["check"], tasks["report"]) == ("success", "failed", "success")


@pytest.mark.rest
def test_a_transaction_whose_run_is_marked_failed(batch: Batch) -> None:
    batch.start()
    service = batch.scripted
    before, open_ = stats(), stats(3)
    service.answers["GET", "stats"] = [before, open_]
    service.answers["POST", "checkpoint"] = {"checkpoint_sequence_number": 4, "incarnation_uuid": RUN}
    service.answers["GET", "checkpoint_status"] = {"success": 4, "failure": None}
    service.answers["POST", "start_transaction"] = {"transaction_id": 3}
    service.answers["POST", "ingress/t"] = marking_failed(dags.undone)
    state, tasks = carried_out(dags.undone)
    assert (tasks["one"], tasks["two"]) == ("failed", "skipped")
    assert state == "failed"
