from __future__ import annotations

import csv
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag

from airflow_pipelines.compiler.stream_binding import bind_streams
from airflow_pipelines.operators import CheckPipelineOperator
from airflow_pipelines.program.stream_files import stream_files
from airflow_pipelines.sql.program.parser import parse_program
from tests.fixtures.airflow import ScriptedService

DAGS = {
    "batch_load",
    "data_quality_gate",
    "event_driven_consumer",
    "fraud_stream",
    "gated_modification",
    "many_pipelines",
    "orders_to_lake",
    "quick_start",
    "scheduled_checkpoint_sync",
    "spark_cluster",
    "standby_failover",
    "standby_prepare",
    "student_grades",
    "transactional_load",
}


@pytest.fixture(scope="module")
def bag(repository: Path) -> DagBag:
    return DagBag(str(repository / "dags_examples"), bundle_path=repository / "dags_examples", bundle_name="examples")


def test_every_example_is_a_dag(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dag_ids) == DAGS


def test_every_example_says_what_it_is_for(bag: DagBag, repository: Path) -> None:
    for dag in bag.dags.values():
        assert "example" in dag.tags
        text = Path(dag.fileloc).read_text()
        assert text.startswith('"""')
        assert text.count("# [START ") == text.count("# [END ") > 0


@pytest.mark.processes
def test_parsing_the_examples_starts_no_spark_and_no_service(repository: Path) -> None:
    modules = ", ".join(f"dags_examples.{file.stem}" for file in (repository / "dags_examples").glob("[!_d]*.py"))
    assert "dags_examples.quick_start" in modules
    code = (
        f"import sys, {modules}\n"
        "from airflow_pipelines import operators, sensors\n"
        "all(getattr(room, name) for room in (operators, sensors) for name in room.__all__)\n"
        "print([name for name in ('pyspark', 'py4j', 'deltalake', 'airflow_pipelines.service.app') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_both_programs_of_the_example_are_programs() -> None:
    from dags_examples.student_grades import AUTUMN, WHOLE_YEAR

    def names(text: str) -> tuple[list[str], list[str]]:
        program = parse_program(text)
        return list(program.tables), list(program.views)

    assert names(AUTUMN) == (["students", "grades"], ["avg_grade", "avg_grade_enriched"])
    assert names(WHOLE_YEAR) == (["students", "grades"], ["avg_grade", "avg_grade_enriched", "avg_grade_all_courses"])


def test_the_shipped_grades_have_the_averages_that_the_docs_show(repository: Path) -> None:
    with (repository / "dags_examples/student_grades_data/grades.csv").open() as file:
        grades = list(csv.DictReader(file))

    def average(student: str, subject: str, last_day: str) -> Decimal:
        found = [
            Decimal(row["grade"])
            for row in grades
            if (row["student_id"], row["class"]) == (student, subject) and "2025-09-01" <= row["class_date"] <= last_day
        ]
        return sum(found, Decimal(0)) / len(found)

    subjects = [("1", "algebra"), ("1", "physics"), ("2", "algebra"), ("2", "physics")]
    assert [average(*subject, "2025-12-15") for subject in subjects] == [97, 89, 85, 93]
    assert [average(*subject, "2026-06-10") for subject in subjects] == [96, 88, Decimal("91.5"), 92]


def test_the_stream_program_is_no_dag_file_and_comes_with_what_it_imports(bag: DagBag) -> None:
    deploy, modify = (bag.dags["fraud_stream"].get_task(name) for name in ("deploy", "modify"))
    assert list(deploy.streams.files) == ["fraud.py", "rules.py"]
    assert (deploy.streams.arguments, modify.streams.arguments) == (("--large", "500"), ("--large", "250"))
    assert modify.streams.files is None, "only the arguments change"


@pytest.mark.core
@pytest.mark.processes
def test_a_changed_limit_changes_one_operator_of_the_stream_program(bag: DagBag) -> None:
    files = stream_files(bag.dags["fraud_stream"].get_task("deploy").streams.files)
    before, after = (bind_streams(files, ("--large", limit)).program for limit in ("500", "250"))
    assert [(each.relation, each.with_changes) for each in before.inputs] == [("payments", False)]
    (alerts,) = before.outputs
    assert (alerts.relation, alerts.primary_key) == ("alerts", ("id",))
    changed = [old.uid for old, new in zip(before.operators, after.operators, strict=True) if old.fingerprint != new.fingerprint]
    assert changed == ["tiny_then_large"]


def test_a_gate_that_closes_keeps_a_support_bundle(bag: DagBag, scripted: ScriptedService, tmp_path: Path) -> None:
    scripted.up(name="data_quality_gate")
    scripted.answers["GET", "support_bundle"] = b"PK a bundle"
    gates = [task for task in bag.dags["data_quality_gate"].tasks if isinstance(task, CheckPipelineOperator)]
    for task in gates:
        ti = SimpleNamespace(task_id=task.task_id, try_number=1)
        (told,) = [task.on_failure_callback] if callable(task.on_failure_callback) else task.on_failure_callback
        told({"task": task, "ti": ti, "run_id": "r", "params": {"bundles": str(tmp_path)}, "dag": task.dag})
    kept = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*.zip")}
    assert kept == {"r/no_debts-1.zip": b"PK a bundle", "r/all_named-1.zip": b"PK a bundle"}
