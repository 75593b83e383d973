"""Settings that the environment gives: numbers are checked before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines import PipelineClient
from airflow_pipelines.common.database import DatabaseError, open_database
from airflow_pipelines.common.settings import Settings, SettingsError
from airflow_pipelines.operators.lifecycle import DeletePipelineOperator

WHOLE = ["MAX_BODY_BYTES", "MAX_INGRESS_BYTES", "QUERY_RESULT_BYTES", "QUERY_CONCURRENCY"]
PORT = "SPARK_UI_PORT"
SECONDS = ["HEARTBEAT_TIMEOUT_S", "QUERY_TIMEOUT_S", "HOST_IDLE_S"]


@pytest.mark.parametrize("name", [*WHOLE, PORT, *SECONDS])
@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1,5", "16m", "0x10", "9" * 5000])
def test_no_number_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str
) -> None:
    monkeypatch.setenv(f"AIRFLOW_PIPELINES_{name}", text)
    whole = f"a whole number of at least {0 if name == PORT else 1}"
    expected = "a number of seconds, at least " if name in SECONDS else whole
    with pytest.raises(SettingsError) as raised:
        Settings.load(tmp_path)
    said = f"The environment variable AIRFLOW_PIPELINES_{name} is {text[:80]!r}, and should be {expected}"
    assert str(raised.value).startswith(said)


def test_nothing_is_the_default_and_zero_only_where_it_means_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    default = Settings.load(tmp_path)
    for name in [*WHOLE, PORT, *SECONDS]:
        monkeypatch.setenv(f"AIRFLOW_PIPELINES_{name}", " ")
    assert Settings.load(tmp_path) == default
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOST_IDLE_S", "0")
    monkeypatch.setenv("AIRFLOW_PIPELINES_QUERY_TIMEOUT_S", "0.5")
    monkeypatch.setenv("AIRFLOW_PIPELINES_SPARK_UI_PORT", "0")
    settings = Settings.load(tmp_path)
    assert (settings.host_idle_s, settings.query_timeout_s, settings.spark_ui_port) == (0, 0.5, 0)
    for name in [*WHOLE, "HEARTBEAT_TIMEOUT_S", "QUERY_TIMEOUT_S"]:
        monkeypatch.setenv(f"AIRFLOW_PIPELINES_{name}", "0")
        with pytest.raises(SettingsError, match=name):
            Settings.load(tmp_path)
        monkeypatch.delenv(f"AIRFLOW_PIPELINES_{name}")


def test_a_database_that_cannot_be_is_an_error_without_its_password() -> None:
    for url in ("postgresq://me:s3cret@x/y", "me:s3cret@x/y", "mysql+pymysql://me:s3cret@x/y"):
        with pytest.raises(DatabaseError, match=r"not one SQLAlchemy understands|driver pymysql is not installed") as raised:
            open_database(url)
        assert "s3cret" not in str(raised.value)


@pytest.mark.processes
def test_every_door_says_it_without_a_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW_PIPELINES_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_PIPELINES_QUERY_TIMEOUT_S", "soon")
    said = "The environment variable AIRFLOW_PIPELINES_QUERY_TIMEOUT_S is 'soon', and should be a number of seconds, at least 0.1"
    with pytest.raises(SettingsError, match=said):
        PipelineClient()
    with pytest.raises(AirflowFailException, match=said):
        DeletePipelineOperator(task_id="x", pipeline_name="p").execute({})
    host = "import sys; from airflow_pipelines.host.main import main; sys.exit(main(sys.argv[1:]))"
    doors = [["-m", "airflow_pipelines.cli", "serve", "--port", "0"], ["-c", host, "--host-id", str(UUID(int=1))]]
    running = [
        subprocess.Popen([sys.executable, *door], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for door in doors
    ]
    for process in running:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 2, output
        assert said in output
        assert "Traceback" not in output
