"""The check of API keys and their scopes, before anything else of a request is read."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as RequestScope

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.answers import JsonAnswer
from airflow_pipelines.service.api_keys import ApiKeys, KeyScope

_READING_POSTS: Final = re.compile(r"/v0/pipelines/[^/]+/(query|egress/.+)")
"""The paths of POSTs that change nothing.

A query may contain an INSERT or DELETE, which only the host can detect; the host is told to refuse it.
"""
_FIRST_KEY: Final = (
    "This service has no API key yet. From the first one on every request needs one, so it is made on the service's machine: "
    "'airflow-pipelines keys create NAME' prints it, and its holder can make others here"
)


class KeyCheck:
    """ASGI middleware that answers 401 without a key and 403 if the key's scope does not suffice.

    Paths outside ``/v0`` are open. So is a service that has no key, except for the creation of the first one.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: RequestScope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] in {"http", "websocket"} and scope["path"].startswith("/v0"):
            try:
                problem = await run_in_threadpool(self._refusal, scope)
            except SQLAlchemyError as error:
                problem = self._keys.unreadable(error)
            if problem is not None:
                headers = {"WWW-Authenticate": "Bearer"} if http_status(problem.code) == 401 else None
                await JsonAnswer(problem.body(), http_status(problem.code), headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, request: RequestScope) -> Problem | None:
        if not self._keys.are_required():
            # From the first key on everybody else is locked out, so it is for the owner of the store to make.
            if request.get("method") == "POST" and request["path"].rstrip("/") == "/v0/api_keys":
                return Problem(ErrorCode.UNAUTHORIZED, _FIRST_KEY)
            return None
        kind, _, key = Headers(scope=request).get("authorization", "").partition(" ")
        scope = self._keys.scope_of(key.strip()) if kind.lower() == "bearer" else None
        if scope is None:
            return Problem(ErrorCode.UNAUTHORIZED, "This service wants an API key: send it as 'Authorization: Bearer <key>'")
        if scope is KeyScope.READ:
            # A WebSocket has no method: it begins with a GET.
            if request.get("method", "GET") not in {"GET", "HEAD"} and not _READING_POSTS.fullmatch(request["path"]):
                return Problem(ErrorCode.SCOPE_EXCEEDED, "This API key may only read: use one with the scope 'write'")
            request.setdefault("state", {})["read_only"] = True
        return None
