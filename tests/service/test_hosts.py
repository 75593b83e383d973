"""How hosts are, as the service sees them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from airflow_pipelines.contract.registry import Base, HostRecord, Registry
from airflow_pipelines.database import open_database
from airflow_pipelines.service import processes
from airflow_pipelines.service.hosts import Health, Hosts, HostState

GONE = 2**22 + 1
"""No process has this id: Linux gives none above 2^22."""


def test_a_host_that_said_why_it_ends_is_believed_also_when_its_process_is_gone_first(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'store.sqlite'}")
    Base.metadata.create_all(engine)
    registry = Registry(engine)
    host = HostRecord(
        host_id=UUID(int=1), kind="shared", deployment_id=None, deployment=None, url="http://127.0.0.1:1", token="t", pid=GONE,
        machine=processes.this_machine(), log_path="l", submitted_at=datetime.now(UTC), heartbeat=1.0, ended_at=None,
    )  # fmt: skip
    registry.submit(host)
    hosts = Hosts(registry, 15.0)
    assert hosts.health(host) == Health(HostState.LOST, f"its process {GONE} on {host.machine} is gone")
    registry.end(host.host_id, "its JVM is gone")
    assert hosts.health(host) == Health(HostState.LOST, "its JVM is gone")
    hosts.close()
    engine.dispose()
