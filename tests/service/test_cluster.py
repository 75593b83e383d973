"""The health of the service's parts and its events."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from airflow_pipelines.service import cluster
from airflow_pipelines.service.cluster import ClusterHealth
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.records import Selector
from tests.service.hosted import host_row


def test_a_change_of_a_part_is_one_event(control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    health = control_plane.cluster
    first = health.look()
    assert health.look() is first
    assert first.to_wire(Selector.STATUS) == {
        "id": str(first.event_id),
        "recorded_at": first.to_wire(Selector.ALL)["recorded_at"],
        "all_healthy": True,
        "api_status": "Healthy",
        "compiler_status": "Healthy",
        "runner_status": "Healthy",
    }
    assert first.to_wire(Selector.ALL)["compiler_self_info"] == "The shared host is started by its first use"
    assert first.to_wire(Selector.ALL)["compiler_resources_info"] == "Hosts: none"
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None)
    second = health.look()
    assert second.parts["compiler"].message == "The shared host is up"
    assert second.to_wire(Selector.ALL)["compiler_resources_info"] == f"Hosts: 1 shared on {host.machine}"
    assert second.to_wire(Selector.ALL)["api_resources_info"] == "The store is a sqlite database"
    # Another process of the same store goes on from there.
    assert ClusterHealth(control_plane.store.engine, control_plane.hosts).look() == second
    assert [event.event_id for event in health.events()] == [second.event_id, first.event_id]
    monkeypatch.setattr(cluster, "EVENTS_KEPT", 2)
    control_plane.registry.end(host.host_id)
    third = health.look()
    assert [event.event_id for event in health.events(10)] == [third.event_id, second.event_id]


@pytest.mark.parametrize("reason", ["spark-submit: no java\nmore", None])
def test_the_compiler_is_unhealthy_after_a_host_that_never_came_up(
    control_plane: ControlPlane, tmp_path: Path, reason: str | None
) -> None:
    host = host_row(control_plane, tmp_path, kind="shared", deployment_id=None, heartbeat=None, url=None)
    assert control_plane.cluster.look().parts["compiler"].message == "The shared host is starting"
    control_plane.registry.end(host.host_id, reason)
    event = control_plane.cluster.look()
    assert event.all_healthy is (reason is None), "a person may end it, too"
    if reason is not None:
        assert event.parts["compiler"].message == (
            "The shared host did not come up (spark-submit: no java); the next use tries again"
        )
    host_row(control_plane, tmp_path, kind="shared", deployment_id=None, host_id=UUID(int=9))
    assert control_plane.cluster.look().all_healthy


def test_the_compiler_is_unhealthy_while_the_process_of_a_host_that_never_came_up_is_gone(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    host_row(control_plane, tmp_path, kind="shared", deployment_id=None, heartbeat=None, url=None, pid=2**22)
    event = control_plane.cluster.look()
    assert event.to_wire(Selector.STATUS)["compiler_status"] == "Unhealthy"
    assert "its process 4194304" in event.parts["compiler"].message
