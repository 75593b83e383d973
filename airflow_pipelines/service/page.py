"""The page that shows pipelines, served beside the REST API: its files, and how it gets at the API.

The files hold nothing of anybody, so they need no key. Whoever looks at the page gives it the key, which it sends in the header
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
    :param keys: tell the page whether the API wants a key
    """

    async def file(request: Request) -> Response:
        answer = page_response(request.url.path.removeprefix(PAGE), request.headers, framed_by="'none'")
        return answer or Response("This file of the page is gone", 404)

    def context(_request: Request) -> JsonAnswer:
        return JsonAnswer(_context(needs_key=keys.are_required()))

    paths = [PAGE, *(f"{PAGE}{name}" for name in page_files() if name != INDEX)]
    # A route for each: one for all of them would answer what no route of the API does.
    app.router.routes += [Route(path, file, methods=["GET"], include_in_schema=False) for path in paths]
    app.router.routes.append(Route(f"{PAGE}context", context, methods=["GET"], include_in_schema=False))


def _context(*, needs_key: bool) -> dict[str, Any]:
    """What the page asks first: who serves it, and where the API is. Whoever has no key learns nothing else from it."""
    return {
        "face": "service",
        "version": None,
        "needs_key": needs_key,
        "connections": [{"id": None, "label": "this service", "api": "v0/", "problem": None}],
        "airflow": None,
    }
