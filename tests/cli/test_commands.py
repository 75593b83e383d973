"""The command line."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from typer.testing import CliRunner

from airflow_pipelines.cli.commands import cli
from airflow_pipelines.common.secret_files import SecretFiles
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.version import platform_version
from tests.host.saved import make_store
from tests.running.service_double import ServiceDouble

pytestmark = pytest.mark.core

COMMAND = [sys.executable, "-m", "airflow_pipelines.cli"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_version() -> None:
    assert CliRunner().invoke(cli, ["version"]).output.strip() == platform_version()


def test_secrets_are_written_from_the_input_and_never_shown(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path)]
    runner = CliRunner()
    assert runner.invoke(cli, ["secrets", "set", "store/key", *home], input="hush hush\n").exit_code == 0
    assert SecretFiles(tmp_path / "secrets").read("store/key") == "hush hush"
    listed = runner.invoke(cli, ["secrets", "list", *home])
    assert listed.output == "store/key\n"
    for arguments, text, said in (
        (["set", "../x"], "v", "no name of a secret"),
        (["set", "x"], "\n", "The value is empty"),
        (["delete", "none"], "", "There is no secret 'none'"),
    ):
        refused = runner.invoke(cli, ["secrets", *arguments, *home], input=text)
        assert refused.exit_code == 1
        assert said in refused.output
        assert "Traceback" not in refused.output
    assert runner.invoke(cli, ["secrets", "delete", "store/key", *home]).exit_code == 0
    assert runner.invoke(cli, ["secrets", "list", *home]).output == ""


@pytest.fixture
def certificate(processes: None, tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 that signs itself, with its key in the same file."""
    path = tmp_path / "tls.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", "-"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    path.write_text(path.read_text() + made.stdout)
    return path


@pytest.mark.core(slow_because="servers start and end")
def test_serve_listens_where_it_says_and_outlives_nothing(tmp_path: Path, certificate: Path) -> None:
    home = ["--home", str(tmp_path)]
    stored = CliRunner().invoke(cli, ["keys", "create", "team", *home]).output.strip()
    command = [*COMMAND, "serve", "--port", "0", *home, "--api-key", "k3y", "--generate-key", "--allow-host", "other"]
    command += ["--tls-certificate", str(certificate)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server,
        httpx.Client(verify=ssl.create_default_context(cafile=str(certificate))) as client,
    ):
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            url = next(word for word in line.split() if word.startswith("https://127.0.0.1:"))
            assert "k3y" not in line
            assert client.get(f"{url}/healthz").json() == {"status": "healthy"}
            assert client.get(f"{url}/v0/config").status_code == 401
            for key in ("k3y", stored, server.stdout.readline().split()[-1]):
                headers = {"Authorization": f"Bearer {key}"}
                assert client.get(f"{url}/v0/config", headers=headers | {"Host": "other"}).status_code == 200
                assert client.get(f"{url}/v0/config", headers=headers | {"Host": "another"}).status_code == 403
            taken = run("serve", "--port", url.rsplit(":", 1)[1], "--home", str(tmp_path))
            assert taken.returncode == 1
            assert len(taken.stderr.strip().splitlines()) == 1
            assert "choose another --port" in taken.stderr
        finally:
            server.terminate()
            assert server.wait(20) is not None


def test_a_certificate_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("nonsense")
    for options in (["--tls-certificate", str(tmp_path / "bad.pem")], ["--tls-key", str(tmp_path / "bad.pem")]):
        line = _failure("serve", "--home", str(tmp_path), "--port", "0", *options)
        assert len(line.strip().splitlines()) == 1
        assert "certificate" in line


