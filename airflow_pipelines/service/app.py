"""The REST API of the service: one FastAPI application, embedded in a process or served by ``airflow-pipelines serve``."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from airflow_pipelines.host.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.control import Control
from airflow_pipelines.service.cross_site import AllowedHosts, CrossSiteGuard
from airflow_pipelines.service.deployers.base import DedicatedHosts
from airflow_pipelines.service.proxy import Proxy
from airflow_pipelines.service.routes import lifecycle, pipelines, runtime, system, unsupported
from airflow_pipelines.service.version import platform_version
from airflow_pipelines.settings import Settings

logger = logging.getLogger(__name__)


def create_app(settings: Settings, dedicated: DedicatedHosts | None = None) -> FastAPI:
    """Return the REST API as it is served: :func:`create_embedded_app` that answers no page of another site."""
    app = create_embedded_app(settings, dedicated)
    app.add_middleware(CrossSiteGuard, allowed=AllowedHosts.of(settings))
    return app


def create_embedded_app(settings: Settings, dedicated: DedicatedHosts | None = None) -> FastAPI:
    """Return the REST API over the store that ``settings`` names, to be called within the process.

    ``dedicated`` replaces the way in which the hosts of new incarnations are submitted. The application works without its lifespan
    being run; running it adds a thread that looks after pipelines nobody reads. ``app.state.control`` is the :class:`Control`; call
    its ``close`` when the application is not needed any more.
    Raises :class:`Problem` when the store cannot be used.
    """
    control = Control(settings, dedicated)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        control.worker.sweep_forever()
        yield
        control.close()

    app = FastAPI(
        title="Airflow Pipelines", version=platform_version(), lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.control = control
    proxy = Proxy(control)
    keyed = APIRouter(prefix="/v0", dependencies=[Depends(_key_check(settings.api_keys))])
    keyed.include_router(system.router(control))
    # Before the 501s and the records, whose paths are wider.
    of_pipelines = APIRouter(prefix="/pipelines")
    of_pipelines.include_router(lifecycle.router(control))
    of_pipelines.include_router(runtime.router(proxy))
    keyed.include_router(of_pipelines)
    keyed.include_router(pipelines.router(control))
    keyed.include_router(unsupported.router(control))
    app.include_router(system.open_router())
    app.include_router(keyed)
    _answer_errors(app, control)
    return app


def _key_check(keys: tuple[str, ...]) -> Callable[[Request], Awaitable[None]]:
    accepted = [key.encode() for key in keys]

    async def check(request: Request) -> None:
        if not accepted:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # Every key is compared, in constant time, so that the time taken says nothing about any of them.
        matches = [hmac.compare_digest(key, given.strip().encode()) for key in accepted]
        if scheme.lower() != "bearer" or not any(matches):
            raise Problem(401, "Unauthorized", "This service wants an API key: send it as 'Authorization: Bearer <key>'")

    return check


def _answer_errors(app: FastAPI, control: Control) -> None:
    @app.exception_handler(Problem)
    async def problem(_request: Request, error: Problem) -> JsonAnswer:
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        return JsonAnswer(error.body(), error.status, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JsonAnswer:
        texts = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()]
        return JsonAnswer(errors.invalid_param("Invalid request: " + "; ".join(texts)).body(), 400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JsonAnswer:
        code = {404: "UnknownEndpoint", 405: "MethodNotAllowed"}.get(error.status_code, "HttpError")
        text = f"{error.detail}: {request.method} {request.url.path}"
        return JsonAnswer(Problem(error.status_code, code, text).body(), error.status_code, error.headers)

    @app.exception_handler(SQLAlchemyError)
    async def database(_request: Request, error: SQLAlchemyError) -> JsonAnswer:
        logger.error("The store failed", exc_info=error)
        found = errors.store_unusable(error, control.store.engine.url)
        return JsonAnswer(found.body(), found.status)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JsonAnswer:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        found = Problem(500, "InternalError", f"The service failed ({type(error).__name__}: {error}); its log has the details")
        return JsonAnswer(found.body(), 500)
