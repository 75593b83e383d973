"""Bounds on requests: how large they may be, and how slow."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem

MAX_HEAD_BYTES: Final = 64 * 1024
"""The most that a request line and its headers may have together; a query in a URL is part of it.

httpx, with which the service asks hosts, takes no longer URL either."""
BODY_PATIENCE_S: Final = 10.0
"""How long is waited for a body in all, beside the time that what has come would have taken at :data:`SLOWEST`."""
MAX_EXPANDED_BYTES: Final = 1024**3
"""The most that a compressed body may become."""
_ENCODINGS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The compressions of HTTP that zlib knows, with what it calls them."""
SLOWEST: Final = 1024
"""Bytes in a second; a client that is slower for long is not waited for."""


class BoundedRequests:
    """ASGI middleware that answers 431 and 413 to heads and bodies that are too large, and 408 to bodies that do not come.

    ``limit_of`` says how many bytes a request may have; None is any number.
    """

    def __init__(self, app: ASGIApp, limit_of: Callable[[Scope], int | None]) -> None:
        self._app = app
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope)
        problem = _refusal(scope, limit)
        if problem is not None:
            await JSONResponse(problem.body(), http_status(problem.code))(scope, receive, send)
            return
        await self._app(scope, _Body(receive, limit).receive, send)


class _Body:
    """A request's body as it comes."""

    def __init__(self, receive: Receive, limit: int | None) -> None:
        self._receive = receive
        self._limit = limit
        self._received = 0
        self._waited_s = 0.0
        self._complete = False

    async def receive(self) -> Message:
        """The next part. Only the time in which it is waited for counts: a slow application is not the client's fault."""
        if self._complete:
            return await self._receive()
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            message = await asyncio.wait_for(self._receive(), BODY_PATIENCE_S + self._received / SLOWEST - self._waited_s)
        except TimeoutError as error:
            self._complete = True
            raise Problem(
                ErrorCode.REQUEST_TIMEOUT,
                f"The body did not come: {self._received} bytes in {self._waited_s + loop.time() - began:.0f} s",
            ) from error
        self._waited_s += loop.time() - began
        self._received += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._limit is not None and self._received > self._limit:
            raise _too_large(self._limit)
        return message


def expand_body(body: bytes, encoding: str) -> bytes:
    """Undo the compression of a body.

    :param body: as it came
    :param encoding: the header ``Content-Encoding``, empty for none
    :returns: what was compressed
    :raises Problem: for an encoding that is not known, a body that is not compressed so, and one that becomes too large
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name not in _ENCODINGS and name != "identity":
            known = ", ".join(sorted({*_ENCODINGS, "identity"}))
            raise Problem(ErrorCode.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding {name!r} is not known; known are {known}")
        if name in _ENCODINGS:
            body = _inflate(body, name)
    return body


def _inflate(body: bytes, name: str) -> bytes:
    parts: list[bytes] = []
    left = MAX_EXPANDED_BYTES
    while True:
        # A file of gzip may consist of several, one behind the other.
        inflater = zlib.decompressobj(_ENCODINGS[name])
        try:
            parts.append(inflater.decompress(body, left))
        except zlib.error as error:
            raise Problem(ErrorCode.INVALID_PARAM, f"The body is not compressed by {name}, as its header says: {error}") from error
        left -= len(parts[-1])
        if left <= 0:
            raise _too_large(MAX_EXPANDED_BYTES)
        if not inflater.eof:
            raise Problem(ErrorCode.INVALID_PARAM, f"The body is cut: its {name} data have no end")
        body = inflater.unused_data
        if not body:
            return b"".join(parts)


def head_too_large() -> Problem:
    """The Problem of a request with too long an address or too many headers."""
    text = f"The request's address and headers have more than {MAX_HEAD_BYTES} bytes: send a long query in the body of a POST"
    return Problem(ErrorCode.REQUEST_HEADER_TOO_LARGE, text, {"limit": MAX_HEAD_BYTES})


def _refusal(scope: Scope, limit: int | None) -> Problem | None:
    head = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in scope["headers"])
    if head > MAX_HEAD_BYTES:
        return head_too_large()
    declared = Headers(scope=scope).get("content-length", "")
    return _too_large(limit) if limit is not None and declared.isdecimal() and int(declared) > limit else None


def _too_large(limit: int) -> Problem:
    return Problem(ErrorCode.PAYLOAD_TOO_LARGE, f"The body has more than {limit} bytes: send it in parts", {"limit": limit})
