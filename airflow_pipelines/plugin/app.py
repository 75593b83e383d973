"""The application that the plugin serves beside Airflow's own: the page, and the endpoints that it calls.

Airflow mounts it without authentication. So each route, including those of files, checks with Airflow that the user is logged in
and may see plugins, and a route about a DAG checks that the user may see that DAG.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from airflow_pipelines.plugin.connections import Connections, connection_ids
from airflow_pipelines.plugin.forwarding import router as forwarding
from airflow_pipelines.plugin.paths import airflow_path
from airflow_pipelines.plugin.problems import PageProblem
from airflow_pipelines.plugin.reviews import open_reviews, pipeline_of_task
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.version import platform_version
from airflow_pipelines.serving.page_files import page_response

_CODES = {401: "Unauthorized", 403: "Forbidden", 404: "UnknownEndpoint", 405: "MethodNotAllowed"}
_NO_TASK = {"pipeline": None, "connection": None, "review": None}


def create_app() -> FastAPI:
    """Return the plugin's application."""
    # It has no OpenAPI description, because that would be a route without authentication.
    app = FastAPI(
        title="Airflow Pipelines",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(requires_access_view(AccessView.PLUGINS))],
    )
    connections = Connections()
    _add_context(app, connections)
    _add_tasks(app)
    app.include_router(forwarding(connections))
    # Last, because its path is any.
    _add_files(app)
    _answer_errors(app)
    return app


def _add_context(app: FastAPI, connections: Connections) -> None:
    @app.get("/context")
    async def context(session: SessionDep) -> JsonAnswer:
        ids = await run_in_threadpool(connection_ids, session)
        return JsonAnswer(
            {
                "face": "airflow",
                "version": platform_version(),
                "needs_key": False,
                "connections": [
                    {
                        "id": conn_id,
                        "label": conn_id,
                        "api": f"connections/{conn_id}/v0/",
                        "problem": await connections.problem(conn_id),
                    }
                    for conn_id in ids
                ],
                "airflow": {"api": f"{airflow_path()}/api/v2/", "ui": f"{airflow_path()}/"},
            }
        )


def _add_tasks(app: FastAPI) -> None:
    @app.get("/reviews")
    def reviews(session: SessionDep, user: GetUserDep) -> JsonAnswer:
        return JsonAnswer({"reviews": open_reviews(session, user)})

    @app.get("/task", dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE))])
    def task(
        session: SessionDep,
        user: GetUserDep,
        dag_id: str,
        task_id: str,
        run_id: Annotated[str, Query()] = "",
        map_index: Annotated[str, Query()] = "-1",
    ) -> JsonAnswer:
        number = int(map_index) if map_index.removeprefix("-").isdecimal() else -1
        if not run_id:
            return JsonAnswer(_NO_TASK)
        return JsonAnswer(pipeline_of_task(session, user, dag_id, run_id, task_id, number))


def _add_files(app: FastAPI) -> None:
    @app.get("/{path:path}")
    async def file(path: str, request: Request) -> Response:
        answer = await run_in_threadpool(page_response, path, request.headers, framed_by="'self'")
        if answer is None:
            raise PageProblem(404, _CODES[404], f"There is nothing at '{path}'")
        return answer


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(PageProblem)
    async def problem(_request: Request, error: PageProblem) -> JsonAnswer:
        return JsonAnswer(error.body(), error.status)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 401 and _is_opened(request):
            # Like Airflow's own pages if nobody is logged in.
            return RedirectResponse(f"{airflow_path()}/api/v2/auth/login?{urlencode({'next': str(request.url)})}")
        failure = PageProblem(error.status_code, _CODES.get(error.status_code, "HttpError"), str(error.detail))
        return JsonAnswer(failure.body(), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JsonAnswer:
        errors: list[Any] = list(error.errors())
        text = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in errors)
        return JsonAnswer(PageProblem(400, "InvalidParam", f"The request is not what is wanted: {text}").body(), 400)


def _is_opened(request: Request) -> bool:
    """Return True if a browser opens the page itself, as opposed to a request of one of its scripts."""
    return request.url.path.endswith("/") and "text/html" in request.headers.get("accept", "")
