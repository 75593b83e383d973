"""The page that shows pipelines, served beside the REST API: its files, and its access to the API.

The files hold no private data, so they need no key. The user gives the key to the page, which sends it in the header
``Authorization`` as every client does. There is no cookie, so that no page of another site can make a browser use the key.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.api_keys import ApiKeys
from airflow_pipelines.service.cross_site import PAGE
from airflow_pipelines.serving.page_files import INDEX, page_files, page_response


def serve_page(app: FastAPI, keys: ApiKeys) -> None:
    """Add the page to a service.

    :param app: the service
    :param keys: the API keys, by which the page learns whether the API requires one
    """

    async def file(request: Request) -> Response:
        answer = page_response(request.url.path.removeprefix(PAGE), request.headers, framed_by="'none'")
        return answer or Response("This file of the page is gone", 404)

    def context(_request: Request) -> JsonAnswer:
        return JsonAnswer(_context(needs_key=keys.are_required()))

    paths = [PAGE, *(f"{PAGE}{name}" for name in page_files() if name != INDEX)]
    # One route for each file: a single route for all would also answer unknown paths of the API.
    app.router.routes += [Route(path, file, methods=["GET"], include_in_schema=False) for path in paths]
    app.router.routes.append(Route(f"{PAGE}context", context, methods=["GET"], include_in_schema=False))


def _context(*, needs_key: bool) -> dict[str, Any]:
    """Return what the page asks first: its server, and the address of the API. Callers without a key learn nothing else from it."""
    return {
        "face": "service",
        "version": None,
        "needs_key": needs_key,
        "connections": [{"id": None, "label": "this service", "api": "v0/", "problem": None}],
        "airflow": None,
    }