def test_keys_are_made_listed_and_deleted(tmp_path: Path) -> None:
    home = ["--home", str(tmp_path)]
    key = CliRunner().invoke(cli, ["keys", "create", "reports", "--scope", "read", *home]).output.strip()
    assert len(key) > 40
    assert "already exists" in _failure_of_problem("keys", "create", "reports", *home)
    listed = CliRunner().invoke(cli, ["keys", "list", *home]).output
    assert "reports" in listed
    assert "read" in listed
    assert key not in listed
    for file in tmp_path.glob("store.sqlite*"):
        assert key.encode() not in file.read_bytes()
    assert CliRunner().invoke(cli, ["keys", "delete", "reports", *home]).exit_code == 0
    assert "no API key named" in _failure_of_problem("keys", "delete", "reports", *home)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
def test_serve_is_not_open_to_everybody_by_accident(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_PIPELINES_API_KEYS", raising=False)
    result = CliRunner().invoke(cli, ["serve", "--host", address, "--home", str(tmp_path)])
    assert result.exit_code == 1
    assert "--generate-key" in result.output
    assert "keys create" in result.output


@pytest.mark.processes
def test_serve_without_a_key_says_so_and_makes_one_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_PIPELINES_API_KEYS", raising=False)
    monkeypatch.setattr("uvicorn.Server.run", lambda _server, sockets: sockets[0].close())
    command = ["serve", "--port", "0", "--home", str(tmp_path)]
    first, second = CliRunner().invoke(cli, command).output.splitlines()
    assert "http://127.0.0.1:" in first
    assert "no API key" in second
    assert "--generate-key" in second
    made = [CliRunner().invoke(cli, [*command, "--generate-key"]).output.splitlines() for _ in range(2)]
    assert all("no API key" not in lines[1] for lines in made)
    assert made[0][1].split()[-1] != made[1][1].split()[-1]


@pytest.mark.processes
def test_a_store_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("pipelines", "list", "--home", str(tmp_path / "file" / "home"))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "file" / "home") in result.stderr


def test_pipelines_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.service.deployers.shared.SharedDeployer.host", lambda _: None)
    control_plane = ControlPlane(Settings.load(tmp_path))
    control_plane.create({"name": "grades", "program_code": ""})
    control_plane.close()
    output = CliRunner().invoke(cli, ["pipelines", "list", "--home", str(tmp_path)]).output
    assert "grades" in output
    assert "Stopped" in output


