"""The forwarding of the page's requests about pipelines to the service behind a connection: a fixed list of read-only requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request

from airflow_pipelines.plugin.connections import Connections
from airflow_pipelines.plugin.problems import PageProblem
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelinesError, PipelineTimeoutError
from airflow_pipelines.sdk.wire import path_of
from airflow_pipelines.service.answers import JsonAnswer

PATIENCE_S: Final = 15.0
OF_PIPELINE: Final = (
    "", "activity", "stats", "steps", "time_series", "circuit_json_profile", "events", "checkpoints", "checkpoint_status",
    "checkpoint/sync_status", "log_lines", "stream_graph",
)  # fmt: skip
"""The requests about a pipeline that are forwarded. All of them only read, and none of them compiles, so viewing starts no host."""
_NOT_OF_THE_PERSON: Final = frozenset({401, 403})


def router(connections: Connections) -> APIRouter:
    """Return the router of the requests, below the id of the connection.

    :param connections: the connections, which provide the clients
    """
    router = APIRouter(prefix="/connections/{conn_id}/v0")

    @router.get("/overview")
    async def overview(conn_id: str, request: Request) -> JsonAnswer:
        return await _request(connections, conn_id, request.query_params, "overview")

    for tail in OF_PIPELINE:
        _forward(router, connections, tail)
    return router


def _forward(router: APIRouter, connections: Connections, tail: str) -> None:
    parts = tail.split("/") if tail else []

    async def forward(conn_id: str, name: str, request: Request) -> JsonAnswer:
        return await _request(connections, conn_id, request.query_params, "pipelines", name, *parts)

    router.add_api_route("/".join(["/pipelines/{name}", *parts]), forward, methods=["GET"], name=tail or "pipeline")


async def _request(connections: Connections, conn_id: str, params: Mapping[str, str], *parts: str) -> JsonAnswer:
    client = await connections.client(conn_id)
    try:
        path = path_of(*parts)
    except ValueError as error:
        raise PageProblem(404, "UnknownPipelineName", str(error)) from error
    try:
        answer: Any = await client.request("GET", path, params=params, timeout_s=PATIENCE_S, idempotent=False)
    except PipelineAPIError as error:
        raise _to_problem(conn_id, error) from error
    except PipelineTimeoutError as error:
        raise PageProblem(504, "ServiceTimeout", f"The service behind '{conn_id}' does not answer in time: {error}") from error
    except PipelinesError as error:
        raise PageProblem(502, "ServiceUnreachable", f"The service behind '{conn_id}' cannot be reached: {error}") from error
    return JsonAnswer(answer)


def _to_problem(conn_id: str, error: PipelineAPIError) -> PageProblem:
    if error.status_code in _NOT_OF_THE_PERSON:
        # It is the connection's key that is refused, not the person who looks.
        text = f"The service behind '{conn_id}' refuses the connection's key: {error.message}"
        return PageProblem(502, "ConnectionRefused", text)
    return PageProblem(error.status_code, error.error_code, error.message, error.details)
