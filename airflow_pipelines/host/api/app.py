"""The host's data plane over HTTP. Only the service calls it; every request carries the host's token."""

from __future__ import annotations

import hmac
from collections.abc import Callable

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.failures import failure_text
from airflow_pipelines.host.api.routers import (
    changes,
    checkpoints,
    clock,
    connectors,
    deployments,
    diagnostics,
    egress,
    query,
    relation_changes,
    rows,
    transactions,
)
from airflow_pipelines.host.runs.fleet import Fleet
from airflow_pipelines.serving.bounds import BoundedRequests
from airflow_pipelines.serving.path_segments import EncodedSlashes


class _TokenCheck:
    """An ASGI middleware that refuses callers without the host's token before it reads or looks up anything of the request."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get("authorization", "") if scope["type"] == "http" else ""
        # Compared as bytes, because headers may have non-ASCII characters.
        if scope["type"] == "http" and not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._expected):
            problem = Problem(ErrorCode.INVALID_HOST_TOKEN, "The request does not carry this host's token.")
            await JSONResponse(problem.body(), http_status(problem.code))(scope, receive, send)
            return
        await self._app(scope, receive, send)


SLOW_REQUESTS = 200
"""The number of compilations, starts, approvals and ends that may be in progress at the same time."""


def create_app(fleet: Fleet, token: str, shut_down: Callable[[], None], may_shut_down: Callable[[], bool]) -> FastAPI:
    """Return the application over ``fleet``.

    :param token: the bearer token that callers present
    :param shut_down: called after a shutdown request was answered; such a request is refused unless ``may_shut_down`` returns True
    """
    app = FastAPI(title="Airflow Pipelines host", docs_url=None, redoc_url=None, openapi_url=None)
    # The service bounds sizes; here only the wait for a body is bounded.
    app.add_middleware(BoundedRequests, limit_of=lambda _: None)
    app.add_middleware(EncodedSlashes)
    app.add_middleware(_TokenCheck, token=token)
    app.state.fleet = fleet
    app.state.slow = anyio.CapacityLimiter(SLOW_REQUESTS)
    app.state.shut_down = shut_down
    app.state.may_shut_down = may_shut_down
    modules = (
        deployments, changes, rows, egress, relation_changes, query, connectors, checkpoints, clock, diagnostics, transactions,
    )  # fmt: skip
    for module in modules:
        # include_router() would create each of the routes anew.
        app.router.routes += module.router.routes
    app.router.routes += diagnostics.of_all.routes

    @app.exception_handler(Problem)
    async def problem(_: Request, failure: Problem) -> JSONResponse:
        return JSONResponse(failure.body(), http_status(failure.code))

    @app.exception_handler(ClientDisconnect)
    async def answer_disconnect(_: Request, _failure: ClientDisconnect) -> JSONResponse:
        return JSONResponse(Problem(ErrorCode.CLIENT_DISCONNECTED, "The request broke off.").body(), 400)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, failure: RequestValidationError) -> JSONResponse:
        first = failure.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return JSONResponse(Problem(ErrorCode.INVALID_PARAM, f"{place}: {first['msg']}").body(), 400)

    @app.exception_handler(Exception)
    async def answer_unexpected(_: Request, failure: Exception) -> JSONResponse:
        # The full error goes to the host's log; a stack of Java frames is no answer.
        text = (failure_text(failure).splitlines() or [""])[0]
        # The server closes the connection after this. Without the header, the caller would send its next call into a closed one.
        return JSONResponse(Problem(ErrorCode.INTERNAL_ERROR, f"The host failed ({text}).").body(), 500, {"Connection": "close"})

    return app
