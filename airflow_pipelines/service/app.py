"""The REST API of the service: one FastAPI application, embedded in a process or served by ``airflow-pipelines serve``."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.cross_site import AllowedHosts, CrossSiteGuard
from airflow_pipelines.service.deployers.base import DedicatedHosts
from airflow_pipelines.service.key_check import KeyCheck
from airflow_pipelines.service.openapi import serve_document
from airflow_pipelines.service.page import serve_page
from airflow_pipelines.service.parameters import invalid_request
from airflow_pipelines.service.proxy import Proxy
from airflow_pipelines.service.routes import (
    api_keys,
    cluster,
    diagnostics,
    lifecycle,
    pipelines,
    runtime,
    secrets,
    system,
    unsupported,
)
from airflow_pipelines.service.version import platform_version
from airflow_pipelines.serving.bounds import BoundedRequests
from airflow_pipelines.serving.path_segments import EncodedSlashes

_INGRESS = re.compile(r"/v0/pipelines/[^/]*/ingress/.*")
_ROUTING_ERRORS = {404: ErrorCode.UNKNOWN_ENDPOINT, 405: ErrorCode.METHOD_NOT_ALLOWED}
"""The error codes for FastAPI's own answers about paths and methods."""
logger = logging.getLogger(__name__)


def create_app(settings: Settings, dedicated: DedicatedHosts | None = None) -> FastAPI:
    """Return the REST API as it is served: :func:`create_embedded_app` with the page, keys, bounds and the cross-site guard.

    :param settings: as for :func:`create_embedded_app`
    :param dedicated: as for :func:`create_embedded_app`
    :raises Problem: when the store cannot be used
    """
    app = create_embedded_app(settings, dedicated)
    app.add_middleware(BoundedRequests, limit_of=lambda scope: _body_limit(settings, scope["path"]))
    keys = app.state.control_plane.api_keys
    serve_page(app, keys)
    app.add_middleware(KeyCheck, keys=keys)
    app.add_middleware(CrossSiteGuard, allowed=AllowedHosts.of(settings, any_host=keys.are_required()))
    return app


def create_embedded_app(settings: Settings, dedicated: DedicatedHosts | None = None) -> FastAPI:
    """Return the REST API over the store that ``settings`` names, for calls within the process.

    The application works without its lifespan being run; running it adds a thread that looks after pipelines nobody reads.
    ``app.state.control_plane`` is the :class:`ControlPlane`; call its ``close`` when the application is not needed any more.

    :param settings: the settings of the store, of the storage and of the start of hosts
    :param dedicated: replaces the way in which the hosts of new incarnations are submitted
    :raises Problem: when the store cannot be used
    """
    control_plane = ControlPlane(settings, dedicated)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        control_plane.background.sweep_forever()
        yield
        control_plane.close()

    # The document is served, but no page that shows it: such pages load their scripts from elsewhere.
    app = FastAPI(title="Airflow Pipelines", version=platform_version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    serve_document(app)
    app.add_middleware(EncodedSlashes)
    app.state.control_plane = control_plane
    proxy = Proxy(control_plane)
    routers = (
        system.open_router(),
        system.router(control_plane),
        cluster.router(control_plane),
        api_keys.router(control_plane.api_keys),
        secrets.router(control_plane.secrets.files),
        # Before the 501s and the records, whose paths are less specific.
        lifecycle.router(control_plane),
        runtime.router(proxy),
        diagnostics.router(control_plane),
        pipelines.router(control_plane),
        unsupported.router(control_plane),
    )
    # FastAPI's include_router would build each route again, which is most of the time to create an application.
    app.router.routes += [route for router in routers for route in router.routes]
    _answer_errors(app, control_plane)
    return app


def create_watching_app(settings: Settings) -> FastAPI:
    """Return the REST API for a caller that only reads it.

    It does no background work, so that no program is compiled and no host is started. It still executes every request, so a caller
    that must not change anything has to send only reading requests.

    :param settings: as for :func:`create_embedded_app`
    :raises Problem: when the store cannot be used
    """
    app = create_embedded_app(settings)
    app.state.control_plane.background.close()
    return app


def _body_limit(settings: Settings, path: str) -> int:
    return settings.max_ingress_bytes if _INGRESS.fullmatch(path) else settings.max_body_bytes


def _answer_errors(app: FastAPI, control_plane: ControlPlane) -> None:
    @app.exception_handler(Problem)
    async def problem(_request: Request, error: Problem) -> JsonAnswer:
        return JsonAnswer(error.body(), http_status(error.code))

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(_request: Request, _error: ClientDisconnect) -> JsonAnswer:
        return JsonAnswer(Problem(ErrorCode.CLIENT_DISCONNECTED, "The request broke off").body(), 400)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JsonAnswer:
        failure = invalid_request(error)
        return JsonAnswer(failure.body(), http_status(failure.code))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JsonAnswer:
        code = _ROUTING_ERRORS.get(error.status_code, ErrorCode.HTTP_ERROR)
        text = f"{error.detail}: {request.method} {request.url.path}"
        return JsonAnswer(Problem(code, text).body(), error.status_code, error.headers)

    @app.exception_handler(SQLAlchemyError)
    async def database(_request: Request, error: SQLAlchemyError) -> JsonAnswer:
        logger.error("The store failed", exc_info=error)
        failure = errors.store_unusable(error, control_plane.store.engine.url)
        return JsonAnswer(failure.body(), http_status(failure.code))

    @app.exception_handler(Exception)
    async def handle_unexpected_error(request: Request, error: Exception) -> JsonAnswer:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        failure = Problem(
            ErrorCode.INTERNAL_ERROR, f"The service failed ({type(error).__name__}: {error}); its log has the details"
        )
        # The server closes the connection after this; a client that was not told would lose its next call.
        return JsonAnswer(failure.body(), 500, {"Connection": "close"})
