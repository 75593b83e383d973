"""Hosts that hang are ended soon, and hosts that are merely slow are not. Hosts here are processes without Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from airflow_pipelines.common.cpu_time import cpu_time, wants_cpu
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.service import hang_watch, processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hang_watch import HangWatch, Reply
from airflow_pipelines.service.hosts import HostState
from tests.service import records as given

pytestmark = pytest.mark.core

STOPPED_S = 15.0
SWEEP_AND_KILL_S = 3.0


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    control_plane = ControlPlane(Settings.load(tmp_path))
    yield control_plane
    control_plane.close()


def submitted(control_plane: ControlPlane, number: int, **fields: object) -> HostRecord:
    """The row of a host, with a pipeline that runs on it."""
    host_id, deployment_id = UUID(int=100 + number), UUID(int=200 + number)
    host = HostRecord(
        host_id=host_id, kind="dedicated", deployment_id=deployment_id, deployment=None, url=None, token="t", pid=os.getpid(),
        machine=processes.this_machine(), log_path="host.log", submitted_at=datetime.now(UTC), heartbeat=None, ended_at=None,
    )  # fmt: skip
    host = replace(host, **fields)  # type: ignore[arg-type]
    control_plane.registry.submit(host)
    control_plane.store.create(
        replace(
            given.running(), id=UUID(int=300 + number), name=f"p{number}", host_id=host_id, deployment_id=deployment_id,
            deployer="dedicated", consumed_sequence=0,
        )
    )  # fmt: skip
    return host


@pytest.fixture
def hosts(processes: None, control_plane: ControlPlane) -> Iterator[list[HostRecord]]:
    """Four hosts that are up."""
    made = [submitted(control_plane, number) for number in range(4)]
    started = []
    for host in made:
        command = [sys.executable, "-m", "tests.service.standin_host", str(host.host_id), control_plane.settings.database_url]
        started.append(subprocess.Popen(command, start_new_session=True))
    try:
        eventually(lambda: len(up(control_plane)) == len(made), 60)
        yield up(control_plane)
    finally:
        for process in started:
            process.kill()
            process.wait(10)


def up(control_plane: ControlPlane) -> list[HostRecord]:
    return sorted(
        (host for host in control_plane.registry.live_hosts() if host.heartbeat is not None), key=lambda host: host.host_id.int
    )


def eventually(condition: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to pass within {limit_s} s"
        time.sleep(0.05)


@pytest.mark.rest
def test_hosts_that_hang_are_killed_and_one_that_only_does_not_beat_is_not(
    control_plane: ControlPlane, hosts: list[HostRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hang_watch.SUSPECT_S + hang_watch.QUESTIONS * hang_watch.ASK_S + SWEEP_AND_KILL_S < STOPPED_S
    for name in ("SUSPECT_S", "ASK_S", "SILENT_S"):
        monkeypatch.setattr(hang_watch, name, getattr(hang_watch, name) / 2)
    stopped, held, deaf, quiet = hosts
    control_plane.background.sweep_forever()
    headers = {"Authorization": "Bearer t"}
    assert stopped.pid is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    for host, path in ((held, "gil"), (deaf, "ready"), (deaf, "loop"), (quiet, "beat")):
        assert httpx.get(f"{host.url}/{path}", headers=headers, timeout=10, trust_env=False).is_success
    began = time.monotonic()
    hung = {"stopped": stopped, "deaf": deaf, "held": held}
    ended_after = {}
    while hung:
        # Threads that wait for Python's lock look for it again and again, and on a busy machine wait for a processor to do so.
        assert time.monotonic() - began < STOPPED_S + hang_watch.BUSY_S, f"still live: {hung}"
        for name, host in list(hung.items()):
            assert host.pid is not None
            if not processes.is_alive(host.pid):
                del hung[name]
                ended_after[name] = time.monotonic() - began
        time.sleep(0.05)
    assert max(ended_after["stopped"], ended_after["deaf"]) < STOPPED_S
    for number in range(3):
        eventually(lambda number=number: control_plane.pipeline(f"p{number}").deployment_status == "Stopped", 5)  # type: ignore[misc]
        error = control_plane.pipeline(f"p{number}").deployment_error
        assert error is not None
        assert error["error_code"] == "RuntimeError.HostLost"
        assert "sent no heartbeat for" in error["message"]
        assert "times in a row at http://127.0.0.1" in error["message"]
    # It has been silent in the store for as long as the others, and lives.
    assert [host.host_id for host in up(control_plane)] == [quiet.host_id]
    [found] = up(control_plane)
    assert control_plane.hosts.health(found).state is HostState.UP
    assert control_plane.pipeline("p3").deployment_status == "Running"


class Scripted:
    """Answers of a host, one after the other; the last one stays."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked = 0

    def __call__(self, _: HostRecord, limit_s: float) -> Reply:
        self.asked += 1
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_watch, "ASK_S", 0.1)
    monkeypatch.setattr(hang_watch, "SILENT_S", 0.25)


