"""How a host ends that nobody else ends: what it needs of itself stands still."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.host import main


class Left(Exception):
    """Stands for the end of the process."""


def make_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[main.Host, list[str | None]]:
    told: list[str | None] = []

    def leave(code: int) -> None:
        raise Left(code)

    class Registry:
        def end(self, _: Any, reason: str | None = None) -> None:
            told.append(reason)

    class Row:
        host_id, kind, log_path = 1, "shared", str(tmp_path / "host.log")

    monkeypatch.setattr(main.os, "_exit", leave)
    row: Any = Row()
    registry: Any = Registry()
    store: Any = None
    return main.Host(row, registry, Settings.load(tmp_path), store), told


@pytest.mark.rest
def test_a_host_without_its_watchdog_leaves_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, told = make_host(tmp_path, monkeypatch)
    monkeypatch.setattr(main, "STUCK_S", 3600)
    watchdog = threading.Thread(target=lambda: None)
    watchdog.start()
    watchdog.join()
    try:
        with pytest.raises(Left):
            host._wait(None, watchdog)
    finally:
        main.faulthandler.cancel_dump_traceback_later()
    assert told == ["its watchdog has ended"]


def test_a_host_whose_data_plane_stays_silent_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, told = make_host(tmp_path, monkeypatch)
    monkeypatch.setattr(main, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(main, "STUCK_S", 0)

    class Health:
        problem = None

    health: Any = Health()
    fleet: Any = None
    with pytest.raises(Left):
        host._watch(False, fleet, health)
    [reason] = told
    assert "its data plane did not answer for" in (reason or "")


@pytest.mark.processes
def test_python_that_stands_still_ends_and_leaves_in_the_log_where(tmp_path: Path) -> None:
    script = """
import ctypes, sys, threading
from pathlib import Path
from airflow_pipelines.host import main
from airflow_pipelines.common.settings import Settings

main.STUCK_S = 3
class Row:
    host_id, kind, log_path = 1, "shared", "host.log"
host = main.Host(Row(), None, Settings.load(Path(sys.argv[1])), None)
alive = threading.Thread(target=threading.Event().wait, daemon=True)
alive.start()

def hold_pythons_lock():
    ctypes.PyDLL(None).sleep(60)

threading.Timer(1.5, hold_pythons_lock).start()
host._wait(None, alive)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 1
    assert "hold_pythons_lock" in done.stderr
