"""Endpoints about the health of the service's parts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.records import Selector, rfc3339


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the endpoints about the health of the service's parts, under /v0."""
    router = APIRouter(prefix="/v0")
    cluster = control_plane.cluster

    @router.get("/cluster_healthz")
    def cluster_healthz() -> JsonAnswer:
        event = cluster.look()
        now, since = rfc3339(datetime.now(UTC)), rfc3339(event.recorded_at)
        body: dict[str, Any] = {
            name: {"healthy": part.healthy, "message": part.message, "unchanged_since": since, "checked_at": now}
            for name, part in event.parts.items()
        }
        body["all_healthy"] = event.all_healthy
        return JsonAnswer(body, 200 if event.all_healthy else 503)

    @router.get("/cluster/events")
    def events(selector: Selector = Selector.STATUS) -> JsonAnswer:
        cluster.look()
        return JsonAnswer([event.to_wire(selector) for event in cluster.events()])

    @router.get("/cluster/events/{event_id}")
    def event(event_id: str, selector: Selector = Selector.STATUS) -> JsonAnswer:
        newest = cluster.look()
        if event_id == "latest":
            return JsonAnswer(newest.to_wire(selector))
        for each in cluster.events():
            if str(each.event_id) == event_id.lower():
                return JsonAnswer(each.to_wire(selector))
        raise Problem(ErrorCode.UNKNOWN_CLUSTER_MONITOR_EVENT, f"The cluster has no event {event_id}; only the newest are kept")

    return router
