"""Endpoints that a pipeline's host answers."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.parameters import Body, json_body
from airflow_pipelines.service.proxy import Proxy
from airflow_pipelines.service.routes.query_socket import MAX_QUERY_BYTES, add_query_socket

_READS = (
    "stats", "metrics", "completion_status", "checkpoint_status", "checkpoints", "checkpoints/remote", "checkpoint/sync_status",
    "steps", "activity", "time_series", "spark_application",
)  # fmt: skip
_LARGE_READS = ("circuit_profile", "circuit_json_profile")
"""The reads whose answers may be large and are passed on as streams."""
_WRITES = ("checkpoint", "checkpoint/sync", "start_transaction", "commit_transaction", "start_compaction")
_JSON = Depends(json_body)
"""The check that a body, if there is one, is JSON. Rows of ingress are in other formats, whatever their content type."""


def router(proxy: Proxy) -> APIRouter:
    """Return the runtime endpoints under /v0/pipelines/{name}."""
    router = APIRouter(prefix="/v0/pipelines/{name}")
    for tail in _READS:
        _forward(router, proxy, "GET", tail)
    for tail in _LARGE_READS:
        _stream(router, proxy, tail)
    for tail in _WRITES:
        _forward(router, proxy, "POST", tail)

    # With POST the text comes in the body, where it may be longer.
    @router.get("/query")
    @router.post("/query")
    async def query(name: str, request: Request, body: Body) -> Response:
        sql = body.get("sql") if request.method == "POST" and isinstance(body, dict) else request.query_params.get("sql")
        if isinstance(sql, str):
            errors.check_size("The query", sql, MAX_QUERY_BYTES, "send rows with ingress")
        return await proxy.stream(request, name, "query", ndjson=request.query_params.get("format") == "json")

    add_query_socket(router, proxy)

    @router.post("/ingress/{table}")
    async def ingress(name: str, table: str, request: Request) -> Response:
        return await proxy.call(request, name, "ingress", table)

    @router.post("/clock/advance", dependencies=[_JSON])
    async def advance(name: str, request: Request) -> Response:
        return await proxy.call(request, name, "clock", "advance")

    @router.post("/egress/{relation}", dependencies=[_JSON])
    async def egress(name: str, relation: str, request: Request) -> Response:
        return await proxy.stream(request, name, "egress", relation, endless=True)

    @router.get("/changes/{relation}")
    async def changes(name: str, relation: str, request: Request) -> Response:
        return await proxy.stream(request, name, "changes", relation)

    @router.get("/time_series_stream")
    async def time_series_stream(name: str, request: Request) -> Response:
        return await proxy.stream(request, name, "time_series_stream", endless=True)

    _add_connectors(router, proxy)
    return router


def _add_connectors(router: APIRouter, proxy: Proxy) -> None:
    @router.get("/tables/{table}/connectors/{connector}/completion_token")
    async def completion_token(name: str, table: str, connector: str, request: Request) -> Response:
        return await proxy.call(request, name, "tables", table, "connectors", connector, "completion_token")

    @router.get("/tables/{table}/connectors/{connector}/stats")
    async def input_stats(name: str, table: str, connector: str, request: Request) -> Response:
        return await proxy.call(request, name, "tables", table, "connectors", connector, "stats")

    @router.get("/views/{view}/connectors/{connector}/stats")
    async def output_stats(name: str, view: str, connector: str, request: Request) -> Response:
        return await proxy.call(request, name, "views", view, "connectors", connector, "stats")

    @router.post("/tables/{table}/connectors/{connector}/{action}")
    async def connector_action(name: str, table: str, connector: str, action: str, request: Request) -> Response:
        if action not in {"start", "pause"}:
            raise Problem(ErrorCode.INVALID_CONNECTOR_ACTION, f"A connector can be asked to start or to pause, not to '{action}'")
        return await proxy.call(request, name, "tables", table, "connectors", connector, action)


def _forward(router: APIRouter, proxy: Proxy, method: str, tail: str) -> None:
    async def forward(name: str, request: Request) -> Response:
        return await proxy.call(request, name, *tail.split("/"))

    router.add_api_route(f"/{tail}", forward, methods=[method], name=tail)


def _stream(router: APIRouter, proxy: Proxy, tail: str) -> None:
    async def stream(name: str, request: Request) -> Response:
        return await proxy.stream(request, name, tail)

    router.add_api_route(f"/{tail}", stream, methods=["GET"], name=tail)
