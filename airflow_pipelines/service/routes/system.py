"""Endpoints about the service itself."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from airflow_pipelines.contract.exposition import CONTENT_TYPE, Metric, MetricKind, exposition
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.edits import text_field
from airflow_pipelines.service.parameters import Body
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
            "unstable_features": ",".join(control_plane.settings.unstable_features) or None,
            "posthog": None,
            "conceptualhq": None,
            "product_fruits": None,
        }

    @router.get("/metrics")
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(exposition(_metrics(control_plane)), media_type=CONTENT_TYPE)

    @router.post("/validate_program")
    def validate_program(body: Body) -> dict[str, Any]:
        fields = body if isinstance(body, dict) else {}
        source = ProgramSource(text_field(fields, "program_code") or "", text_field(fields, "udf_python") or "")
        result = control_plane.programs.compile(source, with_dataflow=fields.get("ir") is True)
        if result.program_info is None:
            return {"SqlError": {"info": {"exit_code": 1, "messages": result.messages}}}
        return {"Success": {"program_info": result.program_info}}

    return router


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
