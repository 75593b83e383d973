"""The example DAG and a person's approval, run by a real Airflow: API server, scheduler and triggerer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from itertools import takewhile
from pathlib import Path

import pytest

from airflow_pipelines import Pipeline, PipelineClient
from tests.datastream.test_examples import PRINTED
from tests.integration.airflow_live import LiveAirflow

# Airflow fails a task whose answer comes while its worker is still leaving; people are slower than that.
A_PERSONS_TIME_S = 6.0


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[LiveAirflow]:
    folder = tmp_path_factory.mktemp("airflow")
    home, dags, pipelines = folder / "home", folder / "dags", folder / "pipelines"
    home.mkdir()
    for name in ("student_grades_data", "fraud_stream_program"):
        shutil.copytree(repository / "dags_examples" / name, dags / name)
    for name in ("student_grades.py", "fraud_stream.py", ".airflowignore"):
        shutil.copy(repository / "dags_examples" / name, dags)
    shutil.copytree(repository / "examples", dags / "examples")
    with (dags / ".airflowignore").open("a") as ignored:
        ignored.write("\nexamples/\n")
    for dag in (repository / "tests" / "integration" / "dags").glob("*.py"):
        shutil.copy(dag, dags)
    extra = {"home": str(pipelines), "deployer": "dedicated", "spark_conn_id": "spark_here"}
    environment = {
        "AIRFLOW_PIPELINES_HOME": str(pipelines),
        "AIRFLOW_PIPELINES_DRIVER_MEMORY": "1g",
        "AIRFLOW_CONN_DEDICATED": json.dumps({"conn_type": "airflow_pipelines", "extra": extra}),
        "AIRFLOW_CONN_SPARK_HERE": json.dumps({"conn_type": "spark", "host": "local[1]"}),
    }
    airflow = LiveAirflow(home, dags, repository, environment)
    try:
        with airflow:
            yield airflow
    finally:
        command = [sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", str(pipelines)]
        subprocess.run(command, env=airflow.environment, check=False, capture_output=True)


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
    review.wait_for_task("review", "awaiting_input", timeout_s=120)
    request = airflow.get(f"{review.path}/taskInstances/review/-1/hitlDetails")
    assert "| removed | view | `avg_grade_all_courses` |" in request["body"]
    time.sleep(A_PERSONS_TIME_S)
    answer = {"chosen_options": ["Approve"], "params_input": {}}
    airflow.send("PATCH", f"{review.path}/taskInstances/review/-1/hitlDetails", answer)
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


def _printed(pipeline: Pipeline) -> list[str]:
    """What the program has printed, from the log of its only run."""
    until_the_end = takewhile(lambda line: "now Suspended" not in line, pipeline.logs())
    return [text for _, found, text in (line.partition("stdout: ") for line in until_the_end) if found]
