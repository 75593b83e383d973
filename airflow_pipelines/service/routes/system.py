"""Endpoints about the service itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from airflow_pipelines.contract.exposition import CONTENT_TYPE, Metric, MetricKind, exposition
from airflow_pipelines.contract.registry import SHARED
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.edits import text_field
from airflow_pipelines.service.hosts import HostState
from airflow_pipelines.service.parameters import Body
from airflow_pipelines.service.records import rfc3339
from airflow_pipelines.service.version import platform_version


def open_router() -> APIRouter:
    """Endpoints that need no key."""
    router = APIRouter()

    @router.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "healthy"}

    @router.get("/config/authentication")
    def authentication() -> dict[str, Any]:
        return {}

    return router


def router(control_plane: ControlPlane) -> APIRouter:
    """Endpoints under /v0 that belong to no pipeline."""
    router = APIRouter()
    started = datetime.now(UTC)

    @router.get("/config")
    def config() -> dict[str, Any]:
        version = platform_version()
        return {
            "version": version,
            "edition": "Enterprise",
            "revision": version,
            "runtime_revision": version,
            "build_info": {},
            "build_source": "release",
            "changelog_url": "",
            "license_validity": None,
            "telemetry": "",
            "update_info": None,
            "unstable_features": None,
            "posthog": None,
            "conceptualhq": None,
            "product_fruits": None,
        }

    @router.get("/cluster_healthz")
    def cluster_healthz() -> JsonAnswer:
        parts = {
            "api": (True, "The service answers"),
            "compiler": _shared_host(control_plane),
            "runner": (True, "Hosts are started when needed"),
        }
        now = rfc3339(datetime.now(UTC))
        body: dict[str, Any] = {
            part: {"healthy": healthy, "message": message, "unchanged_since": rfc3339(started), "checked_at": now}
            for part, (healthy, message) in parts.items()
        }
        body["all_healthy"] = all(healthy for healthy, _ in parts.values())
        return JsonAnswer(body, 200 if body["all_healthy"] else 503)

    @router.get("/metrics")
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(exposition(_metrics(control_plane)), media_type=CONTENT_TYPE)

    @router.post("/validate_program")
    def validate_program(body: Body) -> dict[str, Any]:
        fields = body if isinstance(body, dict) else {}
        source = ProgramSource(text_field(fields, "program_code") or "", text_field(fields, "udf_python") or "")
        result = control_plane.programs.compile(source)
        if result.program_info is None:
            return {"SqlError": {"info": {"exit_code": 1, "messages": result.messages}}}
        return {"Success": {"program_info": result.program_info}}

    return router


def _shared_host(control_plane: ControlPlane) -> tuple[bool, str]:
    """Healthy means that compiling works or will: a host is up, one is starting, or none was needed yet."""
    states = [control_plane.hosts.health(host) for host in control_plane.registry.live_hosts(SHARED)]
    if any(health.state is HostState.UP for health in states):
        return True, "The shared host is up"
    lost = [health.reason for health in states if health.state is HostState.LOST]
    if lost and len(lost) == len(states):
        return True, f"The shared host was lost ({lost[0]}); the next use starts another"
    return True, "The shared host is starting" if states else "The shared host is started by its first use"


def _metrics(control_plane: ControlPlane) -> list[Metric]:
    """How many pipelines are in which state, and which of them run."""
    records = control_plane.pipelines()
    statuses = [record.deployment_status for record in records]
    found = [
        Metric("pipelines_total", MetricKind.GAUGE, "Pipelines by deployment status.", statuses.count(status), {"status": status})
        for status in sorted(set(statuses))
    ]
    for record in records:
        labels = {"pipeline": str(record.id), "pipeline_name": record.name}
        running = record.deployment_status == "Running"
        found.append(Metric("pipeline_up", MetricKind.GAUGE, "Whether the pipeline runs.", float(running), labels))
    return found