def test_fsck_tells_good_storage_from_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.service.deployers.shared.SharedDeployer.host", lambda _: None)
    control_plane = ControlPlane(Settings.load(tmp_path))
    folder = control_plane.files.storage(control_plane.create({"name": "orders", "program_code": ""}))
    control_plane.close()

    def fsck(expected_code: int) -> str:
        result = CliRunner().invoke(cli, ["fsck", "orders", "--home", str(tmp_path)])
        assert result.exit_code == expected_code, result.output
        return result.output

    assert "from scratch: there is nothing in the storage" in fsck(0)
    older, newer = make_store(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    output = fsck(0)
    assert f"checkpoint {newer.uuid} | good  | step 6, 60 processed records" in output.replace("│", "|")
    assert "8 files agree with their names; 0 are needed by nothing" in output
    assert f"6 steps on top of {newer.uuid}" in output
    assert f"from checkpoint {newer.uuid}, step 6, and replays 6 steps of journal.log" in output
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    batch = min((folder / "batches").glob("*.parquet"))
    batch.write_bytes(batch.read_bytes()[:-1])
    journal = folder / "journal.log"
    journal.write_bytes(journal.read_bytes().replace(b'"offset":11000', b'"offset":11001'))
    output = fsck(1)
    assert f"The batch file {batch} is damaged" in output
    assert "Needed by " in output
    assert "record 5 of 6 does not agree with its checksum" in output
    assert "The pipeline cannot start: " in output
    (folder / "checkpoints" / f"{newer.uuid}.json").unlink()
    output = fsck(1)
    assert "is missing" in output
    assert str(older.uuid) in output


@pytest.mark.processes
def test_hosts_are_listed_and_stopped(tmp_path: Path) -> None:
    control_plane = ControlPlane(Settings.load(tmp_path))
    assert CliRunner().invoke(cli, ["hosts", "stop", "--home", str(tmp_path)]).output.strip() == "There is no shared host"
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = HostRecord(
            host_id=UUID(int=3), kind="shared", deployment_id=None, deployment=None, url=f"http://127.0.0.1:{unused.getsockname()[1]}",
            token="s3cret", pid=_ended_process(), machine=socket.gethostname(), log_path="/logs/host.log",
            submitted_at=datetime.now(UTC), heartbeat=time.time(), ended_at=None,
        )  # fmt: skip
    control_plane.registry.submit(host)
    listed = CliRunner().invoke(cli, ["hosts", "list", "--home", str(tmp_path)]).output
    assert str(host.host_id) in listed
    assert "lost" in listed
    assert "s3cret" not in listed
    assert "no host id" in _failure("hosts", "stop", "abc", "--home", str(tmp_path))
    assert "no live host" in _failure("hosts", "stop", str(UUID(int=4)), "--home", str(tmp_path))
    assert CliRunner().invoke(cli, ["hosts", "stop", str(host.host_id), "--home", str(tmp_path)]).exit_code == 0
    assert control_plane.registry.live_hosts() == []
    control_plane.close()


def _failure(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 1
    return result.output


def _failure_of_problem(*arguments: str) -> str:
    """The message of a failure that :func:`~airflow_pipelines.cli.commands.main` makes one line of."""
    problem = CliRunner().invoke(cli, list(arguments)).exception
    assert isinstance(problem, Problem)
    return problem.message


def _ended_process() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> ServiceDouble:
    """A service with a pipeline ``p`` that runs."""
    service = ServiceDouble()
    service.exists("Running", stream_files={"fraud.py": ""})
    monkeypatch.setattr("airflow_pipelines.cli.commands.PipelineClient", lambda *_, **__: PipelineClient(app=service))
    return service


@pytest.mark.parametrize(("options", "force"), [([], "false"), (["--force"], "true")])
def test_a_pipeline_is_stopped_with_a_checkpoint_unless_that_is_not_wanted(
    double: ServiceDouble, options: list[str], force: str
) -> None:
    done = CliRunner().invoke(cli, ["pipelines", "stop", "p", *options])
    assert (done.exit_code, done.output) == (0, "Stopped pipeline p\n")
    assert double.verbs == ["stop"]
    assert double.parameters["stop"] == f"force={force}"


def test_a_stream_program_is_drawn(double: ServiceDouble, tmp_path: Path) -> None:
    path = tmp_path / "graph.svg"
    assert CliRunner().invoke(cli, ["pipelines", "graph", "p"]).output == "<svg/>\n"
    assert CliRunner().invoke(cli, ["pipelines", "graph", "p", "--output", str(path)]).exit_code == 0
    assert path.read_text() == "<svg/>"


def test_statistics_show_connectors_and_what_functions_have_counted(double: ServiceDouble) -> None:
    task = {"task": 0, "watermark": 1_500, "state_bytes": 2_048, "values": {"late": 3}}
    operators = {"score": {"name": "Score", "tasks": [task]}}
    double.statistics = {"stream_metrics": operators, "warnings": ["cards gives nothing"]}
    shown = CliRunner().invoke(cli, ["pipelines", "stats", "p"]).output
    assert shown.startswith("p: 5 records processed\n")
    assert "late=3" in shown
    assert shown.endswith("Warning: cards gives nothing\n")
    written = CliRunner().invoke(cli, ["pipelines", "stats", "p", "--json"]).output
    assert json.loads(written)["stream_metrics"] == operators


@pytest.mark.parametrize("command", ["stop", "graph", "stats"])
def test_a_pipeline_that_is_not_there_is_one_clear_line(double: ServiceDouble, command: str) -> None:
    double.record = None
    done = CliRunner().invoke(cli, ["pipelines", command, "p"])
    assert done.exit_code == 1
    assert done.output.startswith("airflow-pipelines: none (UnknownPipelineName")
