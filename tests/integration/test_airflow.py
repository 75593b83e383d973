"""The example DAG and a person's approval, run by a real Airflow: API server, scheduler and triggerer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from airflow_pipelines import Pipeline, PipelineBuilder, PipelineClient
from airflow_pipelines.enums import PipelineStatus
from tests.datastream.test_examples import PRINTED
from tests.integration.airflow_live import DagRun, LiveAirflow

# Airflow fails a task whose answer comes while its worker is still leaving; people are slower than that.
A_PERSONS_TIME_S = 6.0


def averages(result: dict[str, list[dict[str, str]]]) -> list[tuple[str, str, Decimal]]:
    return [(row["student_name"], row["class"], Decimal(row["class_avg"])) for row in result["rows"]]


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_the_example_dag_and_a_persons_approval(airflow: LiveAirflow, tmp_path: Path) -> None:
    run = airflow.trigger("student_grades", {"object_store": str(tmp_path / "object_store")})
    run.wait_for_success(timeout_s=400)

    autumn = [
        ("Alice", "algebra", Decimal(97)),
        ("Alice", "physics", Decimal(89)),
        ("Bob", "algebra", Decimal(85)),
        ("Bob", "physics", Decimal(93)),
    ]
    year = [
        ("Alice", "algebra", Decimal(96)),
        ("Alice", "physics", Decimal(88)),
        ("Bob", "algebra", Decimal("91.5")),
        ("Bob", "physics", Decimal(92)),
    ]
    assert averages(run.xcom("first_answer")) == autumn
    assert averages(run.xcom("second_answer")) == [*autumn[:2], ("Bob", "algebra", Decimal(90)), autumn[3]]
    assert averages(run.xcom("third_answer")) == year
    courses = [(row["student_id"], Decimal(row["avg"])) for row in run.xcom("all_courses")["rows"]]
    assert courses == [(1, Decimal(92)), (2, Decimal("91.75"))]
    change = run.xcom("approve")
    assert change["approved"] is True
    assert change["diff_text"] == "+ view avg_grade_all_courses\n~ view avg_grade\n~ view avg_grade_enriched"
    # Idleness cannot be there at the first look, so this one waited in the triggerer.
    assert "deferred" in run.states_seen["idle"]
    assert list((tmp_path / "object_store").rglob(f"*{run.xcom('sync')['checkpoint']}*"))

    review = airflow.trigger("review_change")
    assert "| removed | view | `avg_grade_all_courses` |" in review.request("review")["body"]
    time.sleep(A_PERSONS_TIME_S)
    review.answer("review", "Approve")
    review.wait_for_success(timeout_s=120)
    decision = review.xcom("review")
    assert (decision["approved"], decision["status"]) == (True, "RUNNING")
    assert decision["diff_text"] == "~ view avg_grade\n~ view avg_grade_enriched\n- view avg_grade_all_courses"


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_a_dedicated_host_outlives_the_task_that_submitted_it(airflow: LiveAirflow) -> None:
    run = airflow.trigger("dedicated_host")
    run.wait_for_success(timeout_s=300)
    assert run.xcom("start")["status"] == "RUNNING"
    assert "deferred" in run.states_seen["start"]
    assert run.xcom("ask")["rows"] == [{"a": 1, "n": 2}, {"a": 2, "n": 1}]
    assert run.xcom("stop")["status"] == "STOPPED"


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_a_stream_program_keeps_its_state_over_a_change(airflow: LiveAirflow) -> None:
    run = airflow.trigger("fraud_stream")
    run.wait_for_success(timeout_s=300)
    alice = {"account": "alice", "alerts": 1, "largest": "900.0"}
    assert run.xcom("first_alerts")["rows"] == [alice]
    change = run.xcom("approve")
    assert (change["approved"], change["diff_text"]) == (True, "~ operator tiny_then_large")
    # Her tiny payment came before the change, and the limit that makes this one large with it.
    assert run.xcom("second_alerts")["rows"] == [alice, {"account": "dora", "alerts": 1, "largest": "300.0"}]


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_a_stream_program_prints_what_the_script_prints(airflow: LiveAirflow) -> None:
    airflow.trigger("examples").wait_for_success(timeout_s=240)
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        for name in ("fraud", "late_data"):
            assert _printed(Pipeline.get(name, client)) == PRINTED[name]


def totals(factor: int, comment: str = "") -> str:
    """A program that keeps totals, multiplied by a factor."""
    return f"""{comment}
