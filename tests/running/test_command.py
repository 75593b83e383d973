from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from airflow_pipelines.cli.commands import cli
from airflow_pipelines.running import command, following
from airflow_pipelines.sdk.client import PipelineClient
from tests.running.service_double import ServiceDouble


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> ServiceDouble:
    service = ServiceDouble()
    monkeypatch.setattr(following, "LAST_LINES_S", 0.1)
    monkeypatch.setattr(command, "PipelineClient", lambda *_, **__: PipelineClient(app=service))
    return service


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "rules.py").write_text("LIMIT = 1\n")
    path = tmp_path / "fraud.py"
    path.write_text("import rules\n")
    return path


def run(program: Path, *arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["run", str(program), "--name", "p", *map(str, arguments)])


def test_a_program_is_run_until_its_inputs_have_ended_and_stopped_with_a_checkpoint(service: ServiceDouble, program: Path) -> None:
    service.complete = True
    service.log += ["2026-05-01T00:00:00.123Z INFO [p] stdout: alert> (a,700.0)", "2026-05-01T00:00:00.123Z INFO [p] running"]
    sql = program.with_name("tables.sql")
    sql.write_text("create table t (x int);")
    done = run(program, "--sql", sql, "--fault-tolerance", "exactly_once", "--checkpoint-interval", 5, "--", "--limit", "100")
    assert done.exit_code == 0, done.output
    assert done.stdout == "alert> (a,700.0)\n", "as when it runs as a script"
    assert "INFO [p] running\n" in done.stderr
    made = service.bodies["create"]
    assert list(made["stream_files"]) == ["fraud.py", "rules.py"]
    assert (made["stream_arguments"], made["program_code"]) == (["--limit", "100"], "create table t (x int);")
    assert made["runtime_config"]["fault_tolerance"] == {"model": "exactly_once", "checkpoint_interval_secs": 5}
    assert service.verbs == ["create", "dismiss_error", "start", "stop"]


def test_it_is_left_up_when_that_is_wanted(service: ServiceDouble, program: Path) -> None:
    service.complete = True
    assert run(program, "--keep-running").exit_code == 0
    assert "stop" not in service.verbs
    done = run(program, "--no-wait", "--home", program.parent)
    assert done.exit_code == 0
    for verb in ("stats", "stop"):
        assert f"airflow-pipelines pipelines {verb} p --home {program.parent}" in done.output.replace("\n", " ")
    assert "stop" not in service.verbs


def test_a_failure_shows_the_users_traceback(service: ServiceDouble, program: Path) -> None:
    service.error = {"message": 'File "rules.py", line 3\nValueError: no limit', "error_code": "x", "details": {}}
    done = run(program)
    assert done.exit_code == command.FAILED
    assert 'File "rules.py", line 3\nValueError: no limit' in done.output
    assert "Traceback" not in done.output


def test_a_change_that_nobody_can_be_asked_about_is_not_made(service: ServiceDouble, program: Path) -> None:
    service.exists("Running", stream_files={"fraud.py": "old"})
    done = run(program)
    assert done.exit_code == command.DECLINED
    assert "+limit = 2" in done.output
    assert "give --approve" in done.output
    assert service.verbs == ["plan"]
    service.complete = True
    assert run(program, "--approve").exit_code == 0
    assert service.verbs[1:4] == ["plan", "stop", "modify"]


def test_ctrl_c_leaves_it_running_and_says_how_to_stop_it(
    service: ServiceDouble, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following.Following, "until_end", pressed)
    done = run(program, "--home", program.parent)
    assert done.exit_code == command.INTERRUPTED
    assert f"airflow-pipelines pipelines stop p --home {program.parent}" in done.output.replace("\n", "")
    assert "stop" not in service.verbs


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.py", "there is no stream program"), (".", "has no __main__.py"), ("data.txt", "does not end with .py")],
)
def test_what_is_no_program_is_one_clear_line(service: ServiceDouble, program: Path, name: str, message: str) -> None:
    program.with_name("data.txt").write_text("x")
    done = run(program.parent / name)
    assert done.exit_code == command.FAILED
    assert message in done.output
    assert len(done.output.splitlines()) == 1
    assert service.verbs == []


def test_an_output_that_fails_is_named_and_the_pipeline_is_left_up(service: ServiceDouble, program: Path) -> None:
    service.statistics = {"outputs": [{"endpoint_name": "v.out", "fatal_error": "too long"}]}
    result = run(program)
    assert result.exit_code == 1
    assert "runs on, but delivers nothing more there: output v.out has failed: too long" in result.stderr
    assert "stop" not in service.verbs
