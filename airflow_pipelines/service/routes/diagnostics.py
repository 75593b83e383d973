"""Endpoints for diagnosing a pipeline, which also work without its host."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.diagnostics import Diagnostics
from airflow_pipelines.service.parameters import Flag
from airflow_pipelines.service.support_bundles import KEPT, BundlePart


def router(control_plane: ControlPlane) -> APIRouter:
    """Return the endpoints under /v0/pipelines/{name}."""
    router = APIRouter(prefix="/v0/pipelines/{name}")
    diagnostics = Diagnostics(control_plane)

    @router.get("/dataflow_graph")
    def dataflow_graph(name: str) -> JsonAnswer:
        return JsonAnswer(diagnostics.dataflow(name))

    @router.get("/stream_graph")
    def stream_graph(name: str, format: Literal["json", "svg"] = "json") -> Response:
        if format == "json":
            return JsonAnswer(diagnostics.stream_graph(name))
        # A browser that opens the picture directly must not run anything in it.
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(diagnostics.stream_picture(name), media_type="image/svg+xml", headers=headers)

    @router.get("/support_bundle")
    def support_bundle(
        name: str,
        collect: Flag = True,
        limit: int = KEPT,
        circuit_profile: Flag = True,
        heap_profile: Flag = True,
        metrics: Flag = True,
        logs: Flag = True,
        stats: Flag = True,
        pipeline_config: Flag = True,
        system_config: Flag = True,
        dataflow_graph: Flag = True,
        pipeline_events: Flag = True,
    ) -> Response:
        if limit < 1:
            raise Problem(
                ErrorCode.INVALID_SUPPORT_BUNDLE_PARAMETER, f"A support bundle has at least one collection: limit cannot be {limit}"
            )
        flags = {
            BundlePart.CIRCUIT_PROFILE: circuit_profile,
            BundlePart.HEAP_PROFILE: heap_profile,
            BundlePart.METRICS: metrics,
            BundlePart.LOGS: logs,
            BundlePart.STATS: stats,
            BundlePart.PIPELINE_CONFIG: pipeline_config,
            BundlePart.SYSTEM_CONFIG: system_config,
            BundlePart.DATAFLOW_GRAPH: dataflow_graph,
            BundlePart.PIPELINE_EVENTS: pipeline_events,
        }
        wanted = {part for part, is_wanted in flags.items() if is_wanted}
        content = diagnostics.support_bundle(name, wanted, collect=collect, limit=limit)
        headers = {"Content-Disposition": f'attachment; filename="{name}-support-bundle.zip"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    return router
