"""What hosts leave behind goes; what somebody still needs stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service import processes
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.housekeeping import Housekeeping, spark_folder
from tests.service import records as given
from tests.service.records import transition

NOBODY = 2**22 + 1
"""No process has this id."""


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    control_plane = ControlPlane(Settings.load(tmp_path))
    yield control_plane
    control_plane.close()


def left_behind(
    control_plane: ControlPlane, *, ended: timedelta | None, pid: int = NOBODY, host_id: UUID | None = None
) -> HostRecord:
    """A host that ended some time ago, or lives, with its log and its Spark folder."""
    host_id = host_id or uuid4()
    log = control_plane.settings.logs / f"host-{host_id}.log"
    for path in (log, log.with_name(f"{log.name}.1")):
        path.write_text("serving\n")
    folder = spark_folder(control_plane.settings, host_id) / "blockmgr-1"
    folder.mkdir(parents=True)
    (folder / "shuffle").write_text("rows")
    host = HostRecord(
        host_id=host_id, kind="dedicated", deployment_id=None, deployment=None, url="http://127.0.0.1:9", token="t", pid=pid,
        machine=processes.this_machine(), log_path=str(log), submitted_at=datetime.now(UTC), heartbeat=time.time(), ended_at=None,
    )  # fmt: skip
    control_plane.registry.submit(host)
    if ended is not None:
        control_plane.registry.update(host_id, ended_at=datetime.now(UTC) - ended)
    return host


def remains(control_plane: ControlPlane, host: HostRecord) -> tuple[bool, bool, bool]:
    """Whether a host's row, log and Spark folder are there."""
    logs = [path for path in control_plane.settings.logs.iterdir() if str(host.host_id) in path.name]
    return (
        control_plane.registry.get(host.host_id) is not None,
        bool(logs),
        spark_folder(control_plane.settings, host.host_id).exists(),
    )


def test_rows_logs_and_folders_of_hosts_go_in_their_time(control_plane: ControlPlane) -> None:
    old = left_behind(control_plane, ended=timedelta(days=8))
    recent = left_behind(control_plane, ended=timedelta(days=6))
    ending = left_behind(control_plane, ended=timedelta(seconds=1), pid=os.getpid())
    live = left_behind(control_plane, ended=None)
    needed = left_behind(control_plane, ended=timedelta(days=8), host_id=given.HOST)
    control_plane.store.create(replace(given.stopping(), consumed_sequence=0))
    Housekeeping(control_plane.settings, control_plane.store.engine).tidy()
    assert remains(control_plane, old) == (False, False, False)
    assert remains(control_plane, recent) == (True, True, False)
    assert remains(control_plane, ending) == (True, True, True)
    assert remains(control_plane, live) == (True, True, True)
    assert remains(control_plane, needed) == (True, True, False)


def test_transitions_that_the_record_has_taken_in_go(control_plane: ControlPlane) -> None:
    left_behind(control_plane, ended=None, pid=os.getpid(), host_id=given.HOST)
    control_plane.store.create(
        replace(given.provisioning(), deployer="dedicated", consumed_sequence=0, provisioning_since=datetime.now(UTC))
    )
    for status in (RuntimeStatus.INITIALIZING, *[RuntimeStatus.RUNNING, RuntimeStatus.PAUSED] * 20):
        control_plane.registry.record(transition(status))
    assert control_plane.pipeline("p").deployment_status == "Paused"
    (last,) = control_plane.registry.transitions(given.DEPLOYMENT, 0)
    assert last.status is RuntimeStatus.PAUSED
    assert control_plane.pipeline("p").deployment_status == "Paused"
    # Numbers are never given again, or the next transition would be taken for one that is known.
    control_plane.registry.record(transition(RuntimeStatus.RUNNING))
    assert control_plane.registry.transitions(given.DEPLOYMENT, last.sequence)
    assert control_plane.pipeline("p").deployment_status == "Running"


def test_transitions_of_incarnations_that_are_over_go(control_plane: ControlPlane) -> None:
    left_behind(control_plane, ended=None, pid=os.getpid(), host_id=given.HOST)
    control_plane.store.create(replace(given.provisioning(), deployer="dedicated", provisioning_since=datetime.now(UTC)))
    control_plane.registry.record(transition(RuntimeStatus.RUNNING))
    over = [UUID(int=100 + number) for number in range(5)]
    for deployment in over:
        control_plane.registry.record(transition(RuntimeStatus.SUSPENDED).model_copy(update={"deployment_id": deployment}))
        control_plane.store.forget_ended_transitions()
    left = [len(control_plane.registry.transitions(deployment, 0)) for deployment in over]
    assert left == [0, 0, 0, 0, 1], "the newest of all keeps its number from being given again; those before it are gone"
    assert len(control_plane.registry.transitions(given.DEPLOYMENT, 0)) == 1