create table amounts (name varchar, amount bigint) with ('materialized' = 'true');
create materialized view totals as select name, sum(amount) * {factor} as total from amounts group by name;
"""


@pytest.fixture(scope="module")
def shop(airflow: LiveAirflow) -> Iterator[Pipeline]:
    """A pipeline that runs, with rows in it."""
    with PipelineClient(home=airflow.environment["AIRFLOW_PIPELINES_HOME"]) as client:
        pipeline = PipelineBuilder(client, "shop", totals(1)).create_or_replace()
        pipeline.start()
        pipeline.input_json("amounts", [{"name": "Ada", "amount": 2}, {"name": "Bob", "amount": 3}], wait=True)
        yield pipeline
        pipeline.stop(force=True)


def answers(factor: int) -> list[dict[str, Any]]:
    return [{"name": "Ada", "total": 2 * factor}, {"name": "Bob", "total": 3 * factor}]


def check_page(airflow: LiveAirflow, run: DagRun) -> None:
    """The page shows the pipeline as it runs, and the changes that wait for it."""
    (connection,) = [each for each in airflow.page("context")["connections"] if each["id"] == "airflow_pipelines_default"]
    assert connection["problem"] is None
    reviews = airflow.page("reviews")["reviews"]
    assert len(reviews) >= 4
    assert {(each["connection"], each["pipeline"]) for each in reviews} == {("airflow_pipelines_default", "shop")}
    (own,) = [each for each in reviews if unquote(each["answer"]) == f"/api/v2{run.path}/taskInstances/gate/-1/hitlDetails"]
    change = own["change"]["plan"]["relations"]["totals"]
    assert [f"sum(amount) * {factor} as" in change[side]["sql"] for side, factor in (("saved", 1), ("new", 2))] == [True, True]
    place = {name: own[name] for name in ("dag_id", "run_id", "task_id")}
    assert airflow.page("task", **place, map_index="-1") == {"pipeline": "shop", "connection": own["connection"], "review": own}
    (shown,) = [each for each in airflow.page(f"{connection['api']}overview")["pipelines"] if each["name"] == "shop"]
    assert (shown["status"], shown["figures"]["processed_records"]) == ("Running", 2)
    edges = airflow.page(f"{connection['api']}pipelines/shop")["program_info"]["dataflow"]["edges"]
    assert edges == [{"from": "relation:amounts", "to": "relation:totals"}]
    assert sum(airflow.page(f"{connection['api']}pipelines/shop/activity")["inputs"].popitem()[1]) > 0


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_pipeline_runs_on_until_a_person_has_approved_its_change(airflow: LiveAirflow, shop: Pipeline) -> None:
    def change(dag: str, factor: int) -> DagRun:
        return airflow.trigger(dag, {"pipeline": "shop", "sql": totals(factor)})

    nobody, rejected, moved, cleared, approved = (
        change(dag, factor) for dag, factor in (("hasty_gate", 3), ("gate", 4), ("gate", 5), ("gate", 6), ("gate", 2))
    )
    request = approved.request("gate")
    assert "sum(amount) * 1 as total" in request["body"]
    assert "sum(amount) * 2 as total" in request["body"]
    assert "| `totals` | 2 |" in request["body"]
    for run in (rejected, moved, cleared):
        run.request("gate")
    check_page(airflow, approved)
    time.sleep(A_PERSONS_TIME_S)

    # Nobody answers, somebody says no: everything stays as it was, and the runs tell which it was.
    rejected.answer("gate", "Reject")
    assert (rejected.wait_for_end(60), rejected.tasks()) == ("success", {"gate": "skipped", "ask": "skipped"})
    assert nobody.wait_for_end(120) == "failed"
    assert [run.xcom("gate", "decision")["decision"] for run in (nobody, rejected)] == ["timed_out", "rejected"]
    assert (shop.status(), shop.version()) == (PipelineStatus.RUNNING, 1)
    assert list(shop.query("select name, total from totals order by name")) == answers(1)

    approved.answer("gate", "Approve")
    approved.wait_for_success(timeout_s=180)
    found = approved.xcom("gate")
    assert (found["decision"], found["status"], found["changed"]) == ("approved", "RUNNING", ["program_code"])
    assert found["diff_text"] == "~ view totals"
    assert approved.xcom("ask")["rows"] == answers(2)

    # What was shown to these is no longer what it would be.
    moved.answer("gate", "Approve")
    assert moved.wait_for_end(60) == "failed"
    assert "moved since it was shown: somebody changed it: it is version 2 now" in moved.log("gate")
    cleared.clear("gate")
    assert cleared.wait_for_end(60) == "failed"
    assert "start a new DAG run" in cleared.log("gate")
    assert (shop.status(), shop.version()) == (PipelineStatus.RUNNING, 2)

    # Comments need neither a person nor a stop; a task that is cleared after it ended well neither.
    commented = airflow.trigger("gate", {"pipeline": "shop", "sql": totals(2, "-- in cents")})
    approved.clear("gate")
    for run in (commented, approved):
        run.wait_for_success(timeout_s=60)
        assert run.xcom("gate")["decision"] == "not_needed"


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_an_approved_change_survives_the_death_of_its_worker(airflow: LiveAirflow, shop: Pipeline) -> None:
    before = shop.version()
    run = airflow.trigger("gate", {"pipeline": "shop", "sql": totals(7)})
    run.request("gate")
    time.sleep(A_PERSONS_TIME_S)
    run.answer("gate", "Approve")
    airflow.until("the pipeline is taken down", lambda: shop.status() is not PipelineStatus.RUNNING)
    run.kill_worker("gate")
    run.wait_for_success(timeout_s=180)
    assert airflow.get(f"{run.path}/taskInstances/gate")["try_number"] > 1
    found = run.xcom("gate")
    assert (found["decision"], found["status"], found["version"]) == ("approved", "RUNNING", before + 1)
    assert run.xcom("ask")["rows"] == answers(7)


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_the_gate_in_plain_tasks(airflow: LiveAirflow, shop: Pipeline) -> None:
    moved, approved, rejected = (
        airflow.trigger("plain_gate", {"pipeline": "shop", "sql": totals(factor)}) for factor in (8, 9, 10)
    )
    for run in (moved, approved, rejected):
        assert f"sum(amount) * {8 if run is moved else 9 if run is approved else 10} as total" in run.request("decide")["body"]
    time.sleep(A_PERSONS_TIME_S)
    rejected.answer("decide", "Reject")
    approved.answer("decide", "Approve")
    approved.wait_for_success(timeout_s=180)
    assert approved.xcom("approve")["approved"] is True
    assert approved.xcom("ask")["rows"] == answers(9)
    assert rejected.wait_for_end(60) == "success"
    assert rejected.tasks()["stop"] == "skipped"
    moved.answer("decide", "Approve")
    assert moved.wait_for_end(60) == "failed"
    assert "the program that the pipeline runs is version" in moved.log("still")
    assert shop.status() is PipelineStatus.RUNNING


@pytest.mark.integration
@pytest.mark.timeout(300)
def test_a_checkpoint_starts_a_dag_and_a_wait_starts_without_a_worker(airflow: LiveAirflow, shop: Pipeline) -> None:
    waiting = airflow.trigger("wait_without_a_worker")
    taken: dict[str, float] = {}

    def told() -> dict[str, Any] | None:
        # What is there when the watching begins is no event, so there may have to be another one.
        if time.monotonic() - max(taken.values(), default=0) > 15:
            shop.checkpoint(wait=True)
            taken[str(max(each.uuid for each in shop.checkpoints()))] = time.monotonic()
        runs = airflow.get("/dags/after_checkpoints/dagRuns?state=success")["dag_runs"]
        paths = [f"/dags/after_checkpoints/dagRuns/{run['dag_run_id']}" for run in runs]
        events = [event for path in paths for event in DagRun(airflow, path).xcom("told")]
        return next((event for event in events if event["checkpoint"] in taken), None)

    event = airflow.until("a checkpoint has started a DAG", told, timeout_s=90)
    assert (event["event"], event["pipeline"], event["processed_records"]) == ("checkpoint", "shop", 2)
    waiting.wait_for_success(timeout_s=60)
    assert waiting.xcom("enough") == {"row": {"n": 2}}


def _printed(pipeline: Pipeline) -> list[str]:
    """What the program has printed, from the log of its only run."""
    until_the_end = takewhile(lambda line: "now Suspended" not in line, pipeline.logs())
    return [text for _, found, text in (line.partition("stdout: ") for line in until_the_end) if found]
