"""Pipelines on hosts that are rows of the store and plain processes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import CompilationStatus
from airflow_pipelines.service import processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.records import PipelineRecord
from tests.service import records as given
from tests.service.waiting import until


def host_row(control_plane: ControlPlane, tmp_path: Path, **fields: object) -> HostRecord:
    log = tmp_path / "host.log"
    log.write_text("first line\nOutOfMemoryError: Java heap space\n")
    values: dict[str, object] = {
        "host_id": given.HOST, "kind": "dedicated", "deployment_id": given.DEPLOYMENT, "deployment": None,
        "url": "http://127.0.0.1:9", "token": "s3cret", "pid": os.getpid(), "machine": processes.this_machine(),
        # Nobody beats here, and a test may be slow: the last beat is one that will be new until the test has ended.
        "log_path": str(log), "submitted_at": datetime.now(UTC), "heartbeat": time.time() + 300, "ended_at": None,
    }  # fmt: skip
    host = HostRecord(**{**values, **fields})  # type: ignore[arg-type]
    control_plane.registry.submit(host)
    return host


def put(control_plane: ControlPlane, record: PipelineRecord) -> PipelineRecord:
    """A pipeline in a given state, deployed on a dedicated host."""
    record = replace(
        record, deployer="dedicated", consumed_sequence=0, provisioning_since=record.provisioning_since and datetime.now(UTC)
    )
    control_plane.store.create(record)
    return record


def wait_system_error(control_plane: ControlPlane) -> PipelineRecord:
    deadline = time.monotonic() + 10
    while (record := control_plane.pipeline("p")).program_status is not CompilationStatus.SYSTEM_ERROR:
        assert time.monotonic() < deadline, record
        time.sleep(0.02)
    return record


def wait_stopped(control_plane: ControlPlane, limit_s: float = 10.0) -> PipelineRecord:
    deadline = time.monotonic() + limit_s
    while (record := control_plane.pipeline("p")).deployment_status != "Stopped":
        assert time.monotonic() < deadline, record
        time.sleep(0.01)
    return record


def reconciled(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, rounds: int = 3) -> None:
    """Wait until the background has seen to the pipeline some times, or has nothing more to do for it."""
    background, pipeline_id, found = control_plane.background, control_plane.store.require("p").id, []
    look = background._look

    def counted(each: UUID) -> PipelineRecord | None:
        found.append(each)
        return look(each)

    with monkeypatch.context() as patched:
        patched.setattr(background, "_look", counted)
        background.wake(pipeline_id)
        until(lambda: len(found) >= rounds or pipeline_id not in background._wakes)
    assert found
