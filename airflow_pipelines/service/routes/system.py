"""Endpoints about the service itself."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.exposition import CONTENT_TYPE, exposition
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.api_keys import KeyScope
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.edits import arguments_field, files_field, text_field
from airflow_pipelines.service.overview import overview
from airflow_pipelines.service.parameters import Body
from airflow_pipelines.service.service_metrics import metrics_of_all
from airflow_pipelines.service.version import check_runtime_version, platform_version

TENANT: Final = "default"
TENANT_ID: Final = UUID(int=0)
"""The id of the only tenant of a service, who owns all pipelines."""


def open_router() -> APIRouter:
    """Return the endpoints that need no key."""
    router = APIRouter()

    @router.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "healthy"}

    @router.get("/config/authentication")
    def authentication() -> dict[str, Any]:
        return {}

    return router


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the endpoints under /v0 that belong to no pipeline."""
    router = APIRouter(prefix="/v0")

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

    @router.get("/config/session")
    def session(request: Request) -> dict[str, str]:
        role = KeyScope.READ if getattr(request.state, "read_only", False) else KeyScope.WRITE
        return {"tenant_id": str(TENANT_ID), "tenant_name": TENANT, "role": role.value}

    @router.get("/config/demos")
    def demos() -> list[Any]:
        return []

    @router.get("/tenants")
    def tenants() -> list[dict[str, str]]:
        return [{"id": str(TENANT_ID), "name": TENANT}]

    @router.get("/oidc_trust")
    def oidc_trust() -> list[Any]:
        return []

    @router.get("/metrics")
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(exposition(metrics_of_all(control_plane)), media_type=CONTENT_TYPE)

    @router.get("/overview")
    def overview_of_all() -> JsonAnswer:
        return JsonAnswer(overview(control_plane))

    @router.post("/validate_program")
    def validate_program(body: Body) -> dict[str, Any]:
        fields = body if isinstance(body, dict) else {}
        source = ProgramSource(
            text_field(fields, "program_code") or "",
            text_field(fields, "udf_python") or "",
            files_field(fields) or (),
            arguments_field(fields) or (),
        )
        check_runtime_version(text_field(fields, "runtime_version"))
        with_dataflow = fields.get("ir") is True
        try:
            result = control_plane.programs.compile(source, with_dataflow=with_dataflow)
        except Problem as problem:
            if problem.code is not ErrorCode.COMPILER_FAILED:
                raise
            return {"SystemError": {"error": problem.message}}
        if result.program_info is None:
            return {"SqlError": {"info": {"exit_code": 1, "messages": result.messages}}}
        # Without ``ir`` the contract has no dataflow graph there.
        info = result.program_info if with_dataflow else {**result.program_info, "dataflow": None}
        return {"Success": {"program_info": info}}

    return router
