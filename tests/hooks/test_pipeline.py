from __future__ import annotations

import inspect
import json
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import FastAPI

from airflow_pipelines.common.pins import SetupError
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import IdleCondition, StartedCondition, StatusCondition, TokenCondition
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelineConnectionError,
    PipelineFailedError,
    PipelineTimeoutError,
    ProgramCompilationError,
)
from tests.fixtures.airflow import ScriptedService
from tests.fixtures.serving import serving


def connect(monkeypatch: pytest.MonkeyPatch, conn_id: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "airflow_pipelines", **fields}))


def test_a_host_makes_a_client_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "remote", host="http://pipelines", port=8080, password="secret-key")
    client = PipelineHook("remote").get_conn()
    assert client.url == "http://pipelines:8080"
    assert "secret-key" not in repr(client)


def test_a_file_of_authorities_without_any_is_said_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    connect(monkeypatch, "remote", host="https://127.0.0.1:9", extra={"ca_file": str(tmp_path / "ca.pem")})
    good, message = PipelineHook("remote").test_connection()
    assert not good
    assert f"the CA file {tmp_path / 'ca.pem'} cannot be used" in message


def test_no_host_makes_an_embedded_client_in_its_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    connect(monkeypatch, "local", extra={"home": str(tmp_path / "home")})
    client = PipelineHook("local").get_conn()
    assert client.is_embedded
    assert str(tmp_path / "home") in repr(client)


def test_the_default_connection_need_not_exist_any_other_must(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path))
    monkeypatch.delenv("AIRFLOW_PIPELINES_URL", raising=False)
    assert PipelineHook().get_conn().is_embedded
    with pytest.raises(AirflowNotFoundException, match="no connection 'missing'"):
        PipelineHook("missing").get_conn()


def test_a_missing_spark_connection_is_an_error_not_a_guess(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    connect(monkeypatch, "cluster", extra={"home": str(tmp_path), "deployer": "dedicated", "spark_conn_id": "nowhere"})
    with pytest.raises(AirflowNotFoundException, match="nowhere"):
        PipelineHook("cluster").get_conn()


def test_test_connection_gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "away", host="http://127.0.0.1", port=9)
    started = time.monotonic()
    good, message = PipelineHook("away").test_connection()
    assert not good
    assert "cannot talk to" in message
    assert time.monotonic() - started < 10


@pytest.mark.core
@pytest.mark.processes
def test_test_connection_says_what_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    app = FastAPI()
    app.get("/v0/config")(lambda: {"version": "1.2.3"})
    app.get("/v0/pipelines")(lambda: [{}, {}])
    with serving(app) as url:
        connect(monkeypatch, "there", host=url)
        assert PipelineHook("there").test_connection() == (
            True,
            f"PipelineClient(url={url!r}) answers: version 1.2.3, 2 pipeline(s)",
        )


def test_testing_the_embedded_service_makes_and_needs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no java"))
    connect(monkeypatch, "local", extra={"home": str(tmp_path / "new" / "home")})
    good, message = PipelineHook("local").test_connection()
    assert good, message
    assert "there is no store yet" in message
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    connect(monkeypatch, "local", extra={"home": str(tmp_path / "file" / "home")})
    good, message = PipelineHook("local").test_connection()
    assert not good
    assert "is no folder" in message


def test_testing_the_embedded_service_asks_for_its_spark_connection_and_its_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connect(monkeypatch, "cluster", extra={"home": str(tmp_path), "deployer": "dedicated", "spark_conn_id": "nowhere"})
    good, message = PipelineHook("cluster").test_connection()
    assert (good, "nowhere" in message) == (False, True)
    connect(monkeypatch, "local", extra={"home": str(tmp_path)})
    monkeypatch.setenv("AIRFLOW_PIPELINES_DATABASE_URL", "nonsense://x/y")
    good, message = PipelineHook("local").test_connection()
    assert (good, "database of the store cannot be used" in message) == (False, True)


