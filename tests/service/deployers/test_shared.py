"""Finding the shared host among rows of hosts that start, hang or are gone."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from airflow_pipelines.host.registry import HostRecord
from airflow_pipelines.service import processes
from airflow_pipelines.service.control import Control
from airflow_pipelines.service.deployers.base import SubmitError
from airflow_pipelines.service.deployers.launch import Launcher
from airflow_pipelines.settings import Settings


def row(control: Control, tmp_path: Path, **fields: Any) -> UUID:
    (tmp_path / "host.log").write_text("the last word\n")
    values: dict[str, Any] = {
        "host_id": uuid7(), "kind": "shared", "deployment_id": None, "deployment": None, "url": "http://127.0.0.1:9", "token": "t",
        "pid": os.getpid(), "machine": processes.this_machine(), "log_path": str(tmp_path / "host.log"),
        "submitted_at": datetime.now(UTC), "heartbeat": time.time(), "ended_at": None,
    }  # fmt: skip
    control.registry.submit(HostRecord(**{**values, **fields}))
    return UUID(str({**values, **fields}["host_id"]))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the hosts that were launched, none of which is."""
    kinds: list[str] = []
    monkeypatch.setattr(Launcher, "launch", lambda _self, kind, **_: kinds.append(kind))
    return kinds


def test_a_live_host_is_used_and_a_starting_one_waited_for(tmp_path: Path, launched: list[str]) -> None:
    control = Control(Settings.load(tmp_path))
    row(control, tmp_path, heartbeat=None, url=None)
    assert control.compiler.host() is None
    live = row(control, tmp_path)
    assert control.compiler.place() == live
    assert launched == []
    control.close()


def test_without_a_host_one_is_launched(tmp_path: Path, launched: list[str]) -> None:
    control = Control(Settings.load(tmp_path))
    row(control, tmp_path, pid=2**22 + 1)
    assert control.compiler.host() is None
    assert launched == ["shared"]
    assert control.registry.live_hosts() == []
    control.close()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"pid": 2**22 + 1}, "is gone"), ({"submitted_at": datetime.now(UTC) - timedelta(hours=1)}, "not up after 300 s")],
)
def test_a_host_that_does_not_come_up_is_reported_once(
    tmp_path: Path, launched: list[str], fields: dict[str, Any], reason: str
) -> None:
    control = Control(Settings.load(tmp_path))
    row(control, tmp_path, heartbeat=None, url=None, **fields)
    with pytest.raises(SubmitError, match=reason) as failure:
        control.compiler.host()
    assert "the last word" in str(failure.value)
    assert launched == []
    assert control.compiler.host() is None
    assert launched == ["shared"]
    control.close()
