from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from airflow_pipelines.common.pins import SetupError
from dags_examples import demo, demo_story

AUTUMN = [{"student_name": "Bob", "class": "algebra", "class_avg": "85.000000"}]
WITH_MISTAKE = [{"student_name": "Bob", "class": "algebra", "class_avg": "90.000000"}]
YEAR = [{"student_name": "Bob", "class": "algebra", "class_avg": "91.500000"}]


def figures(records: int, steps: int, latest: dict[str, Any] | None) -> dict[str, Any]:
    connectors = {"students.csv": 2, "grades.csv": 8}
    return {"total_input_records": records, "total_completed_steps": steps, "connectors": connectors, "latest_step": latest}


STEP = {
    "step": 3,
    "input_rows": 1,
    "duration_ms": 200.0,
    "operators": [{"view": "avg_grade", "strategy": "accumulators", "rows_in": 1, "rows_out": 2, "duration_ms": 160.2}],
}
FIRST: dict[str, Any] = {
    "deploy": {"pipeline": "student_grades", "action": "created"},
    "start": {"status": "RUNNING"},
    "figures_after_files": figures(10, 2, STEP),
    "first_answer": {"rows": AUTUMN},
    "second_answer": {"rows": WITH_MISTAKE},
    "figures_after_push": figures(11, 3, STEP),
    "checkpoint": {"checkpoint": "0192-uuid", "steps": 4, "processed_records": 12},
    "start_changed": {"status": "AWAITINGAPPROVAL"},
    "approve": {"approved": True, "diff_text": "+ view avg_grade_all_courses\n~ view avg_grade"},
    "running": {"status": "RUNNING"},
    "third_answer": {"rows": YEAR},
    "all_courses": {"rows": [{"student_id": 1, "avg": "92.0000000000"}]},
    "stop": {"checkpoint": "0193-uuid"},
    "modify": {"changed": ["program_code"]},
    "figures_at_the_end": figures(12, 5, None),
}
SECOND = FIRST | {
    "deploy": {"pipeline": "student_grades", "action": "kept"},
    "figures_after_files": figures(12, 5, None),
    "first_answer": {"rows": YEAR},
    "modify": {"changed": []},
    "approve": {"approved": False, "diff_text": ""},
    "figures_at_the_end": figures(14, 7, None),
}


def told(tell: Any, *arguments: Any) -> str:
    out = io.StringIO()
    tell(Console(file=out, width=120), *arguments)
    return out.getvalue()


def test_the_first_run_is_told_step_by_step() -> None:
    text = told(demo_story.first_run, FIRST)
    for number in range(1, 7):
        assert f"{number}. " in text
    for expected in ("85.00", "90.00", "91.50", "92.00", "accumulators", "+ view avg_grade_all_courses", "0192-uuid", "0193-uuid"):
        assert expected in text


def test_the_second_run_is_told_as_a_resumption() -> None:
    text = told(demo_story.second_run, SECOND)
    for expected in ("no row was read again", "12 records in, 5 steps", "nothing to change, nothing to approve", "14 records in"):
        assert expected in text


def test_what_is_missing_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_java() -> Path:
        raise SetupError("There is no Java: install it with apt-get install x")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "find_java", no_java)
    assert demo.main() == 1
    assert "There is no Java" in capsys.readouterr().out
    assert not (tmp_path / ".demo").exists()


@pytest.mark.core
@pytest.mark.processes
def test_a_command_that_fails_is_told_with_its_reason_and_the_logs_place(tmp_path: Path) -> None:
    folders = demo.Folders(tmp_path)
    with pytest.raises(
        demo.DemoError, match=r"(?s)json\.tool --nonsense failed \(exit code 2\).*unrecognized.*The whole log: .*airflow\.log"
    ):
        demo.Demo(folders, Console(file=io.StringIO()))._do("trying", ["json.tool", "--nonsense"])


def test_the_demo_keeps_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_URL", "https://production")
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_PIPELINES_DEFAULT", "{}")
    environment = demo.Folders(tmp_path).environment()
    assert "AIRFLOW_PIPELINES_URL" not in environment
    assert "AIRFLOW_CONN_AIRFLOW_PIPELINES_DEFAULT" not in environment
    assert environment["AIRFLOW_PIPELINES_HOME"].startswith(str(tmp_path))
    assert environment["AIRFLOW_HOME"].startswith(str(tmp_path))