def test_status_of_what_is_and_what_is_not(scripted: ScriptedService) -> None:
    scripted.up("Running")
    assert PipelineHook().status("p") is PipelineStatus.RUNNING
    assert PipelineHook().status("q") is PipelineStatus.NOT_FOUND


def test_observing_asks_the_host_only_when_there_is_one(scripted: ScriptedService) -> None:
    scripted.pipeline()
    assert PipelineHook().observe("p", TokenCondition("t")).answer is None
    assert scripted.asked("GET") == [""]
    scripted.up()
    scripted.answers["GET", "completion_status"] = {"status": "complete", "step": 1}
    assert PipelineHook().observe("p", TokenCondition("t")).answer == {"status": "complete", "step": 1}
    assert scripted.calls[-1][2] == {"token": "t"}


def test_waiting_ends_when_the_condition_holds(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = [scripted.up("Initializing"), scripted.up("Running")]
    found = PipelineHook().wait("p", StartedCondition(("RUNNING",)), timeout_s=5, poll_interval_s=0.01)
    assert found == {"status": "RUNNING"}


def test_waiting_for_a_dead_pipeline_fails_at_once_with_its_error(scripted: ScriptedService) -> None:
    error = {"error_code": "HostLost", "message": "gone\nlast words", "details": {}}
    scripted.pipeline(deployment_error=error)
    with pytest.raises(
        PipelineFailedError, match=r"(?s)waiting for status RUNNING of pipeline 'p'.*HostLost: gone\nlast words"
    ) as raised:
        PipelineHook().wait("p", StatusCondition(("RUNNING",)), timeout_s=60, poll_interval_s=1)
    assert raised.value.deployment_error == error


def test_a_wait_whose_time_is_up_says_what_it_saw_last(scripted: ScriptedService) -> None:
    scripted.up("Paused")
    with pytest.raises(PipelineTimeoutError, match="waiting for status RUNNING of pipeline 'p': time is up, last seen: PAUSED"):
        PipelineHook().wait("p", StatusCondition(("RUNNING",)), timeout_s=0.05, poll_interval_s=0.01)


def test_an_outage_is_borne_with_for_so_many_seconds(scripted: ScriptedService) -> None:
    scripted.up()
    trouble = (500, {"error_code": "InternalError", "message": "stumbled"})
    good = {"global_metrics": {"total_input_records": 1, "total_processed_records": 1, "incarnation_uuid": "i"}}
    scripted.answers["GET", "stats"] = [*[trouble] * 20, good]
    PipelineHook(outage_budget_s=30).wait("p", IdleCondition(0), timeout_s=5, poll_interval_s=0.001)
    scripted.answers["GET", "stats"] = [trouble]
    with pytest.raises(PipelineConnectionError, match="the service has been away for 0 s: stumbled"):
        PipelineHook(outage_budget_s=0.02).wait("p", IdleCondition(0), timeout_s=5, poll_interval_s=0.01)


def test_an_error_that_does_not_pass_ends_a_wait(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = (401, {"error_code": "Unauthorized", "message": "no key"})
    with pytest.raises(PipelineAPIError, match="no key"):
        PipelineHook().wait("p", StatusCondition(("RUNNING",)), timeout_s=5, poll_interval_s=0.01)


def test_a_program_that_does_not_compile_is_shown_with_its_lines(scripted: ScriptedService) -> None:
    message = {
        "start_line_number": 5,
        "start_column": 32,
        "error_type": "Compilation error",
        "message": "Object 'blah' not found",
        "snippet": "    5|select * from blah",
    }
    program_error = {"sql_compilation": {"exit_code": 1, "messages": [message]}}
    scripted.pipeline(program_status="SqlError", program_error=program_error)
    with pytest.raises(ProgramCompilationError, match=r"(?s)5:32: Compilation error: Object 'blah' not found.*select \* from blah"):
        PipelineHook().wait_until_compiled("p", 1, timeout_s=5)


def test_a_program_that_compiles_with_warnings_has_them_in_the_log(
    scripted: ScriptedService, capsys: pytest.CaptureFixture[str]
) -> None:
    message = {
        "start_line_number": 2,
        "start_column": 3,
        "warning": True,
        "error_type": "No effect",
        "message": "USING does nothing",
    }
    program_error = {"sql_compilation": {"exit_code": 0, "messages": [message]}}
    scripted.pipeline(program_status="Success", program_error=program_error, program_version=1)
    PipelineHook().wait_until_compiled("p", 1, timeout_s=5)
    # Airflow's own logger writes to the standard output.
    assert "2:3: warning: No effect: USING does nothing" in capsys.readouterr().out


def test_the_newest_checkpoint_is_the_one_with_the_greatest_uuid(scripted: ScriptedService) -> None:
    checkpoints = [{"uuid": "0192", "steps": 1}, {"uuid": "0193", "steps": 2}, {"uuid": "0191", "steps": 0}]
    scripted.pipeline(storage_status_details={"checkpoints": checkpoints})
    assert PipelineHook().newest_checkpoint("p") == {"uuid": "0193", "steps": 2}
    scripted.pipeline()
    assert PipelineHook().newest_checkpoint("p") == {}


def test_names_cannot_leave_their_place_in_a_path(scripted: ScriptedService) -> None:
    assert PipelineHook().descriptor("../config") is None
    assert scripted.asked("GET") == [""]


def test_the_hook_is_what_airflow_makes_for_the_connection_type(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "remote", host="http://pipelines")
    hook = PipelineHook.get_hook("remote")
    assert isinstance(hook, PipelineHook)
    assert isinstance(hook.get_conn(), PipelineClient)


def test_a_wrong_pair_of_spark_packages_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    connect(monkeypatch, "local", extra={"home": str(tmp_path)})
    monkeypatch.setattr("airflow_pipelines.common.pins.version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.get)
    with pytest.raises(SetupError, match=r"pyspark 4\.3\.0 and pyspark-client 4\.2\.0.*Fix: pip"):
        PipelineHook("local").get_conn()


def test_a_service_in_the_network_needs_no_spark_here(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "remote", host="http://pipelines")
    monkeypatch.setattr("airflow_pipelines.common.pins.version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.get)
    assert PipelineHook("remote").get_conn().url == "http://pipelines"


def test_how_far_a_bootstrap_is_is_asked_for_and_told(scripted: ScriptedService, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.answers["GET", ""] = [scripted.up("Bootstrapping"), scripted.up("Running")]
    scripted.answers["GET", "stats"] = {"bootstrap_progress": {"rows_read": 30, "rows": 100}}
    PipelineHook().wait("p", StartedCondition(("RUNNING",)), timeout_s=5, poll_interval_s=0.01)
    assert scripted.asked("GET") == ["", "stats", ""]
    assert "'p': BOOTSTRAPPING, 30 of 100 rows read for changed views" in capsys.readouterr().out


def test_a_bootstrap_that_says_nothing_of_itself_is_waited_for(scripted: ScriptedService) -> None:
    scripted.answers["GET", ""] = [scripted.up("Bootstrapping"), scripted.up("Bootstrapping"), scripted.up("Running")]
    refused = (503, {"error_code": "BootstrapInProgress", "message": "later", "details": {}})
    scripted.answers["GET", "stats"] = [refused, {}]
    PipelineHook().wait("p", StartedCondition(("RUNNING",)), timeout_s=5, poll_interval_s=0.01)


def test_the_page_names_every_method_of_the_hook(repository: Path) -> None:
    table = (repository / "docs" / "airflow.md").read_text().partition("## The hook")[2].partition("\n## ")[0]
    methods = {name for name, value in vars(PipelineHook).items() if not name.startswith("_") and inspect.isfunction(value)}
    assert sorted(name for name in methods if f"`{name}()`" not in table) == []