def verdict_on(control_plane: ControlPlane, host: HostRecord, ask: Scripted, questions: int = 10) -> str | None:
    """What a watch says of a host before it has asked more than so many questions."""
    watch = HangWatch(control_plane.registry, ask)
    deadline = time.monotonic() + 30
    while (found := watch.verdict(host)) is None and ask.asked <= questions:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    watch.close()
    return found


LATE = {"heartbeat": 1.0, "url": "http://127.0.0.1:9"}


@pytest.mark.rest
@pytest.mark.usefixtures("quick")
def test_one_answer_is_enough_and_what_could_not_be_asked_says_nothing(control_plane: ControlPlane) -> None:
    host = submitted(control_plane, 0, **LATE, machine="elsewhere")
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT), 100)
    assert verdict_on(control_plane, host, Scripted(Reply.NOT_ASKED)) is None
    slow = Scripted(*[Reply.SILENT, Reply.SILENT, Reply.ANSWERED] * 20)
    began = time.monotonic()
    assert verdict_on(control_plane, host, slow) is None
    assert time.monotonic() - began > 0.9 * hang_watch.ASK_S * (slow.asked - 1), "it is not asked more often than planned"


@pytest.mark.rest
@pytest.mark.usefixtures("quick")
def test_a_host_that_beats_again_lives(control_plane: ControlPlane) -> None:
    host = submitted(control_plane, 0, **LATE, machine="elsewhere")
    control_plane.registry.update(host.host_id, heartbeat=time.time())
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT)) is None


@pytest.mark.rest
@pytest.mark.usefixtures("quick")
def test_the_time_in_which_a_host_waits_for_a_processor_does_not_count(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = submitted(control_plane, 0, **LATE)
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.cpu_time", lambda _: 7.0)
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.wants_cpu", lambda _: True)
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT)) is None
    monkeypatch.setattr(hang_watch, "BUSY_S", 0.4)
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT), 100), "there is a limit to that, too"
    monkeypatch.undo()


@pytest.mark.usefixtures("quick")
def test_a_host_that_computes_is_waited_for(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    host = submitted(control_plane, 0, **LATE)
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.cpu_time", lambda _: time.monotonic())
    monkeypatch.setattr("airflow_pipelines.common.cpu_time.wants_cpu", lambda _: True)
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT)) is None
    monkeypatch.setattr(hang_watch, "BUSY_S", 0.4)
    assert verdict_on(control_plane, host, Scripted(Reply.SILENT), 100), "it computes for ever"
    monkeypatch.undo()


def work(seconds: float) -> None:
    """Use a processor for so long."""
    while time.thread_time() < seconds:
        sum(range(10_000))


@pytest.mark.processes
def test_processor_time_is_that_of_all_threads() -> None:
    before = cpu_time(os.getpid())
    assert before is not None
    worker = threading.Thread(target=work, args=(0.5,))
    worker.start()
    assert wants_cpu(os.getpid())
    worker.join()
    assert (cpu_time(os.getpid()) or 0) - before > 0.4
    with subprocess.Popen(["sleep", "60"]) as process:
        eventually(lambda: not wants_cpu(process.pid), 10)
        assert cpu_time(process.pid) is not None
        process.kill()
    assert cpu_time(2**22 + 1) is None
