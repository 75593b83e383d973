"""What is missing on the machine and a host that dies, as a user meets it through the SDK."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_pipelines import (
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
    RuntimeConfig,
    Storage,
)
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.service.control_plane import ControlPlane
from tests.fixtures.sdk import eventually
from tests.integration.bad_input import T, named

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


# --- what is missing on the machine -------------------------------------------------------------------------------------------


@pytest.mark.core
def test_no_java_reaches_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    client = PipelineClient(home=tmp_path / "home")
    with pytest.raises(RuntimeError, match=r"JAVA_HOME is .*nowhere.*apt-get install openjdk-17-jre-headless"):
        PipelineBuilder(client, "p", T).create(timeout_s=20)
    pipeline = named(client, "p")
    with pytest.raises(PipelineAPIError, match="put that right, send the program again") as caught:
        pipeline.start()
    assert caught.value.error_code == "CannotStartWithCompilationError"
    # The same program given again is compiled again.
    folder = tmp_path / "java"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    (folder / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    pipeline.modify(sql=T)
    with pytest.raises((PipelineFailedError, PipelineAPIError)):
        pipeline.start(timeout_s=20)
    eventually(lambda: "is Java 11, but Spark 4.2.0 needs Java 17 or 21" in str(pipeline.program_error()))
    client.close()


@pytest.mark.core
def test_a_wrong_pair_of_packages_reaches_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_pipelines.common.pins._version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.get)
    with pytest.raises(RuntimeError, match=r"pyspark 4\.3\.0 and pyspark-client 4\.2\.0.*Fix: pip uninstall"):
        PipelineBuilder(PipelineClient(home=tmp_path), "p", T).create(timeout_s=20)


@pytest.mark.core
@pytest.mark.parametrize("variable", ["home", "AIRFLOW_PIPELINES_STORAGE"])
def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (tmp_path / "file").write_text("")
    folder, home = tmp_path / "file" / "sub", tmp_path / "home"
    if variable == "home":
        home = folder
    else:
        monkeypatch.setenv(variable, str(folder))
    with pytest.raises(PipelineAPIError, match=f"{folder}.*(Not a directory|cannot be created)") as caught:
        PipelineClient(home=home).version()
    assert (caught.value.status_code, caught.value.error_code) == (503, "StoreUnavailable")
    assert (tmp_path / "file").read_text() == ""


FORBIDDEN = """
import os, sys
from airflow_pipelines import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError
allowed, forbidden = sys.argv[1:]
# Everything is imported as the one who may read it.
PipelineClient(home=allowed).version()
os.setgid(65534)
os.setuid(65534)
try:
    PipelineClient(home=forbidden).post("/v0/pipelines", json={"name": "p", "program_code": ""})
except PipelineAPIError as error:
    print(error.error_code, error.message)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into. Each run of pytest on the machine closes the one that has ``tmp_path``."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("what", ["folder", "database"])
def test_a_folder_without_permission(open_folder: Path, what: str) -> None:
    forbidden = open_folder / "forbidden"
    PipelineClient(home=forbidden).version()
    forbidden.chmod(0o700 if what == "folder" else 0o755)
    done = subprocess.run(
        [sys.executable, "-c", FORBIDDEN, str(open_folder / "allowed"), str(forbidden)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("StoreUnavailable "), done.stdout + done.stderr
    assert str(forbidden) in done.stdout
    assert re.search(r"let this user write|user may write", done.stdout), done.stdout


# --- a real host dies -----------------------------------------------------------------------------------------------------------

ACCESS_KEY, SECRET_KEY, API_KEY = "ak-2f9c11d7", "sk-8e41ba07", "key-77d0c3aa"


@dataclass
class Outcome:
    """What became of a call in a thread of its own."""

    call: Callable[[], Any]
    error: Exception | None = None
    ended_at: float = 0.0
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.call()
        except Exception as error:  # noqa: BLE001 - it is looked at afterwards
            self.error = error
        self.ended_at = time.monotonic()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PipelineClient, ControlPlane]]:
    """A store of its own, whose first use starts a real shared host."""
    home = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_PIPELINES_MASTER", "local[2]")
        patch.setenv("AIRFLOW_PIPELINES_DRIVER_MEMORY", "1g")
        client = PipelineClient(home=home, api_key=API_KEY)
    control_plane = ControlPlane(Settings.load(home))
    yield client, control_plane
    for host in control_plane.registry.live_hosts():
        control_plane.hosts.end(host)
    control_plane.close()
    client.close()


