"""Bounds on the size of requests and on the time that they take to arrive."""

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
"""The maximum size of a request line and its headers together, including a query in the URL.

httpx, with which the service calls hosts, accepts no longer URL either.
"""
BODY_PATIENCE_S: Final = 10.0
"""The number of seconds to wait for a body in all, in addition to the time that the received part takes at :data:`SLOWEST`."""
MAX_EXPANDED_BYTES: Final = 1024**3
"""The maximum size of a body after decompression."""
_ENCODINGS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The compressions of HTTP that zlib supports, with zlib's number for each."""
SLOWEST: Final = 1024
"""The lowest rate of a body, in bytes per second; a client that stays slower is not waited for."""


class BoundedRequests:
    """ASGI middleware that answers 431 and 413 to heads and bodies that are too large, and 408 to bodies that do not arrive.

    ``limit_of`` returns the maximum number of bytes of a request; None is no limit.
    """

    def __init__(self, app: ASGIApp, limit_of: Callable[[Scope], int | None]) -> None:
        self._app = app
        self._limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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
    """A request's body while it arrives."""

    def __init__(self, receive: Receive, limit: int | None) -> None:
        self._receive = receive
        self._limit = limit
        self._received = 0
        self._waited_s = 0.0
        self._complete = False

    async def receive(self) -> Message:
        """Return the next part of the body.

        Only the time spent waiting for the client counts: a slow application is not the client's fault.
        """
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
    """Decompress a body.

    :param body: the body as it was received
    :param encoding: the header ``Content-Encoding``, empty for none
    :returns: the decompressed body
    :raises Problem: when the encoding is unknown, the body is not compressed in it, or the result is too large
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
    """Return the Problem of a request whose address or headers are too long."""
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