def requests_from_now_on(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are asked for from now on, by the client and by the service inside it."""
    asked: list[str] = []

    def noting(send: Callable[..., Any]) -> Callable[..., Any]:
        def noted(client: Any, request: httpx.Request, *arguments: Any, **options: Any) -> Any:
            asked.append(request.url.path)
            return send(client, request, *arguments, **options)

        return noted

    for kind in (httpx.Client, httpx.AsyncClient):
        monkeypatch.setattr(kind, "send", noting(kind.send))
    return asked


def followed(pipeline: Pipeline) -> str:
    """The log as it is followed, up to the end of the host."""
    lines = []
    for line in pipeline.logs():
        lines.append(line)
        if "lost" in line:
            break
    return "\n".join(lines)


@pytest.mark.core(slow_because="it starts a host of its own, and kills it")
def test_a_host_that_dies_is_heard_of_at_once_and_no_secret_is(
    real: tuple[PipelineClient, ControlPlane],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, control_plane = real
    home = control_plane.settings.home
    sync = {"bucket": f"file://{home}/bucket", "access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    config = RuntimeConfig(storage=Storage({"backend": {"name": "file", "config": {"sync": sync}}}))
    program = "create table t (id bigint not null) with ('materialized' = 'true'); create view v as select id from t;"
    pipeline = PipelineBuilder(client, "mortal", program, runtime_config=config).create(timeout_s=200)
    pipeline.start_paused(timeout_s=60)
    pipeline.wait_for_token(pipeline.input_json("t", {"id": 1}, force=True, wait=False), timeout_s=60)
    pipeline.checkpoint(wait=True, timeout_s=60)
    pipeline.sync_checkpoint(wait=True, timeout_s=60)
    [host] = control_plane.registry.live_hosts("shared")
    assert host.pid is not None
    listener = pipeline.listen("v")
    of_host = f"/deployments/{client.get(pipeline._path())['deployment_id']}"
    asked = requests_from_now_on(monkeypatch)
    waiting = {
        "query": Outcome(lambda: pipeline.execute("insert into t values (3)")),
        "ingress": Outcome(lambda: client.post(pipeline._path("ingress", "t"), params={"format": "csv"}, content="4\n")),
        "idle": Outcome(lambda: pipeline.wait_for_idle(60, 120)),
        "status": Outcome(lambda: pipeline.wait_for_status(PipelineStatus.RUNNING, 120)),
        "listener": Outcome(lambda: listener.join(120)),
    }
    awaited = {f"{of_host}/query", f"{of_host}/ingress/t", f"{of_host}/stats", pipeline._path()}
    eventually(lambda: awaited <= set(asked))
    os.kill(host.pid, signal.SIGKILL)
    killed = time.monotonic()
    for name, outcome in waiting.items():
        outcome.thread.join(20)
        assert not outcome.thread.is_alive(), f"{name} hangs"
        assert outcome.ended_at - killed < 10, name
        if name != "listener":
            assert isinstance(outcome.error, PipelineAPIError if name in ("query", "ingress") else PipelineFailedError), name
            assert "The last lines of the pipeline's log" in str(outcome.error), f"{name}: no last lines of the log"
            assert host.url not in str(outcome.error), "others use that host, too"
    with pytest.raises(PipelineFailedError, match="The host of the pipeline was lost"):
        listener.to_dict()
    assert pipeline.status() is PipelineStatus.STOPPED
    error = pipeline.deployment_error()
    assert error is not None
    assert error["error_code"] == "RuntimeError.HostLost"

    # Everything that was said and written, and none of the secrets in it.
    texts = {
        "errors": "\n".join(f"{outcome.error!r} {outcome.error}" for outcome in waiting.values()),
        "reprs": f"{client!r} {pipeline!r} {control_plane.settings!r} {vars(listener)} {host!r}",
        "deployment error": repr((error, pipeline.errors())),
        "events": repr([pipeline.event(each["event_id"]) for each in pipeline.events()]),
        "logs": followed(pipeline),
        "python's logging": caplog.text,
        "output": "".join(capfd.readouterr()),
        "bucket": "\n".join(path.read_text(errors="replace") for path in (home / "bucket").rglob("*.json")),
        **{str(path): path.read_text(errors="replace") for path in (home / "logs").glob("*.log")},
    }
    assert "now Paused" in texts["logs"]
    assert texts["bucket"]
    for where, text in texts.items():
        for secret in (ACCESS_KEY, SECRET_KEY, API_KEY, host.token):
            assert secret not in text, where

    for path in home.rglob("*"):
        if path.is_file() and home / "secrets" not in path.parents:
            content = path.read_bytes()
            assert ACCESS_KEY.encode() not in content, path
            assert SECRET_KEY.encode() not in content, path

    # What was committed is still there for the next start.
    assert len((pipeline.storage_status_details() or {})["checkpoints"]) == 1


@pytest.mark.core
def test_a_database_password_is_never_told(tmp_path: Path) -> None:
    environment = {**os.environ, "AIRFLOW_PIPELINES_DATABASE_URL": "postgresql://me:pw-5d1c@127.0.0.1:1/store"}
    command = [sys.executable, "-m", "airflow_pipelines.cli", "serve", "--port", "0", "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 1
    assert "127.0.0.1:1/store" in done.stderr
    assert "Traceback" not in done.stderr
    assert "pw-5d1c" not in done.stdout + done.stderr
